"""Profile kaigen: its imports and the steps of a render."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.command import CommandFailed, discard
from benchmarks.environments import ROOT
from benchmarks.importtime import imports_of

_RUNS = 5
_MAX_ROWS = 20
_STEPS = (
    "read files",
    "parse YAML",
    "validate specs",
    "compile",
    "check",
    "emit manifests",
    "emit charts",
    "write manifests",
    "remember",
)


def profile(bench: Bench) -> Iterator[str]:
    """Return a text per profile."""
    repository = bench.repository("profile/repository", 2)
    for arguments in (["--help"], ["validate"], ["render"], ["render", "--format", "both"]):
        yield _imports(bench, repository, arguments)
    for specs in bench.specs:
        yield _steps(bench, bench.repository(f"profile/{specs}", specs), specs)


def _imports(bench: Bench, repository: Path, arguments: list[str]) -> str:
    """Report the run with the fastest imports, because other work on the machine only adds time."""
    best: Counter[str] = Counter()
    for _ in range(_RUNS):
        command = bench.kaigen.command(repository, *arguments)
        discard(Path(command.env["KAIGEN_CACHE_DIR"]))
        found, done = imports_of(bench.kaigen.python, arguments, repository, command.env)
        if done.returncode != 0:
            raise CommandFailed(f"kaigen {' '.join(arguments)}\n{done.stderr}")
        packages: Counter[str] = Counter()
        for item in found:
            packages[_group(item.name)] += item.own_us
        if not best or packages.total() < best.total():
            best = packages
            modules = len(found)
    lines = [
        "",
        f"Imports of `kaigen {' '.join(arguments)}`: {modules} modules, {best.total() / 1000:.1f} ms "
        "(measuring makes them slower)",
    ]
    shown = best.most_common(_MAX_ROWS)
    others = best.total() - sum(taken for _, taken in shown)
    lines += [f"  {name:32} {taken / 1000:7.1f} ms" for name, taken in [*shown, ("all others", others)]]
    return "\n".join(lines)


def _group(module: str) -> str:
    """Return the name of a kaigen module, or the top package of any other."""
    package = module.partition(".")[0]
    return module if package == "kaigen" else package


def _stages(bench: Bench, repository: Path) -> dict[str, float]:
    cache = repository.with_name(f"{repository.name}.cache")
    for made in (repository / "rendered", repository / "rendered-again", cache):
        discard(made)
    done = subprocess.run(
        [bench.kaigen.python, "-m", "benchmarks.stages", str(repository)],
        cwd=ROOT,
        env={**bench.kaigen.env, "KAIGEN_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise CommandFailed(f"benchmarks.stages\n{done.stderr}")
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def _steps(bench: Bench, repository: Path, specs: int) -> str:
    runs = [_stages(bench, repository) for _ in range(_RUNS)]
    seconds = {step: min(run[step] for run in runs) for step in runs[0]}
    # Two steps run inside another step; subtract the steps that were measured separately.
    seconds["validate specs"] = max(0.0, seconds["load"] - seconds["read files"] - seconds["parse YAML"])
    seconds["compile"] = max(0.0, seconds["compile and check"] - seconds["check"])
    total = sum(seconds[step] for step in _STEPS)
    lines = ["", f"Steps of a render of {specs} specs without imports, the fastest of {_RUNS} runs"]
    for step in _STEPS:
        taken = seconds[step]
        lines.append(f"  {step:24} {taken * 1000:7.1f} ms  {taken / specs * 1e6:6.0f} µs a spec  {taken / total:4.0%}")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    lines.append(
        f"  {'sum':24} {total * 1000:7.1f} ms; in one command, without charts, {seconds['whole'] * 1000:.1f} ms "
        f"on {cores} {'core' if cores == 1 else 'cores'}"
    )
    return "\n".join(lines)
