"""The block `secrets` of kaigen.yaml."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from kaigen.config.block_settings import ExternalSecretsSettings
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.kinds.base import ObjectName, text
from kaigen.kinds.block import Block
from kaigen.yaml.document import Document

NAMESPACE_IN_KEY = re.compile(
    r"(?:[^{}]|\{env\}[^{}a-zA-Z0-9-])*\{namespace\}(?:$|[^{}a-zA-Z0-9-].*)"  # only fixed texts before it
    r"|(?:.*/)?\{namespace\}(?:/.*)?"  # between slashes, which neither names nor keys contain
)
"""Templates of keys in which the namespace is always read as what was written: no other namespace, with another name,
gives the same key. Names of namespaces and environments have lower-case letters, digits and hyphens only."""

REFRESH = r"^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
KEY_TEMPLATE = r"^([^{}\s]|\{(env|namespace|name|key)\})+$"


class Store(Block):
    """The SecretStore or ClusterSecretStore of the External Secrets operator."""

    kind: Annotated[
        Literal["ClusterSecretStore", "SecretStore"] | None,
        Meta(description="Kind of the store. Default: ClusterSecretStore."),
    ] = None
    name: Annotated[ObjectName | None, Meta(description="Name of the store.", examples=["vault"])] = None


class ExternalSecretsBlock(Block):
    """Settings of ExternalSecrets."""

    store: Annotated[Store | None, Meta(description="The secret store.")] = None
    refresh_interval: Annotated[
        Annotated[str, text(REFRESH, min_length=1, max_length=20)] | None,
        Meta(
            description="Interval at which the operator reads the store; 0 to read it once. Default: 1h.",
            examples=["1h"],
        ),
    ] = None
    key_template: Annotated[
        Annotated[str, text(KEY_TEMPLATE, min_length=1, max_length=253)] | None,
        Meta(
            description="Entry of a Secret in the store; `{env}`, `{namespace}` and `{name}` are replaced. The "
            "keys of the Secret are properties of the entry, unless the template contains `{key}`. Default: "
            "`{namespace}/{name}`."
        ),
    ] = None


class Secrets(Block):
    """How Secrets that apps refer to are created."""

    provider: Annotated[
        Literal["references", "externalSecrets"] | None,
        Meta(
            description="`references` writes nothing; `externalSecrets` writes an ExternalSecret for each Secret "
            "that nothing else creates. Default: `externalSecrets` if that block is set, `references` if not."
        ),
    ] = None
    external_secrets: Annotated[
        ExternalSecretsBlock | None,
        Meta(description="Settings of ExternalSecrets.", examples=[{"store": {"name": "vault"}}]),
    ] = None


def external_secrets_settings(
    layers: Sequence[tuple[Secrets | None, tuple[str, ...]]],
    has_tenants: bool,
    document: Document | None,
    problems: Diagnostics,
) -> ExternalSecretsSettings | None:
    """Return the settings of one run, later layers merged over earlier ones; None to write no ExternalSecrets.

    Args:
        layers: the block of the file and that of its environment, each with the path of what contains it.
        has_tenants: whether several teams share the store.
        document: kaigen.yaml; None without the file.
        problems: receives an error when the store has no name, or when a tenant could read the entries of another one.
    """
    given = [(layer, place) for layer, place in layers if layer is not None]
    blocks = [layer.external_secrets for layer, _ in given if layer.external_secrets is not None]
    default = "externalSecrets" if blocks else "references"
    provider = next((layer.provider for layer, _ in reversed(given) if layer.provider), default)
    if document is None or provider != "externalSecrets":
        return None
    settings = ExternalSecretsSettings(store="")
    for block in blocks:
        store = block.store or Store()
        settings = ExternalSecretsSettings(
            store=store.name or settings.store,
            store_kind=store.kind or settings.store_kind,
            refresh_interval=block.refresh_interval or settings.refresh_interval,
            key_template=block.key_template or settings.key_template,
        )
    if has_tenants:
        _check_template(settings.key_template, given, document, problems)
    if not settings.store:
        place = (*given[-1][1], "secrets", "externalSecrets", "store")
        problems.add(
            Diagnostic(
                "KG0730",
                "ExternalSecrets need the name of a store",
                document.mark(place),
                "write, for example, `externalSecrets: {store: {name: vault}}`",
                path=".".join((*place, "name")),
            )
        )
    return settings


def _check_template(
    template: str, given: Sequence[tuple[Secrets, tuple[str, ...]]], document: Document, problems: Diagnostics
) -> None:
    """Report a template that gives Secrets of two namespaces the same entry of the store."""
    if NAMESPACE_IN_KEY.fullmatch(template):
        return
    place = next(
        (*place, "secrets", "externalSecrets", "keyTemplate")
        for layer, place in reversed(given)
        if layer.external_secrets is not None and layer.external_secrets.key_template
    )
    safe = "/".join(part for part in ("{env}", "{namespace}", "{name}", "{key}") if part in template or "name" in part)
    problems.add(
        Diagnostic(
            "KG0732",
            f"with `{template}`, Secrets of two namespaces can have the same entry of the store, so one tenant reads "
            "the values of another one",
            document.mark(place),
            "put a character that no namespace has, such as `/` or `_`, before `{namespace}` (unless it is at the "
            f"start) and after it: `{safe}`",
            path=".".join(place),
        )
    )
