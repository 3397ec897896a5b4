"""The way of the data: load, lower, compile, check, emit. Each step is a function that can be called alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, InputError
from kaigen.pipeline.compile import compile_specs
from kaigen.pipeline.compile_spec import compile_spec, make_context
from kaigen.pipeline.load import Loaded, kind_problems, load_others, load_source, load_specs, spec_key
from kaigen.pipeline.output import output_files, sync_tree
from kaigen.pipeline.result import Compilation, Compiled, object_keys

if TYPE_CHECKING:
    from kaigen.config.settings import Config, Format
    from kaigen.config.value_layers import Overrides

__all__ = [
    "Compilation",
    "Compiled",
    "Loaded",
    "compile_spec",
    "compile_specs",
    "kind_problems",
    "load_others",
    "load_source",
    "load_specs",
    "make_context",
    "object_keys",
    "output_files",
    "render",
    "spec_key",
    "sync_tree",
    "validate",
]


def validate(
    paths: Sequence[str], config: Config | None = None, *, stdin: IO[bytes] | None = None
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """Everything that is wrong with specs, as far as rendering would find it.

    Returns:
        The diagnostics by place, and the files that were read.
    """
    from kaigen.config.settings import Config

    config = config or Config()
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    try:
        return list(compile_specs(loaded, config, others=others).diagnostics), loaded.files
    except InputError as error:
        return error.diagnostics, loaded.files


def render(
    paths: Sequence[str],
    config: Config | None = None,
    *,
    overrides: Sequence[Overrides] = (),
    form: Format | None = None,
    stdin: IO[bytes] | None = None,
) -> dict[str, bytes]:
    """Specs in, the output tree out: content by relative path. Nothing is written.

    Files for Argo CD and Flux tell of every app, so they are among it only when no paths are given.

    Raises:
        InputError: with every problem found.
    """
    from kaigen.config.settings import Config

    config = config or Config()
    loaded = load_specs(paths, config, stdin=stdin)
    others = load_others(loaded, config) if paths else None
    compilation = compile_specs(loaded, config, overrides, others=others)
    if paths:
        return compilation.files(form or config.format)
    return output_files(compilation, config, form)
