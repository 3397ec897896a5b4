"""Signatures of models: the OpenSSF Model Signing format 1.0, verified with a public key and without a network.

The format is a Sigstore bundle with a DSSE envelope (github.com/sigstore/protobuf-specs, secure-systems-lab/dsse) of an
in-toto statement that lists the SHA-256 of each file (github.com/ossf/model-signing-spec).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kaigen_downloader.errors import BadInput, Refused
from kaigen_downloader.folder import split
from kaigen_downloader.text import listed, plural, shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

    from kaigen_downloader.marker import StoredFile

_PAYLOAD = "application/vnd.in-toto+json"
_PREDICATE = "https://model_signing/signature/v1.0"
_LARGEST = 64 << 20
"""Bytes of a signature: it has about 150 for each file."""
_IGNORED = frozenset({".gitattributes", ".gitignore"})
"""Files of Git, which the signers leave out and no engine reads."""

Selection = Callable[[Collection[str]], Collection[str]]
"""Returns those of the paths of a source that are fetched."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that the files must have.

    Attributes:
        keys: public keys of which one must have signed.
        file: path of the signature among the files.
    """

    keys: tuple[EllipticCurvePublicKey, ...]
    file: str

    def check(self, files: Sequence[StoredFile], read: Callable[[str], bytes | None], selection: Selection) -> str:
        """Check that each file is as it was signed, and that no signed file is missing.

        Args:
            files: the stored files.
            read: returns the content of a stored file.
            selection: returns which of the signed files must be there.

        Returns:
            The result in words.

        Raises:
            Refused: a file differs, is not signed or is missing, or there is no signature of the keys.
        """
        sums = {file.path: file.sha256 for file in files}
        size = next((file.size for file in files if file.path == self.file), None)
        content = read(self.file) if size is not None and size <= _LARGEST else None
        if content is None:
            raise Refused(f"the source has no signature {self.file}: sign the model, or add the file to `include`")
        resources = _resources(_verified(content, self.keys, self.file), self.file)
        for path, digest in sums.items():
            if path == self.file or (path in _IGNORED and path not in resources):
                continue
            if path not in resources:
                raise Refused(f"{path} is not in the signature {self.file}")
            if resources[path] != digest:
                raise Refused(f"{path} is not the file that was signed: its checksum differs from {self.file}")
        self._check_complete(sums, selection(resources.keys() - {self.file}))
        return f"signature {self.file} verified"

    def _check_complete(self, have: Collection[str], expected: Collection[str]) -> None:
        if not expected:
            raise Refused(
                f"the signature {self.file} lists none of the files that are fetched, so it says nothing about them: "
                "sign them, or fetch files that are signed"
            )
        if missing := sorted(set(expected).difference(have)):
            raise Refused(
                f"the source lacks {plural(len(missing), 'file')} of the signature {self.file}: "
                f"{listed(map(shown, missing))}"
            )


def signed(keys: Sequence[str], file: str) -> Signed:
    """Return a signature that files must have.

    Args:
        keys: public keys in DER, in base64.
        file: path of the signature among the files.

    Raises:
        BadInput: a key or the path is not valid.
    """
    split(file)
    return Signed(tuple(map(_key, keys)), file)


def _key(text: str) -> EllipticCurvePublicKey:
    # A heavy import that most downloads do not need.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_der_public_key

    try:
        key = load_der_public_key(base64.b64decode(text, validate=True))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadInput("--signed-by is not a public key in base64") from error
    if not isinstance(key, EllipticCurvePublicKey) or key.key_size not in (256, 384, 521):
        raise BadInput("--signed-by is not an ECDSA key on P-256, P-384 or P-521")
    return key


def _verified(content: bytes, keys: Sequence[EllipticCurvePublicKey], file: str) -> dict[str, Any]:
    """Return the statement of a signature of one of the keys.

    Raises:
        Refused: there is none.
    """
    try:
        envelope = json.loads(content)["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        (signature,) = (base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"])
        kind = envelope["payloadType"]
    except (ValueError, KeyError, TypeError, RecursionError, binascii.Error) as error:
        raise Refused(f"{file} is not a signature in OpenSSF's format 1.0") from error
    signed = b"DSSEv1 %d %s %d %s" % (len(_PAYLOAD), _PAYLOAD.encode(), len(payload), payload)
    if kind != _PAYLOAD or not any(_is_by(key, signature, signed) for key in keys):
        raise Refused(f"{file} is not a signature of the keys in the spec")
    try:
        statement = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{file} does not sign a list of files") from error
    if not isinstance(statement, dict) or statement.get("predicateType") != _PREDICATE:
        raise Refused(f"{file} does not sign a list of files")
    return statement


def _is_by(key: EllipticCurvePublicKey, signature: bytes, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

    digest = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}[key.key_size]
    try:
        key.verify(signature, signed, ECDSA(digest))
    except InvalidSignature:
        return False
    return True


def _resources(statement: Mapping[str, Any], file: str) -> dict[str, str]:
    """Return the SHA-256 of each signed file, by path.

    Raises:
        Refused: files are signed in another way.
    """
    try:
        predicate = statement["predicate"]
        serialization = predicate["serialization"]
        found = [(each["name"], each["algorithm"], each["digest"]) for each in predicate["resources"]]
        way = (serialization["method"], serialization["hash_type"])
        digest = hashlib.sha256(b"".join(bytes.fromhex(value) for _, _, value in found)).hexdigest()
        whole = [each["digest"] for each in statement["subject"]] == [{"sha256": digest}]
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"{file} does not sign a list of files") from error
    if way != ("files", "sha256") or any(algorithm != "sha256" for _, algorithm, _ in found):
        raise Refused(f"{file} signs parts of files or other checksums: sign whole files with SHA-256")
    if not whole:
        raise Refused(f"{file} contradicts itself: the digest of its list differs")
    paths = [name for name, _, _ in found]
    if not all(isinstance(path, str) for path in paths):
        raise Refused(f"{file} does not sign a list of files")
    if len(set(paths)) < len(paths):
        raise Refused(f"{file} contradicts itself: it lists a file twice")
    return {name: value for name, _, value in found}
