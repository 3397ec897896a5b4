"""A revision of a repository on the Hub, as huggingface_hub reads it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from kaigen.kinds.blocks import HubDataset
from kaigen.kinds.build import COMMIT

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_HEX = re.compile(r"[0-9a-f]+")


class RepositoryFile(Struct, frozen=True):
    """A file as the Hub lists it.

    Attributes:
        path: in the repository.
        size: bytes.
        blob: Git's name of the content, or of the pointer to it.
        sha256: of the content; empty if the file is not in large-file storage.
    """

    path: str
    size: int
    blob: str
    sha256: str


class Revision:
    """A revision of a repository.

    Attributes:
        commit: its commit.
        is_dataset: whether the repository has a dataset.
        is_gated: whether its owner decides who may read it.
        licence: identifier of the licence on its card, or the name of one that has none; empty for none.
        files: its files.
    """

    def __init__(self, api: HfApi, repo: str, revision: str, read: Callable[[str, str], bytes]) -> None:
        """Ask the Hub about a revision.

        Args:
            api: asks it.
            repo: `OWNER/NAME`, or `datasets/OWNER/NAME`.
            revision: branch, tag or commit.
            read: returns the content of a file of a commit.

        Raises:
            ValueError: the answer is not valid.
        """
        self._api = api
        self._read = read
        self._repo = repo.removeprefix(HubDataset.namespace)
        self.is_dataset = repo.startswith(HubDataset.namespace)
        about = api.dataset_info if self.is_dataset else api.model_info
        info = about(self._repo, revision=revision, files_metadata=True)
        if not info.sha or not COMMIT.fullmatch(info.sha):
            raise ValueError("it names no commit")
        if COMMIT.fullmatch(revision) and info.sha != revision:
            raise ValueError(f"it names commit {info.sha} for commit {revision}")
        self.commit = info.sha
        self.is_gated = bool(info.gated)
        self.licence = _licence(info.card_data)
        self.files = tuple(_listed(each) for each in info.siblings or ())

    def content(self, file: RepositoryFile) -> bytes:
        """Return the content of a file that is not in large-file storage.

        Raises:
            ValueError: it is not what Git names.
        """
        content = self._read(self.commit, file.path)
        name = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        if name != file.blob:
            raise ValueError(f"{file.path} is not the file that it lists")
        return content

    def tensors(self, path: str) -> tuple[dict[str, int], int]:
        """Return the number of parameters by dtype, and the bytes of the tensors, from the header of a file."""
        found = self._api.parse_safetensors_file_metadata(
            self._repo, path, revision=self.commit, repo_type="dataset" if self.is_dataset else None
        )
        offsets = (tensor.data_offsets for tensor in found.tensors.values())
        counts = {str(dtype): count for dtype, count in found.parameter_count.items()}
        return counts, sum(end - start for start, end in offsets)


def _listed(sibling: Any) -> RepositoryFile:
    lfs = sibling.lfs
    size, blob = int(lfs.size if lfs else sibling.size), str(sibling.blob_id)
    sha256 = str(lfs.sha256) if lfs else ""
    length = 64 if lfs else 40
    if size < 0 or len(sha256 or blob) != length or not _HEX.fullmatch(sha256 or blob):
        raise ValueError(f"it has no usable checksum of {sibling.rfilename}")
    return RepositoryFile(str(sibling.rfilename), size, blob, sha256)


def _licence(card: Any) -> str:
    """Return the licence of a model card: its identifier, or the name of one that has none."""
    data = card.to_dict() if card is not None else {}
    licence = data.get("license")
    if isinstance(licence, list):
        licence = licence[0] if licence else ""
    if licence == "other":
        licence = data.get("license_name") or licence
    return licence if isinstance(licence, str) else ""
