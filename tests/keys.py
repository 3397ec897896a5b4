"""Keys that sign, for tests."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec


def write_keys(folder: Path, name: str = "sign", password: str = "") -> tuple[Path, Path]:
    """Write a new key pair.

    Returns:
        The files with the private and the public key.
    """
    folder.mkdir(exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        encryption = serialization.BestAvailableEncryption(password.encode())
    pem = serialization.Encoding.PEM
    private.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption))
    public.write_bytes(key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo))
    return private, public
