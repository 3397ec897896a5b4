"""Signs files in the format of OpenSSF Model Signing 1.0."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_KIND = "application/vnd.in-toto+json"
_KEY = ec.generate_private_key(ec.SECP256R1())
_DER = _KEY.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
SIGNED_BY = f"--signed-by={base64.b64encode(_DER).decode()}"
"""The option with the public key."""
PEM = (
    _KEY.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()
)
"""The public key as specs have it."""


def signature(files: Iterable[tuple[object, bytes]]) -> bytes:
    """Return the signature of files, each with its name and content."""
    listed = [{"name": name, "algorithm": "sha256", "digest": hashlib.sha256(data).hexdigest()} for name, data in files]
    whole = hashlib.sha256(b"".join(bytes.fromhex(str(each["digest"])) for each in listed)).hexdigest()
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {"sha256": whole}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {"serialization": {"method": "files", "hash_type": "sha256"}, "resources": listed},
    }
    payload = json.dumps(statement).encode()
    content = b"DSSEv1 %d %s %d %s" % (len(_KIND), _KIND.encode(), len(payload), payload)
    made = base64.b64encode(_KEY.sign(content, ec.ECDSA(hashes.SHA256()))).decode()
    envelope = {"payload": base64.b64encode(payload).decode(), "payloadType": _KIND, "signatures": [{"sig": made}]}
    return json.dumps({"dsseEnvelope": envelope}).encode()
