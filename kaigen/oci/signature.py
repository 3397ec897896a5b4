"""Signatures of artifacts in a registry, as cosign 3 attaches them and Flux verifies them.

The signature is a statement about the digest of the manifest, with the repository and the tags that it is for, in a
Sigstore bundle that is attached to it. cosign's older format, a tag `sha256-DIGEST.sig`, is not written: see
docs/supply-chain.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.diagnostics.errors import SystemFailure
from kaigen.oci.attachments import attach, descriptor
from kaigen.oci.reference import Reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.signing.bundle import BUNDLE, SignatureInvalid, sign_statement, statement_of

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey, PublicKey

PREDICATE = "https://sigstore.dev/cosign/sign/v1"
TAGS = "kaigen.dev/tags"
"""Annotation of a signed subject: the tags of the artifact, separated by spaces."""
_MOST_SIGNATURES = 100
"""Number of attached signatures that are read."""


class Claim(Struct, frozen=True):
    """The name of an artifact, as its signature or a user has it.

    Attributes:
        name: HOST/REPOSITORY; empty where it is not known.
        tags: its tags; empty where they are not known.
    """

    name: str = ""
    tags: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name or 'any repository'}:{' or '.join(self.tags)}" if self.tags else self.name


def sign_manifest(registry: Registry, manifest: bytes, key: PrivateKey, tags: Sequence[str] = ()) -> bool:
    """Attach a signature to a manifest unless it has one of this key for the same repository and tags.

    Args:
        registry: the repository of the manifest.
        manifest: the manifest, which may be pushed later.
        key: signs it.
        tags: the tags that it is signed for; none says nothing about tags.

    Returns:
        Whether a signature was attached.

    Raises:
        SystemFailure: the registry is unreachable or rejects the push.
    """
    digest = digest_of(manifest)
    name = _name(registry.reference)
    claims = _claims(registry, digest, [key.public])
    if any(claim.name == name and set(tags) <= set(claim.tags) for claim in claims):
        return False
    algorithm, _, value = digest.partition(":")
    subject: dict[str, Any] = {"name": name, "digest": {algorithm: value}}
    if tags:
        # Where cosign puts `cosign sign --annotations`.
        subject["annotations"] = {TAGS: " ".join(sorted(set(tags)))}
    bundle = sign_statement(key, PREDICATE, [subject], {})
    notes = {"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": PREDICATE}
    attach(registry, descriptor(MANIFEST, manifest), [(BUNDLE, bundle)], notes)
    return True


def verify_artifact(
    reference: Reference,
    digest: str,
    keys: Sequence[PublicKey],
    *,
    expected: Claim | None = None,
    plain_http: bool = False,
) -> str:
    """Return the digest of an artifact that one of the keys signed for this repository and tag.

    A signature that has no name or no tags, such as one of cosign, is valid for each, unless they are expected.

    Args:
        reference: its repository and tag.
        digest: its digest; empty for that of the tag.
        keys: the keys of which one must have signed it.
        expected: name and tags that the signature must have, in place of those of the reference.
        plain_http: use HTTP without TLS also for a registry on another machine.

    Raises:
        SignatureInvalid: there is no signature of these keys, or it is for another repository or tag.
        SystemFailure: the registry is unreachable, or there is no such artifact.
    """
    expected = expected or Claim()
    registry = Registry(reference, plain_http=plain_http, access="pull")
    manifest = read_manifest(registry, digest or reference.tag)
    found = digest_of(manifest)
    claims = list(dict.fromkeys(_claims(registry, found, keys)))
    if not claims:
        raise SignatureInvalid(
            f"{reference} has no signature of {'this key' if len(keys) == 1 else 'these keys'}: {found}",
            hint="sign it with `kaigen sign` if you trust its content",
        )
    own = Claim(_name(reference), (reference.tag,) if reference.tag else ())
    if not any(_fits(claim, own, expected) for claim in claims):
        wanted = Claim(expected.name or own.name, expected.tags or own.tags)
        listed = ", ".join(str(claim) or "an artifact without a name" for claim in claims)
        raise SignatureInvalid(
            f"{reference} is signed as {listed}, and not as {wanted}: {found}",
            hint="it may be an older or another artifact; for a copy, give the signed name with --name and --tag",
        )
    return found


def _fits(claim: Claim, own: Claim, expected: Claim) -> bool:
    """Return whether a signature is for the artifact that it was found at, or for what is expected."""
    name = claim.name == expected.name if expected.name else claim.name in ("", own.name)
    if expected.tags:
        return name and set(expected.tags) <= set(claim.tags)
    return name and (not claim.tags or set(own.tags) <= set(claim.tags))


def _name(reference: Reference) -> str:
    return f"{reference.host}/{reference.repository}"


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


def _claims(registry: Registry, digest: str, keys: Sequence[PublicKey]) -> Iterator[Claim]:
    """Yield what the signatures of a manifest by one of the keys say about it."""
    found = [each for each in registry.referrers(digest) if each.get("artifactType") == BUNDLE]
    for each in found[:_MOST_SIGNATURES]:
        yield from _claims_of(registry, str(each["digest"]), digest, keys)


def _claims_of(registry: Registry, attached: str, digest: str, keys: Sequence[PublicKey]) -> list[Claim]:
    """Return what an attachment says about a digest; empty unless it is a signature of it by one of the keys."""
    content = registry.manifest(attached)
    if content is None:
        return []
    try:
        (layer,) = json.loads(content)["layers"]
        statement = statement_of(registry.whole_blob(str(layer["digest"])), keys)
        if statement["predicateType"] != PREDICATE:
            return []
        return [
            _claim(subject)
            for subject in statement["subject"]
            if subject["digest"].get("sha256") == digest.partition(":")[2]
        ]
    except (SignatureInvalid, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _claim(subject: Mapping[str, Any]) -> Claim:
    """Return name and tags of a subject.

    Raises:
        TypeError: they are not texts.
    """
    name, tags = subject.get("name", ""), subject.get("annotations", {}).get(TAGS, "")
    if not isinstance(name, str) or not isinstance(tags, str):
        raise TypeError("the name or the tags of a subject are not text")
    return Claim(name, tuple(tags.split()))
