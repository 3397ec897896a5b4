"""Signatures of artifacts in a registry, as cosign 3 attaches them and Flux verifies them.

The signature is a statement about the digest of the manifest, in a Sigstore bundle that is attached to it. cosign's
older format, a tag `sha256-DIGEST.sig`, is not written: see docs/supply-chain.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kaigen.diagnostics.errors import SystemFailure
from kaigen.publish.attachments import attach, descriptor
from kaigen.publish.reference import Reference
from kaigen.publish.registry import MANIFEST, Registry, digest_of
from kaigen.signing.bundle import BUNDLE, SignatureInvalid, signed, statement_of

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey, PublicKey

PREDICATE = "https://sigstore.dev/cosign/sign/v1"
_MOST_SIGNATURES = 100
"""Number of attached signatures that are read."""


def sign_manifest(registry: Registry, manifest: bytes, key: PrivateKey) -> bool:
    """Attach a signature to a manifest unless it has one of this key.

    Args:
        registry: the repository of the manifest.
        manifest: the manifest, which may be pushed later.
        key: signs it.

    Returns:
        Whether a signature was attached.

    Raises:
        SystemFailure: the registry is unreachable or rejects the push.
    """
    digest = digest_of(manifest)
    if _is_signed(registry, digest, [key.public]):
        return False
    algorithm, _, value = digest.partition(":")
    name = f"{registry.reference.host}/{registry.reference.repository}"
    bundle = signed(key, PREDICATE, [{"name": name, "digest": {algorithm: value}}], {})
    notes = {
        "dev.sigstore.bundle.content": "dsse-envelope",
        "dev.sigstore.bundle.predicateType": PREDICATE,
    }
    attach(registry, descriptor(MANIFEST, manifest), [(BUNDLE, bundle)], notes)
    return True


def verify_artifact(
    reference: Reference, digest: str, keys: Sequence[PublicKey], *, plain_http: bool = False
) -> str:
    """Return the digest of an artifact that one of the keys signed.

    Args:
        reference: its repository and tag.
        digest: its digest, in place of the tag; empty for none.
        keys: the keys of which one must have signed it.
        plain_http: use HTTP without TLS also for a registry on another machine.

    Raises:
        SignatureInvalid: there is no signature of these keys.
        SystemFailure: the registry is unreachable, or there is no such artifact.
    """
    registry = Registry(reference, plain_http=plain_http, access="pull")
    manifest = read_manifest(registry, digest or reference.tag)
    found = digest_of(manifest)
    if not _is_signed(registry, found, keys):
        raise SignatureInvalid(
            f"{reference} has no signature of {'this key' if len(keys) == 1 else 'these keys'}: {found}",
            hint="sign it with `kaigen sign` if you trust its content",
        )
    return found


def read_manifest(registry: Registry, name: str) -> bytes:
    """Return the manifest of a tag or digest.

    Raises:
        SystemFailure: there is none, or the registry sent another one than that of the digest.
    """
    manifest = registry.manifest(name)
    where = f"{registry.reference.host}/{registry.reference.repository}"
    if manifest is None:
        raise SystemFailure(f"{where} has no artifact {name}")
    if name.startswith("sha256:") and digest_of(manifest) != name:
        raise SystemFailure(f"{where} sent another artifact than {name}")
    return manifest


def _is_signed(registry: Registry, digest: str, keys: Sequence[PublicKey]) -> bool:
    """Return whether a manifest has a signature of one of the keys."""
    found = [each for each in registry.referrers(digest) if each.get("artifactType") == BUNDLE]
    return any(_signs(registry, str(each["digest"]), digest, keys) for each in found[:_MOST_SIGNATURES])


def _signs(registry: Registry, attached: str, digest: str, keys: Sequence[PublicKey]) -> bool:
    """Return whether an attachment is a signature of a digest by one of the keys."""
    content = registry.manifest(attached)
    if content is None:
        return False
    try:
        (layer,) = json.loads(content)["layers"]
        statement = statement_of(registry.whole_blob(str(layer["digest"])), keys)
        subjects = [each["digest"].get("sha256") for each in statement["subject"]]
        return statement["predicateType"] == PREDICATE and digest.partition(":")[2] in subjects
    except (SignatureInvalid, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
