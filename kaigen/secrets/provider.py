"""How the External Secrets operator makes the Secrets that apps refer to; without it, a person makes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

if TYPE_CHECKING:
    from kaigen.config.settings import Config


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
        annotations=config.annotations,
    )
