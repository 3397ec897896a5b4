"""Default weights of the networks that label images, pinned by checksum."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


_DEFAULT_FILE = "model.safetensors"
"""Path of the file that a Job expects where it names none."""


class ClassifierWeights(Struct, frozen=True):
    """A file of the Hugging Face Hub, or of a web server.

    Attributes:
        file: path of the file where it is stored.
        sha256: checksum of the file.
        version: torchvision's name of the weights.
        repo: its repository on the Hub; empty for a file of a web server.
        revision: commit of the repository.
        url: of the file on a web server.
    """

    file: str
    sha256: str
    version: str
    repo: str = ""
    revision: str = ""
    url: str = ""

    def source(self) -> dict[str, Any]:
        """Return the field `source` of a Model with only this file."""
        if self.url:
            return {"http": {"files": [{"url": self.url, "sha256": self.sha256}]}}
        return {"huggingFace": {"repo": self.repo, "revision": self.revision, "include": [self.file]}}

    def settings(self) -> dict[str, str]:
        """Return the field `classify.weights` of a Job that uses the file."""
        file = {} if self.file == _DEFAULT_FILE else {"file": self.file}
        return {"version": self.version, "sha256": self.sha256, **file}

    def advice(self) -> str:
        """Return how the fields `model` and `classify.weights` of a Job name the file, as text in YAML."""
        settings = ", ".join(f"{name}: {value}" for name, value in self.settings().items())
        source = (
            f"http: {{files: [{{url: {self.url}, sha256: {self.sha256}}}]}}"
            if self.url
            else f"huggingFace: {{repo: {self.repo}, revision: {self.revision}, include: [{self.file}]}}"
        )
        return f"`model` to a Model with `source: {{{source}}}` and `classify.weights` to `{{{settings}}}`"


def classifier_weights(network: str) -> ClassifierWeights:
    """Return the default weights of a network."""
    row = yaml_files.load("classifiers")[network]
    return ClassifierWeights(**{name: row[name] for name in ClassifierWeights.__struct_fields__ if name in row})
