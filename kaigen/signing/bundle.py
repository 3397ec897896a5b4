"""Signed in-toto statements, as Sigstore bundles without a certificate.

Formats: Sigstore bundle v0.3 (github.com/sigstore/protobuf-specs), DSSE v1 (github.com/secure-systems-lab/dsse),
in-toto Statement v1 (github.com/in-toto/attestation).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.diagnostics.errors import CheckFailed

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey, PublicKey

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
_PAYLOAD_TYPE = "application/vnd.in-toto+json"


class SignatureInvalid(CheckFailed):
    """A signature is missing or wrong."""


def canonical_json(data: Mapping[str, Any]) -> bytes:
    """Return JSON whose bytes depend only on the content."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sign_statement(
    key: PrivateKey, predicate_type: str, subjects: Sequence[Mapping[str, Any]], predicate: Mapping[str, Any]
) -> bytes:
    """Return the bundle of a statement, which depends only on the key and the statement.

    Args:
        key: signs it.
        predicate_type: URI of what the statement says about its subjects.
        subjects: name and digest of each subject.
        predicate: what it says.
    """
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [dict(each) for each in subjects],
        "predicateType": predicate_type,
        "predicate": dict(predicate),
    }
    payload = canonical_json(statement)
    signature = key.sign(_encoded_for_signing(_PAYLOAD_TYPE, payload))
    return canonical_json(
        {
            "mediaType": BUNDLE,
            "verificationMaterial": {"publicKey": {"hint": key.public.hint}},
            "dsseEnvelope": {
                "payload": base64.b64encode(payload).decode(),
                "payloadType": _PAYLOAD_TYPE,
                "signatures": [{"sig": base64.b64encode(signature).decode()}],
            },
        }
    )


def statement_of(bundle: bytes, keys: Sequence[PublicKey]) -> dict[str, Any]:
    """Return the statement of a bundle that one of the keys signed.

    Raises:
        SignatureInvalid: none of the keys signed it, or it is not a bundle of a statement.
    """
    try:
        envelope = json.loads(bundle)["dsseEnvelope"]
        kind = envelope["payloadType"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"]]
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise SignatureInvalid("the signature is not a Sigstore bundle of a statement") from error
    if kind != _PAYLOAD_TYPE:
        raise SignatureInvalid("the signature is not one of an in-toto statement")
    content = _encoded_for_signing(_PAYLOAD_TYPE, payload)
    if not any(key.verify(signature, content) for key in keys for signature in signatures):
        raise SignatureInvalid("none of the keys made the signature")
    try:
        statement = json.loads(payload)
    except (ValueError, RecursionError):
        statement = None
    if not isinstance(statement, dict) or statement.get("_type") != STATEMENT_TYPE:
        raise SignatureInvalid("the signed content is not an in-toto statement")
    return statement


def _encoded_for_signing(kind: str, payload: bytes) -> bytes:
    """Return what is signed of a payload: DSSE's pre-authentication encoding."""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
