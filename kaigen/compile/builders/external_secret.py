"""ExternalSecrets, which the External Secrets operator makes Secrets from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.compile.expressions import Tree

API_VERSION = "external-secrets.io/v1"


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
