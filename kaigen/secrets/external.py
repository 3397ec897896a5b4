"""ExternalSecrets for the Secrets that apps read: one app in each namespace.

Several apps may read one Secret. If its ExternalSecret belonged to one of them, deleting that app would take the Secret
from the others. So one app has all ExternalSecrets of a namespace, and an ExternalSecret is removed when no app reads
its Secret any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kaigen.compile.app import App, Object, collect_settings
from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Setting, Tree
from kaigen.secrets.expected import ExpectedSecret

if TYPE_CHECKING:
    from kaigen.config.settings import Config


_NOT_WAITED_FOR = {"argocd.argoproj.io/ignore-healthcheck": "true"}
"""Leaves the health of an object out of that of its Application, for which later waves wait.

Source: Argo CD 3.5, `setApplicationHealth` in controller/health.go. Flux does the same without `wait`.
"""

API_VERSION = "external-secrets.io/v1"


class External(Struct, frozen=True):
    """How ExternalSecrets are written.

    Attributes:
        store: name of the store.
        kind: `ClusterSecretStore` or `SecretStore`.
        refresh: interval between reads of the store.
        template: key of a Secret's values in the store.
        environment: replaces `{env}`.
        labels: labels of every object.
        annotations: annotations of every object.
    """

    store: str
    kind: str
    refresh: str
    template: str
    environment: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def location(self, namespace: str, name: str, key: str | None) -> tuple[str, str]:
        """Return key and property of a value in the store; the property is empty when the key is enough.

        Args:
            namespace: of the Secret.
            name: of the Secret.
            key: of the value; None for all values.
        """
        given = {"env": self.environment, "namespace": namespace, "name": name, "key": key or ""}
        location = self.template
        for word, value in given.items():
            location = location.replace(f"{{{word}}}", value)
        return location, "" if "{key}" in self.template else key or ""

    @property
    def by_key(self) -> bool:
        """Whether the store has a separate entry for each key."""
        return "{key}" in self.template


def external_of(config: Config) -> External | None:
    """Return how a run writes ExternalSecrets; None when it writes none."""
    settings = config.external_secrets
    if settings is None:
        return None
    return External(
        store=settings.store,
        kind=settings.store_kind,
        refresh=settings.refresh_interval,
        template=settings.key_template,
        environment=config.environment,
        labels=config.labels,
        annotations={**config.annotations, **({} if config.only_flux else _NOT_WAITED_FOR)},
    )


APP_NAME = "kaigen-secrets"
"""Name of the app in each namespace."""
KIND = "ExternalSecrets"


def required_secrets(secrets: Iterable[ExpectedSecret]) -> list[ExpectedSecret]:
    """Return the Secrets that need an ExternalSecret: an app requires them and nothing else makes them."""
    return [item for item in secrets if item.maker is None and not item.optional]


def secret_apps(secrets: Iterable[ExpectedSecret], external: External, source: str) -> list[App]:
    """Return an app for each namespace that needs Secrets, with an ExternalSecret for each Secret.

    Args:
        secrets: the Secrets to make.
        external: how ExternalSecrets are written.
        source: the file that configures this.
    """
    spaces: dict[str, list[ExpectedSecret]] = {}
    for item in secrets:
        spaces.setdefault(item.namespace, []).append(item)
    return [_app(namespace, items, external, source) for namespace, items in sorted(spaces.items())]


def _app(namespace: str, secrets: list[ExpectedSecret], external: External, source: str) -> App:
    frame = Frame(APP_NAME, external.labels, external.annotations)
    metadata = frame.metadata("", "secrets")
    objects = tuple(
        Object(_role(item.name), _body(item, external, _settings(external), {**metadata, "name": item.name}))
        for item in secrets
    )
    count = "one Secret" if len(secrets) == 1 else f"{len(secrets)} Secrets"
    return App(
        name=APP_NAME,
        namespace=namespace,
        kind=KIND,
        source=source,
        objects=objects,
        settings=collect_settings(objects, ("secretStore", "refreshInterval")),
        summary=f"ExternalSecrets for {count} that the apps of {namespace} read.",
        labels=frame.common_labels,
        selector_labels=frame.selector_labels,
    )


def skeleton(secret: ExpectedSecret, external: External) -> dict[str, Tree]:
    """Return an ExternalSecret of plain values for one Secret."""
    metadata: dict[str, Tree] = {"name": secret.name, "namespace": secret.namespace}
    given = (external.store, external.kind, external.refresh)
    return _body(secret, external, given, metadata)


def secrets_with_unknown_keys(secrets: Iterable[ExpectedSecret], external: External) -> list[ExpectedSecret]:
    """Return the Secrets with keys that no app lists, when the store needs the name of each key."""
    return [item for item in secrets if external.by_key and item.whole]


def _role(name: str) -> str:
    return f"externalsecret-{re.sub(r'[^a-z0-9.-]+', '-', name.lower())}"


def _body(
    secret: ExpectedSecret, external: External, given: tuple[Tree, Tree, Tree], metadata: Mapping[str, Tree]
) -> dict[str, Tree]:
    store, kind, refresh = given
    everything = ""
    named = secret.keys
    if secret.whole and not external.by_key:
        everything, _ = external.location(secret.namespace, secret.name, None)
        named = ()
    return external_secret(
        metadata,
        secret=secret.name,
        kind=secret.type,
        store=store,
        store_kind=kind,
        refresh=refresh,
        values=[(key, *external.location(secret.namespace, secret.name, key)) for key in named],
        everything=everything,
    )


def _settings(external: External) -> tuple[Setting, Setting, Setting]:
    kinds = {"type": "string", "enum": ["ClusterSecretStore", "SecretStore"]}
    often = "How often the store is read again; 0 for once."
    return (
        settings.text("secretStore.name", external.store, "Store that values are read from."),
        Setting("secretStore.kind", external.kind, "Kind of the store.", kinds),
        settings.text("refreshInterval", external.refresh, often),
    )


def external_secret(
    metadata: Mapping[str, Tree],
    *,
    secret: str,
    kind: str,
    store: Tree,
    store_kind: Tree,
    refresh: Tree,
    values: Sequence[tuple[str, str, str]],
    everything: str = "",
) -> dict[str, Tree]:
    """Return an ExternalSecret.

    Args:
        metadata: its metadata.
        secret: name of the Secret that the operator makes.
        kind: type of that Secret.
        store: name of the store.
        store_kind: kind of the store.
        refresh: how often the operator reads the store.
        values: key in the Secret, key in the store, and property there, empty for none.
        everything: key in the store whose properties all become keys; empty for none.
    """
    spec: dict[str, Tree] = {
        "refreshInterval": refresh,
        "secretStoreRef": {"kind": store_kind, "name": store},
        # With a template, even an empty one, the operator does not copy this object's labels and annotations to the
        # Secret, including those by which Argo CD recognises its own objects.
        "target": {"name": secret, "creationPolicy": "Owner", "deletionPolicy": "Retain", "template": {"type": kind}},
    }
    if values:
        spec["data"] = [{"secretKey": key, "remoteRef": _remote(place, prop)} for key, place, prop in values]
    if everything:
        spec["dataFrom"] = [{"extract": _remote(everything, "")}]
    return {"apiVersion": API_VERSION, "kind": "ExternalSecret", "metadata": dict(metadata), "spec": spec}


def _remote(place: str, prop: str) -> dict[str, Tree]:
    # The CRD's defaults are written out, since Argo CD reports defaulted fields in lists as differences.
    return {
        "key": place,
        **({"property": prop} if prop else {}),
        "conversionStrategy": "Default",
        "decodingStrategy": "None",
        "metadataPolicy": "None",
    }
