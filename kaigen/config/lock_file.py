"""The file `kaigen.lock`: what the moving names of a repository's specs stood for when they were reviewed."""

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, field

from kaigen.config.load import RESTORE, read_lock
from kaigen.config.settings import LOCK_NAME, LockRef
from kaigen.core.json_types import JsonObject
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.base import NO_BLANKS, SHA256, text
from kaigen.kinds.block import Block
from kaigen.kinds.blocks import HubRepository
from kaigen.kinds.build import COMMIT, GitContext
from kaigen.kinds.entry import API_VERSION, KindEntry
from kaigen.kinds.repositories import MovingSource
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.sources import S3, Oci
from kaigen.system.lazy_import import lazy_imports
from kaigen.system.limits import GENERATED_FILE_BYTES

with lazy_imports():
    from kaigen.config import document as config_document

_CODE = "KG0750"
_INLINE_DEPTH = 4
"""Depth of the mappings that are written on one line, such as a file with its size and checksum."""

ModelName = Annotated[str, text(NO_BLANKS, min_length=1, max_length=2000)]
Location = Annotated[str, Meta(min_length=1, max_length=2000)]
Bytes = Annotated[int, Meta(ge=0)]


Architecture = Annotated[str, Meta(description="First class name in config.json; empty if unknown.")]
Parameters = Annotated[
    dict[str, Bytes], Meta(description="Number of parameters by dtype, from the headers of the safetensors files.")
]
Weights = Annotated[Bytes, Meta(description="Size in bytes of the tensors that an engine loads; 0 if unknown.")]
ConfigJson = Annotated[JsonObject, Meta(description="Content of config.json; empty if there is none.")]


class LockedFile(Block):
    """A file of a repository on the Hub, or of an OCI artifact."""

    size: Annotated[Bytes, Meta(description="Size in bytes.")]
    sha256: Annotated[str, text(SHA256, description="SHA-256 checksum of the content.")]


class LockedModel(Block):
    """A revision of a repository on the Hub."""

    commit: Annotated[str, text(r"^[0-9a-f]{40}$", description="Commit of the revision.")]
    licence: Annotated[str, Meta(description="Licence as in the model card; empty if it names none.")] = ""
    gated: Annotated[bool, Meta(description="Whether the repository requires a token.")] = False
    architecture: Architecture = ""
    parameters: Parameters = field(default_factory=dict)
    weights: Weights = 0
    config: ConfigJson = field(default_factory=dict)
    files: Annotated[dict[str, LockedFile], Meta(description="All files of the commit by path.")] = field(
        default_factory=dict
    )


class LockedObject(Block):
    """A file of a bucket."""

    size: Annotated[Bytes, Meta(description="Size in bytes.")]
    etag: Annotated[str, text(r"^[!#-~]+$", description="ETag of the object, without quotes.")]
    sha256: Annotated[
        Annotated[str, text(SHA256)] | None,
        Meta(description="SHA-256 checksum of the content, if the server or kaigen's downloader stored it."),
    ] = None
    version: Annotated[
        Annotated[str, text(r"^[!-~]+$", max_length=1024)] | None,
        Meta(description="Version of the object, if the bucket keeps versions."),
    ] = None


class LockedBucket(Block):
    """The files below a prefix of a bucket."""

    architecture: Architecture = ""
    parameters: Parameters = field(default_factory=dict)
    weights: Weights = 0
    config: ConfigJson = field(default_factory=dict)
    files: Annotated[dict[str, LockedObject], Meta(description="Files by their paths below the prefix.")]


class LockedArtifact(Block):
    """An OCI artifact, or an image with files in its layers."""

    digest: Annotated[str, text(r"^sha256:[0-9a-f]{64}$", description="Digest that the reference names.")]
    licence: Annotated[
        str, Meta(description="Licence in the annotations of the manifest; empty if they name none.")
    ] = ""
    is_image: Annotated[bool, Meta(description="Whether the files are in layers that the downloader unpacks.")] = False
    architecture: Architecture = ""
    parameters: Parameters = field(default_factory=dict)
    weights: Weights = 0
    config: ConfigJson = field(default_factory=dict)
    files: Annotated[
        dict[str, LockedFile],
        Meta(description="Layers by the paths of their files; those of an image by their digests."),
    ]


