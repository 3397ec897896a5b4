"""Keys that sign, for tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True)
class SigningKey:
    """A GnuPG key.

    Attributes:
        home: Its key ring.
        id: Its long ID, 16 hexadecimal digits.
        public: The public key, in ASCII armour.
    """

    home: Path
    id: str
    public: str


@contextmanager
def signing_key(address: str) -> Iterator[SigningKey]:
    """Make a GnuPG key of an email address, without a passphrase. It is deleted at the end."""
    home = Path(tempfile.mkdtemp())  # The names of sockets must be short.

    def gpg(*arguments: str) -> str:
        command = ["gpg", "--batch", "--passphrase", "", *arguments]
        env = os.environ | {"GNUPGHOME": str(home)}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    try:
        gpg("--quick-generate-key", f"Tests <{address}>", "rsa2048", "sign")
        # Fields are separated by colons; the fifth of a public key is its ID.
        listed = [line.split(":") for line in gpg("--with-colons", "--list-keys").splitlines()]
        yield SigningKey(home, next(fields[4] for fields in listed if fields[0] == "pub"), gpg("--armor", "--export"))
    finally:
        env = os.environ | {"GNUPGHOME": str(home)}
        subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=env, check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)
