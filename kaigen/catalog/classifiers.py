"""Default weights of the networks that label images, pinned by commit and checksum."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


class ClassifierWeights(Struct, frozen=True):
    """A file of the Hugging Face Hub.

    Attributes:
        repo: its repository.
        revision: commit of the repository.
        file: path of the file in it.
        sha256: checksum of the file.
        version: torchvision's name of the weights.
    """

    repo: str
    revision: str
    file: str
    sha256: str
    version: str

    def source(self) -> dict[str, Any]:
        """Return the field `source` of a Model with only this file."""
        return {"huggingFace": {"repo": self.repo, "revision": self.revision, "include": [self.file]}}

    def settings(self) -> dict[str, str]:
        """Return the field `classify.weights` of a Job that uses the file."""
        return {"version": self.version, "sha256": self.sha256}


def classifier_weights(network: str) -> ClassifierWeights | None:
    """Return the default weights of a network; None when it has none."""
    row = yaml_files.load("classifiers").get(network)
    if row is None:
        return None
    return ClassifierWeights(**{name: row[name] for name in ClassifierWeights.__struct_fields__})
