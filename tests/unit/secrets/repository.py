"""A small repository: files in a folder, and what they compile to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.pipeline.result import Compilation
from kaigen.pipeline.run import compile_specs

DATA = Path(__file__).parent / "data"
COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"


def model(name: str, secret: str = "hf-token", key: str = "token") -> dict[str, Any]:
    """A Model that needs a Hub token."""
    token = {"name": secret, "key": key}
    source = {"huggingFace": {"repo": f"org/{name}", "revision": COMMIT, "tokenSecret": token}}
    return document("Model", name, {"source": source, "store": {"volume": {"size": "5Gi"}}})


def job(name: str, env: dict[str, tuple[str, str]] | None = None, **spec: Any) -> dict[str, Any]:
    """A Job with variables out of Secrets: name and key by variable."""
    variables = {variable: {"secret": {"name": secret, "key": key}} for variable, (secret, key) in (env or {}).items()}
    return document("Job", name, {"image": "python:3.12-slim", "env": variables, **spec})


def document(kind: str, name: str, spec: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    """A spec."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "kaigen.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


@dataclass(frozen=True, slots=True)
class Repository:
    """Files in a folder."""

    root: Path

    def write(self, path: str, *documents: dict[str, Any]) -> None:
        """Write a file of documents."""
        self.text(path, yaml.safe_dump_all(documents, sort_keys=False))

    def text(self, path: str, text: str) -> None:
        """Write a file as it is."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def configure(self, **settings: Any) -> None:
        """Write kaigen.yaml."""
        self.write("kaigen.yaml", {"namespace": "ml", **settings})

    def config(self, environment: str = "") -> Config:
        """The settings."""
        return load_config(self.root, environment)

    def compile(self, *paths: str, environment: str = "") -> Compilation:
        """Every spec, or those of some paths."""
        return compile_specs([str(self.root / path) for path in paths], self.config(environment))

    def files(self, form: str = "manifests", environment: str = "") -> dict[str, bytes]:
        """The output tree."""
        return self.compile(environment=environment).files(form)  # type: ignore[arg-type]
