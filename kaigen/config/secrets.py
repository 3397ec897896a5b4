"""The block `secrets` of kaigen.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics
from kaigen.kinds.base import Block, ObjectName

REFRESH = r"^(0|([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"
KEY_TEMPLATE = r"^([^{}\s]|\{(env|namespace|name|key)\})+$"


class Store(Block):
    """The store that values are read from: an object that the External Secrets operator knows."""

    kind: Literal["ClusterSecretStore", "SecretStore"] | None = Field(
        None, description="Kind of the store. Default: ClusterSecretStore."
    )
    name: ObjectName | None = Field(None, description="Name of the store.", examples=["vault"])


class ExternalSecretsBlock(Block):
    """How ExternalSecrets are written."""

    store: Store | None = Field(None, description="Where the values are.")
    refresh_interval: Annotated[str, Field(pattern=REFRESH, min_length=1, max_length=20)] | None = Field(
        None,
        description="How often the operator reads the store again; 0 for once. Default: 1h.",
        examples=["1h"],
    )
    key_template: Annotated[str, Field(pattern=KEY_TEMPLATE, min_length=1, max_length=253)] | None = Field(
        None,
        description="Where in the store a Secret's values are, with `{env}`, `{namespace}` and `{name}` filled "
        "in. A Secret's key is a property there, unless `{key}` is filled in too. Default: `{namespace}/{name}`.",
    )


class Secrets(Block):
    """What is written for the Secrets that apps refer to."""

    provider: Literal["references", "externalSecrets"] | None = Field(
        None,
        description="`references` writes nothing; `externalSecrets` writes an ExternalSecret for each Secret that "
        "nothing else makes. Default: `externalSecrets` when that block is there, else `references`.",
    )
    external_secrets: ExternalSecretsBlock | None = Field(
        None, description="How ExternalSecrets are written.", examples=[{"store": {"name": "vault"}}]
    )


def settled_secrets(
    layers: Sequence[tuple[Secrets | None, tuple[str, ...]]], document: Any, found: Diagnostics
) -> dict[str, Any]:
    """The settings of one run, later layers over earlier ones.

    Args:
        layers: the block of the file and that of its environment, each with the place of what holds it.
        document: the file.
        found: takes what is wrong (KG0730).

    Returns:
        What `kaigen.secrets.provider.External` is made of, less defaults; empty when nothing is written.
    """
    whole: dict[str, Any] = {}
    last: tuple[str, ...] = ()
    for layer, place in layers:
        if layer is not None:
            whole = _over(whole, layer.model_dump(by_alias=True, exclude_none=True))
            last = (*place, "secrets")
    block: dict[str, Any] = whole.get("externalSecrets", {})
    chosen = whole.get("provider", "externalSecrets" if "externalSecrets" in whole else "references")
    if chosen != "externalSecrets":
        return {}
    if "name" not in block.get("store", {}):
        message = "ExternalSecrets need the name of a store"
        hint = "for example `externalSecrets: {store: {name: vault}}`"
        place = (*last, "externalSecrets", "store")
        found.add(Diagnostic("KG0730", message, document.mark(place), hint, path=".".join((*place, "name"))))
    return block


def _over(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{
            key: _over(base[key], value)
            if isinstance(value, dict) and isinstance(base.get(key), dict)
            else value
            for key, value in top.items()
        },
    }
