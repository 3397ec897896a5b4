"""Other versions of serving engines."""

from __future__ import annotations

from typing import Any

from tests.unit.diff.diff_cases import Obj, container, deployment, template
from tests.unit.diff.rule_cases.objects import Case


def vllm(version: str, *flags: str, **fields: Any) -> Obj:
    """A Deployment of vLLM."""
    image = f"docker.io/vllm/vllm-openai:{version}@sha256:{'a' * 64}"
    args = ["/model", "--served-model-name", "chat", *flags]
    return deployment(pod=template(container(image=image, **{"command": ["vllm", "serve"], "args": args, **fields})))


SET = ("--cp-kv-cache-interleave-size=1", "--dcp-comm-backend=ag_rs", "--mamba-cache-mode=none")
"""Flags whose defaults changed."""
RAY = ["/bin/sh", "-c", "ray start --head", "ray"]
RAY_ARGS = ["vllm", "serve", "/model", "--tool-call-parser=kimi_k3", *SET]
UPGRADE = "vLLM 0.25.1 becomes 0.33.0"
DEFAULTS = (
    "other defaults of flags that are not set: --cp-kv-cache-interleave-size from 1 to one that vLLM chooses, "
    '--dcp-comm-backend from "ag_rs" to one that vLLM chooses'
)
CASES: list[Case] = [
    Case(
        "engine-upgrade",
        "flags that are gone",
        vllm("v0.25.1", "--max-num-partial-prefills=2", "--calculate-kv-scales"),
        vllm("v0.33.0", "--max-num-partial-prefills=2", "--calculate-kv-scales"),
        [
            (
                "danger",
                f"{UPGRADE}, and does not start: --max-num-partial-prefills is gone; --calculate-kv-scales is gone",
            ),
            ("notice", f'{UPGRADE}: {DEFAULTS} and --mamba-cache-mode from "none" to one that vLLM chooses'),
        ],
    ),
    Case(
        "engine-upgrade",
        "a value that is gone, and a deprecated flag",
        vllm("v0.25.1", "--mamba-cache-mode=all", "--log-config-file=/l", "--disable-cascade-attn"),
        vllm("v0.32.0", "--mamba-cache-mode=all", "--log-config-file=/l", "--disable-cascade-attn"),
        [
            (
                "danger",
                "vLLM 0.25.1 becomes 0.32.0, and does not start: --mamba-cache-mode does not accept all: use one "
                "of align, none",
            ),
            (
                "notice",
                "vLLM 0.25.1 becomes 0.32.0: deprecated: --log-config-file (will be removed in v0.33.0); "
                "--disable-cascade-attn (has no effect since cascade attention has been removed)",
            ),
            ("notice", f"vLLM 0.25.1 becomes 0.32.0: {DEFAULTS.replace(', --dcp', ' and --dcp')}"),
        ],
    ),
    Case(
        "engine-upgrade",
        "nothing that matters",
        vllm("v0.32.0", "--max-num-seqs=4", "--mamba-cache-mode=none", "--tool-strict-level=auto"),
        vllm("v0.33.0", "--max-num-seqs=4", "--mamba-cache-mode=none", "--tool-strict-level=auto"),
        [("notice", "vLLM 0.32.0 becomes 0.33.0: deprecated: --mamba-cache-mode (will be removed in v0.33.0)")],
    ),
    Case("engine-upgrade", "a patch release", vllm("v0.33.0"), vllm("v0.33.1"), []),
    Case("engine-upgrade", "the same version", vllm("v0.33.0"), vllm("v0.33.0", "--seed=1"), []),
    Case("engine-upgrade", "no vLLM", vllm("v0.25.1", command=["run"]), vllm("v0.33.0", command=["run"]), []),
    Case(
        "engine-upgrade",
        "a downgrade to a version without the parser, through Ray",
        vllm("v0.33.0", "--tool-call-parser=kimi_k3", *SET),
        vllm("v0.25.1", "--tool-call-parser=kimi_k3", *SET, command=RAY, args=RAY_ARGS),
        [
            (
                "danger",
                "vLLM 0.33.0 becomes 0.25.1, and does not start: vLLM 0.25 does not have kimi_k3 for "
                "--tool-call-parser",
            )
        ],
    ),
    Case(
        "engine-upgrade",
        "a version without a table",
        vllm("v0.33.0"),
        vllm("v0.35.0"),
        [
            (
                "info",
                "vLLM 0.33.0 becomes 0.35.0: the flags of 0.35.0 are not known; compared as 0.33 (known: 0.10 to 0.33)",
            )
        ],
    ),
    Case(
        "engine-upgrade",
        "nothing to do",
        vllm("v0.25.1", *SET),
        vllm("v0.32.0", *SET),
        [("info", "vLLM 0.25.1 becomes 0.32.0: it accepts every flag that is set, and no default changed")],
    ),
]
