"""Ask the server of each source for its entry in the lock."""

from __future__ import annotations

import hashlib

from msgspec import Struct

from kaigen.config.lock_file import LockedBucket, LockedFile, LockedModel, LockedObject, LockedWeights, namespace_of
from kaigen.config.locked_files import bucket_revision
from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.errors import NotFound, SystemFailure
from kaigen.git.remote import remote_commit
from kaigen.hub.client import Hub
from kaigen.hub.revision import Revision
from kaigen.kinds.build import COMMIT
from kaigen.kinds.repositories import MovingSource
from kaigen.kinds.sources import S3, Oci
from kaigen.lock.answers import Shapes, all_at_once, architecture_of, parse_config, weight_files
from kaigen.lock.buckets import Buckets
from kaigen.lock.names import SourceName
from kaigen.lock.registries import Registries
from kaigen.lock.signed import check_signed


class Servers(Struct, frozen=True):
    """Clients of the servers that are asked.

    Attributes:
        hub: about repositories.
        buckets: about files below prefixes.
        registries: about artifacts and images.
    """

    hub: Hub
    buckets: Buckets
    registries: Registries

    def entry(self, name: SourceName) -> LockedWeights:
        """Return what a source contains.

        Raises:
            NotFound: there is no such source, or it is not shown, or its files are not those of its signature.
            SystemFailure: the server cannot be reached, or gives no valid answer.
        """
        entry = self._entry(name)
        for signed in name.signed:
            check_signed(entry, signed, lambda path, file: self._content(entry, name.source, path, file))
        return entry

    def _content(self, entry: LockedWeights, source: MovingSource, path: str, file: LockedFile | LockedObject) -> bytes:
        """Return the content of a file of a source."""
        if isinstance(source, S3):
            assert isinstance(file, LockedObject)
            return self.buckets.content(source, path, file)
        if isinstance(source, Oci):
            assert isinstance(file, LockedFile)
            return self.registries.content(source, file)
        assert isinstance(entry, LockedModel)
        return self.hub.content(f"{namespace_of(source)}{source.repo}", entry.commit, path, source.endpoint)

    def _entry(self, name: SourceName) -> LockedWeights:
        source = name.source
        if isinstance(source, S3):
            found = self.buckets.bucket(source, data=name.is_data)
            _check_revision(source, found)
            return found
        if isinstance(source, Oci):
            return self.registries.artifact(source, data=name.is_data)
        repo = f"{namespace_of(source)}{source.repo}"
        return self.hub.ask(repo, source.revision, source.endpoint, _locked_model)


def _check_revision(s3: S3, bucket: LockedBucket) -> None:
    """Check that a bucket has the files of the revision in a spec.

    Raises:
        NotFound: it has others.
    """
    revision = bucket_revision(bucket, s3)
    if s3.revision not in (None, revision):
        hint = f"review the change and set it to {revision}, or leave it to the lock"
        raise NotFound(f"{s3.location} does not have the files of `revision`", hint=hint)


def _locked_model(revision: Revision) -> LockedModel:
    """Return the entry of a repository on the Hub."""
    small = [file for file in revision.files if not file.sha256]
    contents = dict(zip((file.path for file in small), all_at_once(revision.content, small), strict=True))
    config = parse_config(None if revision.is_dataset else contents.get("config.json"))
    weights = [] if revision.is_dataset else weight_files([file.path for file in revision.files])
    shapes = Shapes.of(Shapes(*found) for found in all_at_once(revision.tensors, weights))
    return LockedModel(
        commit=revision.commit,
        licence=revision.licence,
        gated=revision.is_gated,
        architecture=architecture_of(config),
        parameters=shapes.parameters,
        weights=shapes.bytes,
        config=config,
        files={
            file.path: LockedFile(size=file.size, sha256=file.sha256 or hashlib.sha256(contents[file.path]).hexdigest())
            for file in sorted(revision.files, key=lambda file: file.path)
        },
    )


def git_commit(url: str, name: str) -> str:
    """Return the commit of a branch or a tag of a Git repository.

    Raises:
        SystemFailure: the server cannot be reached, or does not have the branch or tag.
    """
    commit = remote_commit(url, name)
    if commit is None or not COMMIT.fullmatch(commit):
        hint = "set all 40 digits if it is a commit"
        raise SystemFailure(f"{mask_urls(url)} has no branch or tag `{name}`", hint=hint)
    return commit
