"""Several processes, on one node or on several, by torchrun."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

import torch
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from kaigen_train.errors import BadInput
from kaigen_train.machine import cpus

PER_NODE = "PET_NPROC_PER_NODE"
"""Variable with the number of processes on a node, as torchrun reads it."""

NODES = "PET_NNODES"
"""Variable with the number of nodes, as torchrun reads it."""


def processes(env: Mapping[str, str]) -> int:
    """Return the number of processes on all nodes: by default one for each GPU.

    Raises:
        BadInput: a variable is not a number.
    """
    return _number(env, NODES, 1) * _per_node(env)


def _per_node(env: Mapping[str, str]) -> int:
    return _number(env, PER_NODE, max(1, torch.cuda.device_count()))


def _number(env: Mapping[str, str], name: str, default: int) -> int:
    text = env.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or not int(text):
        raise BadInput(f"{name} is not a number from 1: {text!r}")
    return int(text)


def launch(argv: Sequence[str], env: Mapping[str, str], codes: Collection[int]) -> int:
    """Run the program in each process of this node, and return the exit code.

    torchrun reads where the other nodes are from the environment.

    Args:
        argv: arguments of the program.
        env: the environment.
        codes: exit codes of processes that are also that of this one; others become 1.
    """
    # torchrun gives each process one thread where the variable is not set.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cpus() // _per_node(env))))
    alone = ["--standalone"] if _number(env, NODES, 1) == 1 else []
    options = [*alone, f"--nproc-per-node={_per_node(env)}", "--module", "kaigen_train", *argv]
    try:
        torchrun.run(torchrun.parse_args(options))
    except ChildFailedError as error:
        _, failure = error.get_first_failure()
        code = int(failure.exitcode)
        return code if code in codes else 1
    except SignalException as error:
        return 128 + int(error.sigval)
    return 0
