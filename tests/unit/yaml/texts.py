"""Helpers that read a text."""

from __future__ import annotations

from kaigen.core.json_types import Json
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source

SPEC = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata:
  name: finetune
spec:
  # the image with the training code
  image: {ref: "registry.example/torchtune:1.2"}
  command:
    - tune
    - "--config"
  resources:
    gpus: 1
    memory: 16Gi  # per pod
"""


def read(text: str, *, path: str = "a.yaml") -> tuple[list[Document], list[Diagnostic]]:
    """Return the documents of a text and its errors."""
    found = Diagnostics()
    documents = parse(Source(path, text), found)
    return documents, found.sorted()


def load(text: str, *, path: str = "a.yaml") -> Json:
    """Return the data of the only document of a valid text."""
    documents, found = read(text, path=path)
    assert found == []
    assert len(documents) == 1
    return documents[0].data


def problems(text: str, *, path: str = "a.yaml") -> list[str]:
    """Return the errors of a text as `line:column code message`."""
    return [
        f"{item.mark.line}:{item.mark.column} {item.code} {item.message}"
        for item in read(text, path=path)[1]
        if item.mark
    ]
