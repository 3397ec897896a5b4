"""Who makes the Secrets that apps refer to: by default a person, or the External Secrets operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kaigen.config.settings import Config


@dataclass(frozen=True, slots=True)
class External:
    """How ExternalSecrets are written.

    Attributes:
        store: name of the store.
        kind: `ClusterSecretStore` or `SecretStore`.
        refresh: how often the store is read again.
        template: where in the store a Secret's values are.
        environment: fills in `{env}`.
    """

    store: str
    kind: str
    refresh: str
    template: str
    environment: str

    def place(self, namespace: str, name: str, key: str | None) -> tuple[str, str]:
        """Key and property of a value in the store; the property is empty when the key says it all.

        Args:
            namespace: of the Secret.
            name: of the Secret.
            key: of the value; None for all values.
        """
        given = {"env": self.environment, "namespace": namespace, "name": name, "key": key or ""}
        place = self.template
        for word, value in given.items():
            place = place.replace(f"{{{word}}}", value)
        return place, "" if "{key}" in self.template else key or ""

    @property
    def by_key(self) -> bool:
        """Whether the store has a place of its own for each key."""
        return "{key}" in self.template


def external_of(config: Config) -> External | None:
    """How a run writes ExternalSecrets; None when it writes none."""
    settings = config.external_secrets
    if settings is None:
        return None
    return External(
        store=settings.store,
        kind=settings.store_kind,
        refresh=settings.refresh_interval,
        template=settings.key_template,
        environment=config.environment,
    )
