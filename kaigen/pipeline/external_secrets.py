"""The ExternalSecrets of a run, which come from all apps together, and warnings about Secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.check.schema_check import check_object
from kaigen.config.settings import FILE_NAME
from kaigen.diagnostics.diagnostic import Diagnostic, Severity
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.summary import Detail
from kaigen.pipeline.units import summarize_units
from kaigen.secrets import external as writer
from kaigen.secrets.expected import gather, missing_keys
from kaigen.secrets.external import external_of
from kaigen.secrets.facts import merge_facts

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.pipeline.unit import Unit
    from kaigen.secrets.expected import ExpectedSecret
    from kaigen.secrets.external import External
    from kaigen.secrets.facts import Facts

AppKey = tuple[str, str]
"""Namespace and name of an app."""


class SecretApps(Struct, frozen=True):
    """The apps with the ExternalSecrets of a run.

    Attributes:
        apps: one app for each namespace.
        needs: for each app that reads such a Secret, the apps that create it.
        diagnostics: errors and warnings.
    """

    apps: tuple[Compiled, ...] = ()
    needs: Mapping[AppKey, tuple[AppKey, ...]] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()


def apps_of_units(units: Sequence[Unit], others: Sequence[Unit], config: Config) -> SecretApps | None:
    """Return the apps with ExternalSecrets; None when nothing in the repository creates Secrets.

    Args:
        units: the files of the run.
        others: the repository's other files, whose apps may read the same Secrets.
        config: the repository's settings.
    """
    plain = [item for unit in units if unit.has_plain for item in unit.apps()]
    if config.external_secrets is None and not plain:
        return None
    made = secret_apps(_facts(units), _facts_of_others(others), config)
    charts = not_in_charts(plain) if config.format == "chart" else ()
    return replace(made, diagnostics=(*made.diagnostics, *charts))


def _facts(units: Iterable[Unit]) -> list[Facts]:
    return [app.secrets for unit in units for app in unit.summary.apps if app.secrets is not None]


def _facts_of_others(others: Sequence[Unit]) -> list[Facts] | None:
    """Return the Secrets of the repository's other apps; None when one of these has errors."""
    summarize_units(others, Detail(secrets=True))
    return None if any(unit.has_errors for unit in others) else _facts(others)


def secret_apps(own: Sequence[Facts], others: Sequence[Facts] | None, config: Config) -> SecretApps:
    """Return the apps that create the Secrets which apps read, when kaigen.yaml configures External Secrets.

    Args:
        own: the Secrets of each app of the run.
        others: those of the repository's other apps; None when one of these cannot be compiled.
        config: the repository's settings.
    """
    expected = gather(merge_facts(own), config.external)
    found = list(missing_keys(expected))
    external = external_of(config)
    if external is None:
        return SecretApps(diagnostics=tuple(found))
    if others is None:
        message = "ExternalSecrets stay unchanged because another spec of the repository has errors"
        hint = "run `kaigen validate` without a path; several apps may read one Secret"
        found.append(Diagnostic("KG0332", message, None, hint, Severity.WARNING))
        return SecretApps(diagnostics=tuple(found))
    spaces = {item.namespace for item in expected}
    every = [item for item in gather(merge_facts([*own, *others]), config.external) if item.namespace in spaces]
    return _external(every, external, config, found)


def not_in_charts(items: Iterable[Compiled]) -> Iterator[Diagnostic]:
    """Return a warning for each encrypted Secret, which stays a manifest when apps are written as charts."""
    for item in items:
        for number, rendered in enumerate(item.objects):
            if rendered.object.verbatim:
                name = rendered.body["metadata"]["name"]
                message = f"the Secret `{name}` is written as a manifest: SOPS cannot decrypt what is in a chart"
                mark = item.documents[number].mark(("kind",)) if item.documents else None
                hint = "sync the manifests of this folder with decryption, and use charts for the apps only"
                yield Diagnostic("KG0610", message, mark, hint, Severity.WARNING)


def _external(every: list[ExpectedSecret], external: External, config: Config, found: list[Diagnostic]) -> SecretApps:
    secrets = writer.required_secrets(every)
    for secret in writer.secrets_with_unknown_keys(secrets, external):
        use = next(use for use in secret.uses if not use.keys)
        message = f"`{secret.name}` is read whole ({use.purpose}), and `keyTemplate` needs the name of each key"
        hint = "name the keys where they are read, or remove `{key}` from `secrets.externalSecrets.keyTemplate`"
        found.append(Diagnostic("KG0331", message, use.mark, hint, path=use.field))
    secrets = [item for item in secrets if item.keys or not external.by_key]
    compiled = []
    for plain in writer.secret_apps(secrets, external, FILE_NAME):
        app = replace(plain, digest_in_version=config.digest_in_version)
        values = app.default_values()
        compiled.append(Compiled(app, values, app.render(values)))
    found += _problems(compiled, secrets, config)
    needs: dict[AppKey, set[AppKey]] = {}
    for secret in secrets:
        for name in secret.apps:
            namespace, _, app_name = name.partition("/")
            needs.setdefault((namespace, app_name), set()).add((secret.namespace, writer.APP_NAME))
    ordered = {app: tuple(sorted(creators)) for app, creators in needs.items()}
    return SecretApps(tuple(compiled), ordered, tuple(found))


def _problems(compiled: Iterable[Compiled], secrets: Iterable[ExpectedSecret], config: Config) -> Iterator[Diagnostic]:
    """Return what the API server would reject: a name or a key that an app reads."""
    known = {(item.namespace, item.name): item for item in secrets}
    for item in compiled:
        for rendered in item.objects:
            secret = known[item.app.namespace, rendered.body["metadata"]["name"]]
            for problem in check_object(rendered.body, target=config.kubernetes):
                use = secret.uses[0]
                message = f"ExternalSecret {secret.name} at {problem.where}: {problem.message}"
                yield Diagnostic(problem.code, message, use.mark, problem.hint, problem.severity, use.field)
