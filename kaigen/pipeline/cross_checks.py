"""What is wrong between specs and apps that are right by themselves: one name for two, settings for none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.pipeline.load import spec_key
from kaigen.pipeline.result import FOLDER, object_keys

if TYPE_CHECKING:
    from kaigen.compile.expressions import SpecPath
    from kaigen.config.settings import Config
    from kaigen.config.value_layers import Overrides
    from kaigen.diagnostics.diagnostic import Diagnostics
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.result import Compiled


def unique_specs(specs: Iterable[Spec], config: Config, found: Diagnostics) -> list[Spec]:
    """Specs whose names are their own: an app's name is its release's, whatever its kind."""
    seen: dict[tuple[str, str], Spec] = {}
    for spec in specs:
        metadata = spec.block.metadata
        first = seen.setdefault((metadata.namespace or config.namespace, metadata.name), spec)
        if first is not spec:
            place = first.document.mark(("metadata", "name"))
            found.add(
                spec.diagnostic(
                    "KG0302",
                    f"`{metadata.name}` is the name of another app of this namespace, a {first.block.kind} at {place}",
                    ("metadata", "name"),
                    "give one of them another name, or another namespace",
                )
            )
    return list(seen.values())


def app_names(specs: Iterable[Spec], config: Config) -> list[tuple[str, str]]:
    """Namespace and name of each spec's app."""
    return [spec_key(spec, config.namespace)[1:] for spec in specs]


def check_overrides(
    specs: Sequence[Spec], config: Config, layers: Sequence[Overrides], found: Diagnostics
) -> None:
    """Every setting that is overridden is one of an app that there is.

    Args:
        specs: every spec of the run, also those that are not compiled.
        config: the repository's settings.
        layers: settings to override, by app.
        found: takes what is wrong.
    """
    from kaigen.emit.values import unknown_names

    found.extend(unknown_names(app_names(specs, config), layers))


def check_matches(specs: Iterable[Spec], config: Config, found: Diagnostics) -> None:
    """Every override of a field and every pin finds a spec."""
    from kaigen.environments.unmatched import unmatched

    matched = {name for spec in specs for name in spec.matched}
    found.extend(unmatched(config, matched, set(app_names(specs, config))))


def check_apps(compiled: Sequence[Compiled], found: Diagnostics) -> None:
    """No two apps have one folder, and none makes an object of another."""
    folders: dict[tuple[str, str], Compiled] = {}
    for item in compiled:
        first = folders.setdefault((item.app.namespace, item.app.name), item)
        if first is not item and item.documents:
            message = f"the app of this file is `{item.app.name}`, as is that of {first.app.source}"
            found.add(Diagnostic("KG0302", message, item.documents[0].mark(()), "rename one of the files"))
    makers: dict[tuple[str, str, str, str], Compiled] = {}
    for item in compiled:
        for key in object_keys(item):
            first = makers.setdefault(key, item)
            if first is not item:
                found.add(_clash(key[1], key[3], item, first))


def _clash(kind: str, name: str, item: Compiled, first: Compiled) -> Diagnostic:
    """What is said of two apps that make, or fill, the same thing."""
    code: str = "KG0302"
    field: SpecPath = ("metadata", "name")
    message = f"{kind} `{name}` is made by app `{first.app.name}` too"
    hint = "give one of the two apps another name"
    if kind == FOLDER:
        code, field = "KG0318", ("spec", "store", "bucket", "uri")
        message = f"app `{first.app.name}` in namespace `{first.app.namespace}` rests at {name} too"
        hint = "give this one a prefix of its own"
    if item.spec:
        return item.spec.diagnostic(code, message, field, hint)
    return Diagnostic(code, message, Mark(item.app.source), hint)
