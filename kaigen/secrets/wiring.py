"""What a run adds for Secrets: ExternalSecrets where kaigen.yaml asks for them, and warnings about keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kaigen.config.settings import FILE_NAME, Config
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Severity

if TYPE_CHECKING:
    from kaigen.pipeline.result import Compiled
    from kaigen.secrets.expected import ExpectedSecret
    from kaigen.secrets.provider import External

Others = Callable[[], "list[Compiled] | None"]
"""Gives the apps of the repository that are not of this run; None when one of them cannot be made."""


def add_secrets(
    compiled: Sequence[Compiled], others: Others, config: Config, found: Diagnostics
) -> list[Compiled]:
    """The apps of a run, and those that hold the ExternalSecrets for them.

    Args:
        compiled: the run's apps.
        others: the apps that are not of this run: their Secrets are made in the same place.
        config: the repository's settings.
        found: takes what is wrong, and what is worth a warning.
    """
    items = list(compiled)
    found.extend(_not_in_charts(items, config))
    if config.external_secrets is None and not any(item.documents for item in items):
        return items  # Nothing makes a Secret, so there is nothing to compare and nothing to write.
    from kaigen.secrets.expected import facts_of, gather
    from kaigen.secrets.keys import missing_keys
    from kaigen.secrets.provider import external_of

    own = gather(facts_of(items))
    found.extend(missing_keys(own))
    external = external_of(config)
    if external is None:
        return items
    rest = others()
    if rest is None:
        message = "ExternalSecrets stay as they are, for another spec of the repository is wrong"
        hint = "`kaigen validate` tells what; several apps may read one Secret"
        found.add(Diagnostic("KG0332", message, None, hint, Severity.WARNING))
        return items
    spaces = {item.namespace for item in own}
    return _with_apps(
        items,
        [i for i in gather(facts_of([*items, *rest])) if i.namespace in spaces],
        external,
        config,
        found,
    )


def _not_in_charts(items: Iterable[Compiled], config: Config) -> Iterator[Diagnostic]:
    if config.format != "chart":
        return
    for item in items:
        for number, rendered in enumerate(item.objects):
            if rendered.object.verbatim:
                name = rendered.body["metadata"]["name"]
                message = (
                    f"the Secret `{name}` is written as a manifest: SOPS cannot decrypt what is in a chart"
                )
                mark = item.documents[number].mark(("kind",)) if item.documents else None
                hint = "leave charts to the apps, and sync this folder's manifests with decryption"
                yield Diagnostic("KG0610", message, mark, hint, Severity.WARNING)


def _with_apps(
    items: list[Compiled],
    secrets: list[ExpectedSecret],
    external: External,
    config: Config,
    found: Diagnostics,
) -> list[Compiled]:
    from kaigen.pipeline.result import Compiled
    from kaigen.secrets.external import APP_NAME, secret_apps, untold, wanted

    todo = wanted(secrets)
    for secret in untold(todo, external):
        use = next(use for use in secret.uses if not use.keys)
        message = (
            f"`{secret.name}` is read whole ({use.purpose}), and `keyTemplate` needs the name of each key"
        )
        hint = (
            "name the keys where they are read, or leave `{key}` out of `secrets.externalSecrets.keyTemplate`"
        )
        found.add(Diagnostic("KG0331", message, use.mark, hint, path=use.field))
    todo = [item for item in todo if item.keys or not external.by_key]
    names = {(item.app.namespace, item.app.name): item for item in items}
    made = []
    for app in secret_apps(todo, external, FILE_NAME):
        taken = names.get((app.namespace, app.name))
        if taken is not None:
            message = f"`{APP_NAME}` is the name of the app that holds the ExternalSecrets of a namespace"
            found.add(
                taken.spec.diagnostic("KG0302", message, ("metadata", "name"), "give this one another name")
                if taken.spec
                else Diagnostic("KG0302", message, taken.documents[0].mark(()), "rename the file")
            )
        values = app.default_values()
        made.append(Compiled(app, values, app.render(values)))
    _check(made, todo, config, found)
    readers = {(app, secret.namespace) for secret in todo for app in secret.apps}
    return [*(_after_secrets(item, readers, APP_NAME) for item in items), *made]


def _check(
    made: Iterable[Compiled], secrets: Iterable[ExpectedSecret], config: Config, found: Diagnostics
) -> None:
    """What the API server would not take comes from a name or a key that an app reads."""
    from kaigen.check import check_object

    known = {(item.namespace, item.name): item for item in secrets}
    for item in made:
        for rendered in item.objects:
            secret = known[item.app.namespace, rendered.body["metadata"]["name"]]
            for finding in check_object(rendered.body, target=config.kubernetes):
                use = secret.uses[0]
                message = f"ExternalSecret {secret.name} at {finding.where}: {finding.message}"
                found.add(
                    Diagnostic(finding.code, message, use.mark, finding.hint, finding.severity, use.field)
                )


def _after_secrets(item: Compiled, readers: set[tuple[str, str]], name: str) -> Compiled:
    app = f"{item.app.namespace}/{item.app.name}"
    spaces = sorted(namespace for reader, namespace in readers if reader == app)
    return replace(item, needs=(*item.needs, *((space, name) for space in spaces))) if spaces else item