LockedWeights: TypeAlias = LockedModel | LockedBucket | LockedArtifact
"""An entry about weights or data."""


class Lock(Block):
    """What the moving names of a repository's specs stood for when they were reviewed."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="API version.")] = API_VERSION
    kind: Annotated[Literal["Lock"], Meta(description="The kind.")] = "Lock"
    models: Annotated[
        dict[ModelName, LockedModel],
        Meta(
            description="Repositories by `OWNER/NAME@REVISION`, after the URL of the Hub if the spec names one; a "
            "dataset's begins with `datasets/`."
        ),
    ] = field(default_factory=dict)
    images: Annotated[
        dict[ModelName, Annotated[str, text(r"^sha256:[0-9a-f]{64}$")]],
        Meta(description="Digests of images by their names in the rendered objects."),
    ] = field(default_factory=dict)
    buckets: Annotated[
        dict[Location, LockedBucket],
        Meta(description="Files of buckets by bucket and prefix, and the server if the spec names one."),
    ] = field(default_factory=dict)
    artifacts: Annotated[
        dict[ModelName, LockedArtifact], Meta(description="OCI artifacts by their references in the specs.")
    ] = field(default_factory=dict)

    git: Annotated[
        dict[Location, Annotated[str, text(r"^[0-9a-f]{40}$")]],
        Meta(description="Commits of branches and tags of Git repositories, by `URL@NAME`."),
    ] = field(default_factory=dict)

    @property
    def entries(self) -> Mapping[str, LockedWeights]:
        """All entries about weights and data by their names."""
        return {**self.models, **self.buckets, **self.artifacts}

    def artifact(self, ref: str) -> LockedArtifact | None:
        """Return the artifact of a reference, also with the digest of the lock; None if the lock does not have it."""
        name, _, digest = ref.partition("@")
        found = self.artifacts.get(ref) or self.artifacts.get(name)
        return found if found is not None and digest in ("", found.digest) else None

    def of(self, hub: HubRepository | PulledModel) -> LockedModel | None:
        """Return the revision of a repository that a spec names; None if the lock does not have it."""
        return _index(self).get(source_key(hub))

    def find(self, repo: str, revision: str, endpoint: str | None) -> LockedModel | None:
        """Return a revision of a repository, also by its commit; None if the lock does not have it."""
        return _index(self).get(model_key(repo, revision, endpoint))


LOCK_ENTRY = KindEntry(
    API_VERSION,
    "Lock",
    "kaigen.config.lock_file:Lock",
    "what moving names stood for when they were reviewed",
    nullable=tuple((table, "*", "config", "*") for table in ("models", "buckets", "artifacts")),
)


def namespace_of(hub: HubRepository | PulledModel) -> str:
    """Return the folder of the Hub with the repositories of this type; empty for models."""
    return hub.namespace if isinstance(hub, HubRepository) else ""


def source_key(source: MovingSource) -> str:
    """Return the name of a source in the lock."""
    if isinstance(source, S3):
        return source.location
    if isinstance(source, Oci):
        return source.ref
    return model_key(f"{namespace_of(source)}{source.repo}", source.revision, source.endpoint)


def model_key(repo: str, revision: str, endpoint: str | None) -> str:
    """Return the name of a revision in the lock."""
    return f"{endpoint.rstrip('/')}/{repo}@{revision}" if endpoint else f"{repo}@{revision}"


def _index(lock: Lock) -> Mapping[str, LockedModel]:
    """Return the revisions by their names, and by their commits."""
    known: dict[str, LockedModel] | None = lock.__dict__.get("_index")
    if known is None:
        known = {f"{key.rpartition('@')[0]}@{model.commit}": model for key, model in lock.models.items()}
        known |= lock.models
        lock.__dict__["_index"] = known
    return known


def lock_of(root: Path, ref: LockRef) -> Lock:
    """Return the lock of a repository; an empty one without the file.

    Raises:
        InputError: the file is invalid.
    """
    if ref.content is not None:
        return _decode(ref.content, str(root / LOCK_NAME))
    return _read(os.fspath(root / LOCK_NAME), ref.digest) if ref.digest else _EMPTY


@lru_cache(maxsize=8)
def _read(path: str, digest: str) -> Lock:
    """Return the lock of a file; the digest makes a changed file a new key."""
    return _decode(read_lock(Path(path).parent) or b"", path)


def _decode(content: bytes, path: str) -> Lock:
    try:
        lock = msgspec.json.decode(content, type=Lock)
        # msgspec takes the last of two equal keys.
        json.loads(content, object_pairs_hook=_without_duplicates)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise InputError(_problems(Path(path))) from None
    if any(_mismatches(lock)):
        raise InputError(_problems(Path(path)))
    return lock


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping with the keys of a JSON object.

    Raises:
        ValueError: a key is there twice.
    """
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("duplicate keys")
    return mapping


