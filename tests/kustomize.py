"""What kustomize, kubectl and Helm make of a folder or a file: the objects that a cluster gets."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kaigen.diagnostics.collector import Diagnostics
from kaigen.yaml.document import parse
from kaigen.yaml.sources import Source
from tests.helm import GO


def build(kubectl: Path, folder: Path) -> list[Any]:
    """Return the objects of a kustomization, built by kubectl's kustomize.

    Raises:
        AssertionError: it cannot be built.
    """
    done = subprocess.run([kubectl, "kustomize", folder], env=os.environ | GO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = Diagnostics()
    documents = parse(Source("built.yaml", done.stdout), found)
    assert not [*found]
    return [document.data for document in documents]


def build_of(kubectl: Path, folder: Path, text: str) -> list[Any]:
    """Return the objects of a kustomization with one file, which is written below `folder`."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [objects.yaml]\n", encoding="utf-8")
    (folder / "objects.yaml").write_text(text, encoding="utf-8")
    return build(kubectl, folder)


def read_by_kubectl(kubectl: Path, text: str) -> list[str]:
    """Return the kinds of objects that kubectl reads from a file, as Helm does."""
    command = [str(kubectl), "label", "--local", "--filename=-", "a=b", "--output=name"]
    done = subprocess.run(command, input=text, env=os.environ | GO, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return str(done.stdout).split()


def in_order(objects: Iterable[object]) -> list[str]:
    """Return objects in a form that compares independently of their order."""
    return sorted(json.dumps(body, sort_keys=True) for body in objects)
