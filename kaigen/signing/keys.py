"""Keys for signatures: ECDSA on P-256 with SHA-256, in PEM files, as cosign, OpenSSL and Flux read them.

Without the package `cryptography`, importing this module fails with an error that names the extra.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.diagnostics.errors import CheckFailed, InputError, SystemFailure

try:
    from cryptography import exceptions
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
except ImportError as missing:
    raise SystemFailure(
        "signatures need the package `cryptography`", hint="run `pip install 'kaigen[sign]'`"
    ) from missing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

PASSWORD_VARIABLE = "KAIGEN_SIGN_PASSWORD"
"""Variable with the password of an encrypted private key."""
_MAKE = "make one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out sign.key`"
_MOST_BYTES = 64 * 1024
_DIGESTS = {"secp256r1": hashes.SHA256(), "secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}
"""The digest that goes with each curve (source: OpenSSF's model_signing)."""


class PublicKey:
    """A key that verifies.

    Attributes:
        hint: base64 of the SHA-256 of the key, which bundles name it by.
    """

    def __init__(self, key: ec.EllipticCurvePublicKey) -> None:
        self._key = key
        self._digest = _DIGESTS[key.curve.name]
        der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.hint = base64.b64encode(hashlib.sha256(der).digest()).decode()

    def verify(self, signature: bytes, content: bytes) -> bool:
        """Return whether a signature of content was made with this key."""
        try:
            self._key.verify(signature, content, ec.ECDSA(self._digest))
        except exceptions.InvalidSignature:
            return False
        return True


class PrivateKey:
    """A key that signs.

    Attributes:
        public: the key that verifies what it signs.
    """

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self.public = PublicKey(key.public_key())

    def sign(self, content: bytes) -> bytes:
        """Return the signature of content, always the same one (RFC 6979)."""
        return self._key.sign(content, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))


def read_private_key(path: Path) -> PrivateKey:
    """Return the private key of a PEM file.

    Raises:
        InputError: KG0910, it is not such a key, or its password is wrong.
    """
    content = _read(path, "private")
    if b"BEGIN ENCRYPTED SIGSTORE" in content or b"BEGIN ENCRYPTED COSIGN" in content:
        raise InputError.of(
            "KG0910",
            f"{path} is encrypted in cosign's own format",
            hint=f"{_MAKE}, and import it with `cosign import-key-pair`",
        )
    password = os.environ.get(PASSWORD_VARIABLE, "").encode() or None
    try:
        if b"ENCRYPTED" not in content:
            password = None
        key: PrivateKeyTypes = serialization.load_pem_private_key(content, password)
    except TypeError as error:
        raise InputError.of(
            "KG0910", f"{path} is encrypted", hint=f"set {PASSWORD_VARIABLE} to its password"
        ) from error
    except ValueError as error:
        hint = f"check {PASSWORD_VARIABLE}" if password else _MAKE
        raise InputError.of("KG0910", f"{path} is not a readable private key", hint=hint) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != ec.SECP256R1.name:
        raise InputError.of("KG0910", f"{path} is not an ECDSA key on P-256", hint=_MAKE)
    return PrivateKey(key)


def read_public_key(path: Path) -> PublicKey:
    """Return the public key of a PEM file.

    Raises:
        InputError: KG0910, it is not such a key.
    """
    content = _read(path, "public")
    hint = "write it with `openssl pkey -in sign.key -pubout -out sign.pub`"
    if b"PRIVATE KEY" in content:
        raise InputError.of("KG0910", f"{path} is a private key, not a public one", hint=hint)
    try:
        key: PublicKeyTypes = serialization.load_pem_public_key(content)
    except ValueError as error:
        raise InputError.of("KG0910", f"{path} is not a public key in PEM", hint=hint) from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != ec.SECP256R1.name:
        raise InputError.of("KG0910", f"{path} is not an ECDSA key on P-256", hint=_MAKE)
    return PublicKey(key)


def public_key_of(pem: str) -> PublicKey:
    """Return the public key of a spec: ECDSA on P-256, P-384 or P-521.

    Raises:
        CheckFailed: it is not such a key.
    """
    try:
        key: PublicKeyTypes = serialization.load_pem_public_key(pem.encode())
    except (ValueError, exceptions.UnsupportedAlgorithm):
        raise CheckFailed("a key in `publicKeys` is not a public key in PEM") from None
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name not in _DIGESTS:
        raise CheckFailed("a key in `publicKeys` is not an ECDSA key on P-256, P-384 or P-521")
    return PublicKey(key)


def _read(path: Path, kind: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES)
    except OSError as error:
        raise InputError.of("KG0910", f"the {kind} key {path} cannot be read: {error.strerror}", hint=_MAKE) from error
    return content