def _mismatches(lock: Lock) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the commits and digests that are not those in the names of their entries: path of the field, value in
    the name."""
    for key, model in lock.models.items():
        revision = key.rpartition("@")[2]
        if COMMIT.fullmatch(revision) and model.commit != revision:
            yield ("models", key, "commit"), revision
    for key, artifact in lock.artifacts.items():
        digest = key.partition("@")[2]
        if digest and artifact.digest != digest:
            yield ("artifacts", key, "digest"), digest
    for key, commit in lock.git.items():
        name = key.rpartition("@")[2]
        if COMMIT.fullmatch(name) and commit != name:
            yield ("git", key), name


_EMPTY = Lock()


def _problems(path: Path) -> Diagnostics:
    """Return every problem of an invalid file, each at its line."""
    found = Diagnostics()
    document = config_document.read_document(path, _CODE, found, GENERATED_FILE_BYTES)
    if document is not None:
        lock = config_document.validate_block(document, LOCK_ENTRY, found)
        for place, named in _mismatches(lock) if isinstance(lock, Lock) else ():
            message = f"the name of this entry has `{named}`, and the entry has another one"
            found.add(Diagnostic(_CODE, message, document.mark(place), RESTORE))
    if not found.has_errors:
        found.extend(InputError.of(_CODE, f"{path.name} is not JSON", hint=RESTORE).diagnostics)
    return found


def lock_text(lock: Lock) -> str:
    """Return the text of the file: sorted, and with a line for each file of a model."""
    data: dict[str, Any] = {
        "apiVersion": lock.api_version,
        "kind": lock.kind,
        "models": {key: _weights_data(lock.models[key]) for key in sorted(lock.models)},
        "images": dict(sorted(lock.images.items())),
    }
    if lock.buckets:
        data["buckets"] = {key: _weights_data(lock.buckets[key]) for key in sorted(lock.buckets)}
    if lock.artifacts:
        data["artifacts"] = {key: _weights_data(lock.artifacts[key]) for key in sorted(lock.artifacts)}
    if lock.git:
        data["git"] = dict(sorted(lock.git.items()))
    return _text(data, 0) + "\n"


def _weights_data(entry: LockedWeights) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(entry)
    for name in ("parameters", "config"):
        data[name] = dict(sorted(data[name].items()))
    data["files"] = {
        path: {name: value for name, value in data["files"][path].items() if value is not None}
        for path in sorted(data["files"])
    }
    return data


def _text(value: Any, depth: int) -> str:
    if not isinstance(value, dict) or not value or depth >= _INLINE_DEPTH:
        return json.dumps(value, ensure_ascii=False)
    indent = "  " * (depth + 1)
    lines = [f"{indent}{json.dumps(key)}: {_text(item, depth + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(lines) + "\n" + "  " * depth + "}"


def git_key(git: GitContext) -> str:
    """Return the name of a branch or tag in the lock."""
    return f"{git.url}@{git.commit}"


def lock_with(
    entries: Mapping[str, LockedWeights], images: Mapping[str, str], git: Mapping[str, str] | None = None
) -> Lock:
    """Return a lock with entries about weights, images and Git repositories, by their names."""
    return Lock(
        models={key: entry for key, entry in entries.items() if isinstance(entry, LockedModel)},
        images=dict(images),
        buckets={key: entry for key, entry in entries.items() if isinstance(entry, LockedBucket)},
        artifacts={key: entry for key, entry in entries.items() if isinstance(entry, LockedArtifact)},
        git=dict(git or {}),
    )


def lock_ref(lock: Lock) -> LockRef:
    """Return a lock that is not in a file."""
    content = lock_text(lock).encode()
    return LockRef(sha256(content).hexdigest(), content)
