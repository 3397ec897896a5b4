"""Options that several commands share, and the configuration that they select."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.config import assignments as config_assignments
    from kaigen.config import load, value_layers
    from kaigen.environments import combined
    from kaigen.pipeline import run as pipeline_run
    from kaigen.pipeline import sources as pipeline_sources
    from kaigen.yaml import document as yaml_document
    from kaigen.yaml import sources as yaml_sources

if TYPE_CHECKING:
    from kaigen.cli.console import Console
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides


Function = Callable[..., Any]


def address_options(function: Function) -> Function:
    """`--context` and `--kubeconfig`."""
    function = click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig. Default: as kubectl.")(
        function
    )
    return click.option("--context", default="", metavar="NAME", help="Context. Default: the current one.")(function)


Command = Callable[..., Any]


def paths_argument(function: Command) -> Command:
    """`[PATH]...`."""
    return click.argument("paths", nargs=-1, metavar="[PATH]...")(function)


def environment_option(default: str) -> Callable[[Command], Command]:
    """`--env NAME`.

    Args:
        default: the environments without the option: all or the first.
    """
    return click.option(
        "--env", "environment", default="", metavar="NAME", help=f"Environment in kaigen.yaml. Default: {default}."
    )


def override_options(function: Command) -> Command:
    """`--set` and `--values`."""
    function = click.option(
        "-f", "--values", "value_files", multiple=True, metavar="FILE", help="File with overridden settings, by app."
    )(function)
    return click.option(
        "--set", "assignments", multiple=True, metavar="APP.KEY=VALUE", help="Override one setting of an app."
    )(function)


def read_config(environment: str = "", output: str | None = None) -> Config:
    """Return the configuration of the repository in the working folder.

    Args:
        environment: as given by `--env`.
        output: as given by `-o`; the environment's name is not added to it.

    Raises:
        InputError: `kaigen.yaml` is invalid.
    """
    here = Path.cwd()
    root = load.find_root(here)
    shown = Path() if root == here else root
    config = load.load_config(shown, environment)
    return replace(config, output=output) if output is not None else config


def read_one_config(console: Console, environment: str = "") -> Config:
    """Return the configuration of one environment: the named one, or the first, which is then printed.

    Args:
        environment: as given by `--env`.

    Raises:
        InputError: `kaigen.yaml` is invalid.
    """
    config = read_config(environment)
    if environment or not config.environments:
        return config
    first, *others = config.environments
    if others:
        console.say(f"environment {first}; select another with --env: {', '.join(others)}")
    return read_config(first)


def read_config_of(console: Console, names: Sequence[str], environment: str = "") -> Config:
    """Return the configuration of the named environment, or else of the first one that has all of some apps, which is
    then printed; that of the first environment when none has them.

    Args:
        console: prints the environment.
        names: as given on the command line: apps, and paths of specs.
        environment: as given by `--env`.

    Raises:
        InputError: `kaigen.yaml` is invalid.
    """
    if not environment and names and "-" not in names:
        first, *others = read_config().environments or ("",)
        if others and not _has_all(read_config(first), names):
            for name in others:
                config = read_config(name)
                if _has_all(config, names):
                    console.say(f"environment {name}, the first one that has {', '.join(names)}")
                    return config
    return read_one_config(console, environment)


def _has_all(config: Config, names: Sequence[str]) -> bool:
    paths = [name for name in names if pipeline_sources.is_path(name)]
    run = pipeline_run.Run.load(paths, config, folder=Path() if paths else None)
    is_there = not paths or any(unit.defines for unit in run.units)
    return is_there and all(run.find(name) for name in names if name not in paths)


def read_configs(environment: str = "", output: str | None = None) -> list[Config]:
    """Return the configurations of the selected environments: the named one, or all in `kaigen.yaml`.

    Args:
        environment: as given by `--env`.
        output: as given by `-o`; with several environments, each gets a folder of its name in it.

    Raises:
        InputError: `kaigen.yaml` is invalid, with the errors of all environments.
    """
    first = read_config(environment, output)
    if environment or not first.environments:
        return [first]
    named = [replace(first, environment=name) for name in first.environments]
    below = {name: None if output is None else f"{output}/{name}" for name in first.environments}
    return combined.for_each(named, lambda config: read_config(config.environment, below[config.environment]))


def require_repository(config: Config) -> None:
    """Check that the working folder is in a repository, before Git is asked.

    Raises:
        InputError: there is neither kaigen.yaml nor a folder with specs.
    """
    missing = pipeline_sources.missing_repository(config)
    if missing is not None:
        raise InputError([missing])


def output_folder(config: Config, output: str | None) -> Path:
    """Return the output folder: `-o` is relative to the working folder, `output` to the repository."""
    return Path(config.output) if output is not None else config.root / config.output


def checkout_folder() -> str:
    """Return the working folder relative to the checkout of a pipeline; empty outside a pipeline and at its root."""
    top = os.environ.get("GITHUB_WORKSPACE") or os.environ.get("CI_PROJECT_DIR")
    try:
        below = Path.cwd().relative_to(Path(top).resolve()).as_posix() if top else ""
    except (OSError, ValueError):
        return ""
    return "" if below == "." else below


def read_overrides(assignments: tuple[str, ...], value_files: tuple[str, ...]) -> list[Overrides]:
    """Overrides in the order of their weight: files first, assignments on top.

    Raises:
        InputError: when one of them is wrong.
    """
    layers: list[Overrides] = [layer for path in value_files for layer in _read_values(path)]
    return [*layers, *(config_assignments.parse_assignment(text) for text in assignments)]


def _read_values(path: str) -> list[Overrides]:
    sources, problems = yaml_sources.read_sources([path], root=Path.cwd())
    found = Diagnostics(problems)
    documents = [document for source in sources for document in yaml_document.parse(source, found)]
    found.raise_errors()
    for document in documents:
        if not isinstance(document.data, dict):
            found.add(Diagnostic("KG0708", "values are a mapping of apps to settings", document.mark(())))
            continue
        if document.apiVersion and document.kind:
            hint = f"leave out `-f`: name specs as arguments, such as `kaigen render {document.source.path}`"
            found.add(Diagnostic("KG0708", "this is a spec, not a file of values", document.mark(("kind",)), hint))
            continue
        for name, values in document.data.items():
            if not isinstance(values, dict):
                hint = f"for example `{name}: {{storage: {{size: 20Gi}}}}`"
                found.add(Diagnostic("KG0708", f"the settings of `{name}` are a mapping", document.mark((name,)), hint))
    found.raise_errors()
    return [
        value_layers.Layer(document.data, document.mark) for document in documents if isinstance(document.data, dict)
    ]
