"""All apps of a run: each compiled by itself, then what is wrong between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kaigen.diagnostics.category import UNREADABLE, Category
from kaigen.diagnostics.diagnostic import Diagnostics, Severity
from kaigen.pipeline.compile_spec import compile_spec, make_context
from kaigen.pipeline.cross_checks import app_names, check_apps, check_matches, check_overrides, unique_specs
from kaigen.pipeline.load import Loaded, spec_key
from kaigen.pipeline.plain_objects import by_file, finish_plain, has_name, plain_app
from kaigen.pipeline.result import Compilation, Compiled
from kaigen.system.progress import counted

if TYPE_CHECKING:
    from kaigen.compile.context import Context
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides
    from kaigen.system.progress import Progress


def compile_specs(
    loaded: Loaded,
    config: Config | None = None,
    overrides: Sequence[Overrides] = (),
    *,
    others: Loaded | None = None,
    progress: Progress | None = None,
) -> Compilation:
    """Make the app of each spec, with settings overridden, and check its objects.

    Args:
        loaded: what was read.
        config: the repository's settings; the defaults when None.
        overrides: values by app, later ones on top of earlier ones and of those in kaigen.yaml.
        others: specs that may be referred to but are not compiled.
        progress: is told how many specs are compiled.

    Raises:
        InputError: with every problem found, those of loading included.
    """
    from kaigen.compile.context import SpecIndex
    from kaigen.config.settings import Config
    from kaigen.secrets.wiring import add_secrets

    config = config or Config()
    found = Diagnostics(loaded.diagnostics)
    specs = unique_specs(loaded.specs, config, found)
    every = [*specs, *loaded.specs, *(others.specs if others else ())]
    index = SpecIndex({spec_key(spec, config.namespace): spec.block for spec in reversed(every)})
    context = make_context(config, index)
    layers = list(overrides)
    if config.values:
        from kaigen.config.value_layers import value_layers

        layers = [*value_layers(config), *overrides]
    broken = loaded.broken | (others.broken if others else frozenset())
    # A text that could not be read may hold whatever others refer to.
    unread = any(
        each.severity is Severity.ERROR and each.category in UNREADABLE for each in loaded.diagnostics
    )
    compiled = []
    for spec in counted(specs, "compiling", progress):
        own = Diagnostics()
        index.asked.clear()
        item = compile_spec(spec, context, layers, own)
        # What is wrong with a document is told there, not again where it is referred to.
        known = unread or not broken.isdisjoint(index.asked)
        found.extend(each for each in own if not (known and each.category is Category.SPEC_REFERENCE))
        if item is not None:
            compiled.append(replace(item, needs=index.found()))
    plain = [
        (plain_app(source, documents, specs, config), documents)
        for source, documents in by_file(loaded.plain, config).items()
        if all([has_name(document, found) for document in documents])
    ]
    if layers:
        check_overrides([*specs, *(others.specs if others else ())], config, layers, found)
    if (config.overrides or config.pins) and not broken:
        check_matches(every, config, found)
    if context.patches is not None and not broken:
        names = app_names(every, config)
        matched = {token for item in compiled for token in item.patched}
        found.extend(
            context.patches.unmatched(matched, names, partial=others is not None or found.has_errors)
        )
    compiled += [finish_plain(app, documents, config, found) for app, documents in plain]
    compiled = add_secrets(compiled, lambda: _compile_others(others, context, layers, config), config, found)
    check_apps(compiled, found)
    found.raise_errors()
    compiled.sort(key=lambda item: (item.app.namespace, item.app.name))
    return Compilation(tuple(compiled), tuple(found.sorted()))


def _compile_others(
    others: Loaded | None, context: Context, layers: Sequence[Overrides], config: Config
) -> list[Compiled] | None:
    """The apps of the specs that were not named; None when one of them is wrong."""
    if others is None:
        return []
    if others.broken:
        return None
    found = Diagnostics()
    made = [compile_spec(spec, context, layers, found) for spec in others.specs]
    plain = [
        finish_plain(plain_app(source, documents, others.specs, config), documents, config, found)
        for source, documents in by_file(others.plain, config).items()
        if all(document.name for document in documents)
    ]
    return None if found.has_errors else [*(item for item in made if item is not None), *plain]
