"""The block `secrets` of kaigen.yaml."""

import re
from typing import Annotated, Literal

from msgspec import Meta

from kaigen.config.block_settings import ExternalSecretsSettings
from kaigen.config.layers import Layers
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.problem import dotted_path
from kaigen.kinds.base import ObjectName, text
from kaigen.kinds.block import Block

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
    block: Secrets | None, has_tenants: bool, layers: Layers, problems: Diagnostics
) -> ExternalSecretsSettings | None:
    """Return the settings of one run; None to write no ExternalSecrets.

    Args:
        block: the block with the fields of all layers; None without it.
        has_tenants: whether several teams share the store.
        layers: where the fields are.
        problems: receives an error when the store has no name, or when a tenant could read the entries of another one.
    """
    if block is None:
        return None
    written = block.external_secrets or ExternalSecretsBlock()
    default = "externalSecrets" if block.external_secrets else "references"
    if (block.provider or default) != "externalSecrets":
        return None
    store, base = written.store or Store(), ExternalSecretsSettings(store="")
    settings = ExternalSecretsSettings(
        store=store.name or "",
        store_kind=store.kind or base.store_kind,
        refresh_interval=written.refresh_interval or base.refresh_interval,
        key_template=written.key_template or base.key_template,
    )
    if has_tenants:
        _check_template(settings.key_template, layers, problems)
    if not settings.store:
        place = (*layers.path("secrets"), "externalSecrets", "store")
        problems.add(
            Diagnostic(
                "KG0730",
                "ExternalSecrets need the name of a store",
                layers.mark_of(place),
                "write, for example, `externalSecrets: {store: {name: vault}}`",
                path=dotted_path((*place, "name")),
            )
        )
    return settings


def _check_template(template: str, layers: Layers, problems: Diagnostics) -> None:
    """Report a template that gives Secrets of two namespaces the same entry of the store."""
    if NAMESPACE_IN_KEY.fullmatch(template):
        return
    place = layers.path("secrets", "externalSecrets", "keyTemplate")
    safe = "/".join(part for part in ("{env}", "{namespace}", "{name}", "{key}") if part in template or "name" in part)
    problems.add(
        Diagnostic(
            "KG0732",
            f"with `{template}`, Secrets of two namespaces can have the same entry of the store, so one tenant reads "
            "the values of another one",
            layers.mark_of(place),
            "put a character that no namespace has, such as `/` or `_`, before `{namespace}` (unless it is at the "
            f"start) and after it: `{safe}`",
            path=dotted_path(place),
        )
    )
