"""Mutation testing: change kaigen's code in small ways and report which changes the tests notice.

    python -m tools.mutants [--sample N] [--seed N] [--jobs N] [--list N] [PACKAGE ...]

mutmut makes the mutants and runs, for each, the tests that call the mutated function; `[tool.mutmut]` in pyproject.toml
names the packages and the tests. It works in a copy of the tree in `.venv/mutants`, which keeps results: a mutant that
was killed is run again only when its function changes, any other is run again each time. The downloader,
`kaigen_downloader`, has a pyproject.toml, tests and a copy of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
KILLED = {"killed", "timeout", "segfault"}
BROKEN = 255
"""Exit code of a worker that could not run the tests; mutmut takes it for a timeout."""
PRELOAD = "preload.txt"
"""Modules that the process imports that starts the workers; pyproject.toml names it too."""


@dataclass(frozen=True, slots=True)
class Project:
    """Code with a pyproject.toml that configures mutmut.

    Attributes:
        root: the folder of the pyproject.toml.
        work: where its copy is.
    """

    root: Path
    work: Path

    @property
    def settings(self) -> dict[str, Any]:
        """The table `[tool.mutmut]`."""
        tools = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
        return dict(tools["mutmut"])

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages with mutants, by their import names."""
        return tuple(path.removesuffix("/*").replace("/", ".") for path in self.settings["only_mutate"])


KAIGEN = Project(ROOT, ROOT / ".venv" / "mutants")
DOWNLOADER = Project(ROOT / "runtimes" / "downloader", ROOT / ".venv" / "mutants-downloader")


def project_of(packages: Sequence[str]) -> Project | None:
    """Return the project of packages; that of kaigen without any, None if they are of several or of none."""
    for project in (KAIGEN, DOWNLOADER):
        known = project.packages
        if all(any(f"{name}.".startswith(f"{each}.") for each in known) for name in packages):
            return project
    return None


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one function.

    Attributes:
        name: mutmut's name of it.
        package: the package it is in.
        status: what became of it, in mutmut's words.
    """

    name: str
    package: str
    status: str

    @property
    def is_killed(self) -> bool:
        """Whether a test failed because of the change."""
        return self.status in KILLED


def copy_tree(project: Project) -> None:
    """Bring the copy up to date: every file that Git tracks or does not ignore, and no other."""
    root, work = project.root, project.work
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        capture_output=True,
        check=True,
    ).stdout.decode()
    wanted = {Path(name) for name in listed.split("\0") if name and (root / name).is_file()}
    for path in sorted(wanted):
        source, target = root / path, work / path
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
            if path.suffix != ".py":
                (work / "mutants" / path).unlink(missing_ok=True)
            if path.name == "pyproject.toml":
                shutil.rmtree(work / "mutants", ignore_errors=True)  # other packages to mutate, or other tests
    # mutmut replaces changed modules only, and removes no file.
    for folder in (work, work / "mutants"):
        for top in {path.parts[0] for path in wanted}:
            for file in (folder / top).rglob("*"):
                if file.suffix == ".py" and file.relative_to(folder) not in wanted:
                    file.unlink()


def write_preload(work: Path, selection: Sequence[str]) -> None:
    """List the selected test modules, so that workers find them imported and only collect the tests they run."""
    names = []
    for selected in selection:
        path = work / selected
        files = [path] if path.is_file() else sorted(path.rglob("test_*.py"))
        names += [".".join(file.relative_to(work).with_suffix("").parts) for file in files]
    (work / PRELOAD).write_text("".join(f"{name}\n" for name in names))


def choose(packages: Sequence[str], sample: int | None, seed: int) -> list[str]:
    """Make the mutants and return the names of those to run."""
    from mutmut.__main__ import CatchOutput, create_mutants
    from mutmut.utils.file_utils import copy_also_copy_files, copy_src_dir

    incomplete = Path("mutants.incomplete")
    if incomplete.exists():  # The last run was stopped here, and mutmut would take half a module for a whole one.
        shutil.rmtree("mutants", ignore_errors=True)
    incomplete.touch()
    Path("mutants").mkdir(exist_ok=True)
    with CatchOutput(spinner_title="Making mutants"):
        copy_src_dir()
        copy_also_copy_files()
        create_mutants(os.cpu_count() or 1)
    incomplete.unlink()
    names = sorted(each.name for each in read_results(packages))
    if sample is None or sample >= len(names):
        return names
    return sorted(random.Random(seed).sample(names, sample))


def read_results(packages: Sequence[str]) -> list[Mutant]:
    """Return every mutant of the packages with its status."""
    from mutmut.__main__ import collect_source_file_mutation_data
    from mutmut.stats import status_by_exit_code

    mutants, _ = collect_source_file_mutation_data(mutant_names=())
    return [
        Mutant(name, package, "broken" if code == BROKEN else status_by_exit_code[code])
        for _, name, code in mutants
        for package in packages
        if name.startswith(f"{package}.")
    ]


def change(name: str) -> str:
    """Return the changed lines of a mutant, with the file they are in."""
    from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant

    mutant = find_mutant(name)
    lines = get_diff_for_mutant(name, path=mutant.path).splitlines()
    changed = [line for line in lines if line[:1] in "+-" and line[:3] not in {"+++", "---"}]
    return "\n".join([str(mutant.path), *(f"    {line}" for line in changed)])


def report(mutants: Sequence[Mutant], listed: int) -> None:
    """Print the survivors and the share killed."""
    survivors = [each for each in mutants if not each.is_killed]
    for each in survivors[:listed]:
        print(f"{each.name} ({each.status})\n  {change(each.name)}")
    if len(survivors) > listed:
        print(f"... and {len(survivors) - listed} more")
    total, killed = Counter[str](), Counter[str]()
    for each in mutants:
        for group in (each.package, "all"):
            total[group] += 1
            killed[group] += each.is_killed
    print()
    for group, count in total.items():
        if group != "all" or len(total) > 2:
            print(f"{group:<20} {killed[group]:>6} of {count:>6} killed: {100 * killed[group] / count:.1f} %")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutants and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "packages",
        nargs="*",
        metavar="PACKAGE",
        help=f"default: {' '.join(KAIGEN.packages)}; also: {' '.join(DOWNLOADER.packages)}",
    )
    parser.add_argument("--sample", type=int, metavar="N", help="run a random sample of N mutants")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="mutants at a time")
    parser.add_argument("--list", type=int, default=1000, metavar="N", help="list at most N survivors")
    options = parser.parse_args(arguments)
    project = project_of(options.packages)
    if project is None:
        parser.error("packages must be of those that pyproject.toml lists, and of one project")
    packages = options.packages or project.packages
    copy_tree(project)
    os.chdir(project.work)
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != ROOT]
    from mutmut import __main__ as mutmut
    from mutmut.configuration import config
    from mutmut.state import state

    write_preload(project.work, config().pytest_add_cli_args_test_selection)

    names = set(choose(packages, options.sample, options.seed))
    undecided = [each.name for each in read_results(packages) if each.name in names and each.status != "killed"]
    if undecided:
        # mutmut would now run all tests of the chosen mutants without a mutant. The statistics already come from such a
        # run, so one test is enough.
        vars(mutmut)["tests_for_mutant_names"] = lambda _: set(list(state().duration_by_test)[:1])
        mutmut._run(undecided, options.jobs)
    report([each for each in read_results(packages) if each.name in names], options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
