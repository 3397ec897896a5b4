"""The files of a lock that a spec asks for, chosen and compared as the downloader does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from kaigen.config.lock_file import Lock, LockedBucket, LockedFile, LockedModel, LockedObject, LockedWeights
    from kaigen.kinds.blocks import FileSource, HubRepository
    from kaigen.kinds.sources import S3, Oci

F = TypeVar("F")


def chosen_files(model: LockedModel, hub: HubRepository) -> dict[str, LockedFile]:
    """Return the files of a repository that a spec asks for."""
    return files_of(model.files, hub)


def files_of(files: Mapping[str, F], source: HubRepository | S3 | Oci) -> dict[str, F]:
    """Return those of the files of a source that a spec asks for.

    Args:
        files: all files of the source, by their paths.
        source: the block of the spec.
    """
    chosen = selected_files(files, source.include, source.exclude)
    if source.include or source.keeps_duplicates:
        return chosen
    skipped = duplicates(chosen)
    return {path: file for path, file in chosen.items() if path not in skipped}


def locked_source(source: FileSource, lock: Lock) -> LockedWeights | None:
    """Return what the lock knows about a source; None if it does not have it, or has another revision of it."""
    if source.hugging_face is not None:
        return lock.of(source.hugging_face)
    if source.oci is not None:
        return lock.artifact(source.oci.ref)
    bucket = lock.buckets.get(source.s3.location) if source.s3 is not None else None
    if source.s3 is None or bucket is None:
        return None
    return bucket if source.s3.revision in (None, bucket_revision(bucket, source.s3)) else None


def known_files(source: FileSource, lock: Lock) -> Mapping[str, LockedFile | LockedObject] | None:
    """Return all files that the lock has of a source, also those that its globs leave out.

    Args:
        source: the source.
        lock: the lock.

    Returns:
        The files by their paths. None if the lock does not have the source, has another revision of it, or has an
        image, of which it knows the layers and not the files.
    """
    artifact = lock.artifact(source.oci.ref) if source.oci is not None else None
    if artifact is not None and artifact.is_image:
        return None
    entry = locked_source(source, lock)
    return entry.files if entry is not None else None


def locked_files(source: FileSource, lock: Lock) -> Mapping[str, LockedFile | LockedObject] | None:
    """Return the files of the lock that a source asks for, by their paths; None where `known_files` does."""
    known, block = known_files(source, lock), source.hugging_face or source.s3 or source.oci
    return files_of(known, block) if known is not None and block is not None else None


def selected_files(files: Mapping[str, F], include: Sequence[str], exclude: Sequence[str]) -> dict[str, F]:
    """Return the files that globs select, as the downloader does: `*` crosses slashes, `folder/` is all in it."""

    def matches(path: str, globs: Sequence[str]) -> bool:
        return any(fnmatchcase(path, f"{glob}*" if glob.endswith("/") else glob) for glob in globs)

    return {
        path: file
        for path, file in files.items()
        if (not include or matches(path, include)) and not matches(path, exclude)
    }


_OTHER_FORMATS = (".bin", ".bin.index.json", ".h5", ".msgpack", ".ot")


def _is_other_format(name: str) -> bool:
    return "model" in name and name.endswith(_OTHER_FORMATS)


def duplicates(paths: Iterable[str]) -> set[str]:
    """Return the files with weights that others have as safetensors files, as the downloader does."""
    listed = {path: path.rpartition("/")[::2] for path in paths}
    plain = {
        folder
        for path, (folder, name) in listed.items()
        if name.endswith(".safetensors") and not name.startswith("consolidated") and folder != "original"
    }
    return {
        path
        for path, (folder, name) in listed.items()
        if (path.startswith("original/") and "" in plain)
        or (folder in plain and (name.startswith("consolidated") or _is_other_format(name)))
    }


def files_digest(files: Mapping[str, LockedFile]) -> str:
    """Return number, bytes and a SHA-256 digest of files, as the downloader compares them."""
    return _digest({path: (file.size, file.sha256) for path, file in files.items()})


def bucket_revision(bucket: LockedBucket, s3: S3) -> str:
    """Return number, bytes and a SHA-256 digest of the files of a bucket that globs select: its `revision`.

    Weights that are there as safetensors files too belong to it, although a Model does not download them.
    """
    chosen = selected_files(bucket.files, s3.include, s3.exclude)
    return _digest({path: (file.size, file.etag) for path, file in chosen.items()})


def _digest(files: Mapping[str, tuple[int, str]]) -> str:
    lines = (f"{proof} {size} {path}\n" for path, (size, proof) in sorted(files.items()))
    digest = sha256("".join(lines).encode()).hexdigest()
    return f"{len(files)}:{sum(size for size, _ in files.values())}:{digest}"
