"""What a changed lock changes, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kaigen.config.lock_file import Lock, LockedArtifact, LockedBucket, LockedModel, LockedObject, LockedWeights
from kaigen.core.text import plural
from kaigen.diff.formatting import listing, size_text


def lock_changes(before: Lock, after: Lock) -> Iterator[str]:
    """Yield a line for each entry of a lock that is added, changed or removed."""
    were, are = before.entries, after.entries
    for key in sorted({*were, *are}):
        old, new = were.get(key), are.get(key)
        if new is None:
            yield f"{key} is removed"
        elif old is None:
            yield f"{key} is {_summary(new)}"
        elif old != new:
            yield f"{key} {'; '.join(_changes(old, new))}"
    yield from _moved(before.images, after.images, 19)
    yield from _moved(before.git, after.git, 12)


def _moved(before: Mapping[str, str], after: Mapping[str, str], length: int) -> Iterator[str]:
    """Yield a line for each name whose digest or commit is added, changed or removed, with its start."""
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if now is None:
            yield f"{name} is removed"
        elif was is None:
            yield f"{name} is {now[:length]}"
        elif was != now:
            yield f"{name} moves from {was[:length]} to {now[:length]}"


def total(entry: LockedWeights) -> int:
    """Return the bytes of all files."""
    return sum(file.size for file in entry.files.values())


def _summary(entry: LockedWeights) -> str:
    version = _version(entry)
    facts = [
        *([version] if version else []),
        plural(len(entry.files), "layer" if _has_layers(entry) else "file"),
        size_text(total(entry)),
        *([] if isinstance(entry, LockedBucket) else [f"licence {entry.licence or 'unknown'}"]),
        *(["gated"] if isinstance(entry, LockedModel) and entry.gated else []),
        *([entry.architecture] if entry.architecture else []),
    ]
    return ", ".join(facts)


def _version(entry: LockedWeights) -> str:
    """Return the one name of the content; empty for a bucket, which has none."""
    if isinstance(entry, LockedModel):
        return f"commit {entry.commit[:12]}"
    return entry.digest[:19] if isinstance(entry, LockedArtifact) else ""


def _has_layers(entry: LockedWeights) -> bool:
    return isinstance(entry, LockedArtifact) and entry.is_image


def _changes(old: LockedWeights, new: LockedWeights) -> Iterator[str]:
    if _version(old) != _version(new):
        yield f"moves from {_version(old).removeprefix('commit ')} to {_version(new).removeprefix('commit ')}"
    if _contents(old) != _contents(new):
        yield _file_changes(old, new)
    elif old.files != new.files:
        yield "the same files have other versions"
    if not isinstance(old, LockedBucket) and not isinstance(new, LockedBucket) and old.licence != new.licence:
        yield f"licence {old.licence or 'unknown'} becomes {new.licence or 'unknown'}"
    if isinstance(old, LockedModel) and isinstance(new, LockedModel) and old.gated != new.gated:
        yield "a token is needed now" if new.gated else "no token is needed any more"
    if old.architecture != new.architecture:
        yield f"architecture {old.architecture or 'unknown'} becomes {new.architecture or 'unknown'}"
    if old.parameters != new.parameters:
        yield f"parameters {_parameters(old)} become {_parameters(new)}"
    elif old.weights != new.weights:
        yield f"weights of {size_text(old.weights)} become {size_text(new.weights)}"
    keys = sorted(key for key in {*old.config, *new.config} if old.config.get(key) != new.config.get(key))
    if keys:
        yield f"config.json changes {listing(keys)}"


def _contents(entry: LockedWeights) -> dict[str, tuple[int, str]]:
    """Return size and checksum of each file, by path; of a bucket the ETags, which every object has."""
    return {
        path: (file.size, file.etag if isinstance(file, LockedObject) else file.sha256)
        for path, file in entry.files.items()
    }


def _file_changes(before: LockedWeights, after: LockedWeights) -> str:
    old, new = _contents(before), _contents(after)
    known = set(old.values())
    added = sorted(set(new) - set(old))
    removed = sorted(set(old) - set(new))
    changed = sorted(path for path in set(old) & set(new) if old[path] != new[path])
    noun = "layer" if _has_layers(after) else "file"
    parts = [
        f"{plural(len(paths), noun)} {verb} ({listing(paths)})"
        for verb, paths in (("added", added), ("changed", changed), ("removed", removed))
        if paths
    ]
    fresh = sum(content[0] for content in new.values() if content not in known)
    sizes = f"{size_text(total(before))} become {size_text(total(after))}, of which {size_text(fresh)} are new"
    return f"{', '.join(parts)}; {sizes}"


def _parameters(model: LockedWeights) -> str:
    return listing(f"{count:,} {dtype}" for dtype, count in sorted(model.parameters.items())) or "unknown"
