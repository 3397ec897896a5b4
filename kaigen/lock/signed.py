"""Signatures of sources in the lock: the files must be those of the signature, and none may be missing.

The downloader has the same rules (`kaigen_downloader.signature`). The format is OpenSSF Model Signing 1.0, an in-toto
statement with the SHA-256 of each file (github.com/ossf/model-signing-spec).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from kaigen.config.lock_file import LockedArtifact, LockedFile, LockedObject, LockedWeights
from kaigen.config.locked_files import files_of
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.kinds.blocks import FileSource, HubRepository, ModelSignature
from kaigen.kinds.sources import S3, Oci
from kaigen.signing.bundle import SignatureInvalid, statement_of
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.signing import keys

_PREDICATE = "https://model_signing/signature/v1.0"
_LARGEST = 64 << 20
"""Bytes of a signature: it has about 150 for each file."""
_IGNORED = frozenset({".gitattributes", ".gitignore"})
"""Files of Git, which the signers leave out and no engine reads."""
_SHOWN = 5

File: TypeAlias = LockedFile | LockedObject
SignedSource: TypeAlias = HubRepository | S3 | Oci


class Signed(Struct, frozen=True):
    """A source that must have a signature.

    Attributes:
        source: the block of a spec, which chooses files.
        signature: what the spec says about the signature.
    """

    source: SignedSource
    signature: ModelSignature


def signed_source(block: FileSource) -> Signed | None:
    """Return the source in a block, if it must have a signature and the lock has an entry for it."""
    source = block.hugging_face or block.s3 or block.oci
    return Signed(source, block.signature) if source is not None and block.signature is not None else None


def check_signed(entry: LockedWeights, signed: Signed, read: Callable[[str, File], bytes]) -> None:
    """Check that the files of an entry are those of a signature, and that none is missing.

    The files of an image are in its layers, which only the downloader reads.

    Args:
        entry: what a server has.
        signed: what a spec asks for.
        read: returns the content of a file.

    Raises:
        NotFound: a file differs, is not signed or is missing, or there is no signature of the keys.
        SystemFailure: the server sends another signature than it lists, or `cryptography` is not installed.
    """
    if isinstance(entry, LockedArtifact) and entry.is_image:
        return
    name = signed.signature.file
    files: Mapping[str, File] = files_of(entry.files, signed.source)
    if name not in files:
        hint = "sign the model, or add the file to `include`"
        raise NotFound(f"the source has no signature {name}", hint=hint)
    if files[name].size > _LARGEST:
        raise NotFound(f"the signature {name} is larger than 64 MiB")
    content = read(name, files[name])
    known = files[name].sha256
    if known is not None and hashlib.sha256(content).hexdigest() != known:
        raise SystemFailure(f"the server sends another {name} than it lists")
    resources = _resources(content, signed.signature)
    for path, file in files.items():
        if path == name or (path in _IGNORED and path not in resources):
            continue
        if path not in resources:
            raise NotFound(f"{path!r} is not in the signature {name}")
        if file.sha256 not in (None, resources[path]):
            raise NotFound(f"{path!r} is not the file that was signed: its checksum differs from {name}")
    expected = files_of({path: digest for path, digest in resources.items() if path != name}, signed.source)
    if not expected:
        raise NotFound(f"the signature {name} lists none of the files that are downloaded")
    if missing := sorted(expected.keys() - files.keys()):
        count = "1 file" if len(missing) == 1 else f"{len(missing)} files"
        some = ", ".join(map(repr, missing[:_SHOWN])) + (", …" if len(missing) > _SHOWN else "")
        raise NotFound(
            f"the source lacks {count} of the signature {name}: {some}",
            hint="ask its owner, or leave the files out with `exclude`",
        )


def _resources(content: bytes, signature: ModelSignature) -> dict[str, str]:
    """Return the SHA-256 of each signed file, by path.

    Raises:
        NotFound: it is not a signature of the keys, or files are signed in another way.
    """
    file = signature.file
    try:
        statement = statement_of(content, [keys.public_key_of(pem) for pem in signature.public_keys])
    except SignatureInvalid as error:
        raise NotFound(f"{file}: {error}") from None
    try:
        return _listed(statement, file)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise NotFound(f"{file} does not sign a list of files") from None


def _listed(statement: Mapping[str, Any], file: str) -> dict[str, str]:
    predicate = statement["predicate"]
    serialization = predicate["serialization"]
    found: Sequence[tuple[str, str, str]] = [
        (each["name"], each["algorithm"], each["digest"]) for each in predicate["resources"]
    ]
    if statement["predicateType"] != _PREDICATE or not all(isinstance(path, str) for path, _, _ in found):
        raise ValueError
    is_whole = (serialization["method"], serialization["hash_type"]) == ("files", "sha256")
    if not is_whole or any(algorithm != "sha256" for _, algorithm, _ in found):
        raise NotFound(f"{file} signs parts of files or other checksums", hint="sign whole files with SHA-256")
    digest = hashlib.sha256(b"".join(bytes.fromhex(value) for _, _, value in found)).hexdigest()
    if [each["digest"] for each in statement["subject"]] != [{"sha256": digest}]:
        raise NotFound(f"{file} contradicts itself: the digest of its list differs")
    listed = {path: value for path, _, value in found}
    if len(listed) < len(found):
        raise NotFound(f"{file} contradicts itself: it lists a file twice")
    return listed
