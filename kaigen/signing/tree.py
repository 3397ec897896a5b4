"""A signed list of the files of rendered trees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kaigen.diagnostics.errors import CheckFailed
from kaigen.files import walk
from kaigen.signing.bundle import SignatureInvalid, sign_statement, statement_of

if TYPE_CHECKING:
    from kaigen.signing.keys import PrivateKey, PublicKey

FILE_NAME = "kaigen.sigstore.json"
"""The signature of a repository's trees, next to kaigen.yaml."""
PREDICATE = "https://kaigen.dev/tree/v1"
_CHUNK = 1 << 20
_MOST_SHOWN = 20


def digests_of(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of every file of folders, by path relative to the root.

    Raises:
        CheckFailed: something is neither a file nor a folder, such as a link, or a folder in one of them is empty.
        InputError: folders are nested too deep.
    """
    found = {}
    for folder in sorted(set(folders)):
        for place, names, files in walk(root / folder):
            names.sort()
            if not names and not files and Path(place) != root / folder:
                raise CheckFailed(
                    f"{Path(place).relative_to(root).as_posix()} is an empty folder, so it cannot be signed",
                    hint="remove it: Git stores an empty folder only as a submodule, whose files syncers read",
                )
            for name in [*names, *files]:
                path = Path(place, name)
                relative = path.relative_to(root).as_posix()
                if path.is_symlink() or not (path.is_dir() or path.is_file()):
                    raise CheckFailed(f"{relative} is not a regular file, so it cannot be signed")
                if path.is_file():
                    found[relative] = _digest(path)
    return found


def sign_tree(digests: Mapping[str, str], folders: Iterable[str], key: PrivateKey) -> bytes:
    """Return the signed statement that folders contain exactly these files.

    Args:
        digests: SHA-256 by path, as `digests_of` returns it.
        folders: the folders.
        key: signs it.
    """
    subjects = [{"name": path, "digest": {"sha256": digests[path]}} for path in sorted(digests)]
    return sign_statement(key, PREDICATE, subjects, {"folders": sorted(set(folders))})


def check_tree(bundle: bytes, keys: Sequence[PublicKey], digests: Mapping[str, str], folders: Iterable[str]) -> None:
    """Check that folders contain exactly the signed files.

    Args:
        bundle: what `sign_tree` returned.
        keys: the keys of which one must have signed it.
        digests: SHA-256 of the files of the folders.
        folders: the folders, which must all be signed.

    Raises:
        SignatureInvalid: a file is missing, new or different, or none of the keys signed the list.
    """
    statement = statement_of(bundle, keys)
    try:
        expected = {str(each["name"]): str(each["digest"]["sha256"]) for each in statement["subject"]}
        is_tree = statement["predicateType"] == PREDICATE
        covered = set(statement["predicate"]["folders"])
    except (KeyError, TypeError) as error:
        raise SignatureInvalid("the signature is not one of a rendered tree") from error
    if not is_tree:
        raise SignatureInvalid("the signature is not one of a rendered tree")
    problems = [f"{folder} is not signed" for folder in sorted(set(folders) - covered)]
    problems += [f"{path} is missing" for path in sorted(expected.keys() - digests.keys())]
    problems += [f"{path} is not signed" for path in sorted(digests.keys() - expected.keys())]
    changed = {path for path in expected.keys() & digests.keys() if expected[path] != digests[path]}
    problems += [f"{path} was changed" for path in sorted(changed)]
    if problems:
        more = len(problems) - _MOST_SHOWN
        text = "\n  ".join(problems[:_MOST_SHOWN] + ([f"and {more} more"] if more > 0 else []))
        raise SignatureInvalid(
            f"the rendered output is not the one that was signed:\n  {text}",
            hint="review the change, then run `kaigen sign`",
        )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
