"""A repository with a kind of its own, as small as one can be."""

from __future__ import annotations

from pathlib import Path

from kaigen.compile.app import App
from kaigen.compile.context import SpecIndex
from kaigen.compile.problems import Problems
from kaigen.config.settings import load_config
from kaigen.diagnostics.diagnostic import Diagnostic, InputError
from kaigen.pipeline.run import Compiled, compile_specs, load_specs, make_context, validate

KIND = """\
apiVersion: kaigen.dev/v1alpha1
kind: KindDefinition
defines:
  apiVersion: acme.example/v1
  kind: Thing
summary: a thing to try
"""
SCHEMA = """\
type: object
additionalProperties: false
properties:
  text: {type: string, default: hello, description: Some text.}
  count: {type: integer, minimum: 1, maximum: 9, default: 2, description: How many.}
  any: {}
"""
HEAD = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ release }}
data:
"""
SPEC = """\
apiVersion: acme.example/v1
kind: Thing
metadata: {name: one}
spec: {text: hello}
"""


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A folder with the kind `Thing` and a document of it.

    Args:
        folder: made anew.
        files: by path; those of the kind itself below `kind/`, templates below `t/`.
    """
    every = {
        "kaigen.yaml": "namespace: ml\nkinds: [kinds]\n",
        "kind/kind.yaml": KIND,
        "kind/schema.yaml": SCHEMA,
        "t/map.yaml.jinja": HEAD + "  text: {{ spec.text }}\n",
        "specs/one.yaml": SPEC,
        **(files or {}),
    }
    for path, text in every.items():
        place = path.replace("kind/", "kinds/thing/", 1) if path.startswith("kind/") else path
        place = place.replace("t/", "kinds/thing/templates/", 1) if path.startswith("t/") else place
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def told(folder: Path, environment: str = "") -> list[str]:
    """What is wrong with a repository: place, code, message and hint, a line each."""
    try:
        found, _ = validate((), load_config(folder, environment))
    except InputError as error:
        found = error.diagnostics
    return [line(item, folder) for item in found]


def line(item: Diagnostic, folder: Path) -> str:
    """A diagnostic on one line."""
    place = (
        str(item.mark).replace(f"{folder}/", "").replace("kinds/thing/templates/", "") if item.mark else ""
    )
    text = f"{place} {item.severity.label[0]} {item.code} {item.message}" + (
        f" ({item.hint})" if item.hint else ""
    )
    return text.replace(f"{folder}/", "")


def app_of(folder: Path) -> App:
    """The app of a repository's one document, unchecked."""
    config = load_config(folder)
    (spec,) = load_specs((), config).specs
    problems = Problems()
    app = spec.target.compiler()(spec.block, make_context(config, SpecIndex()), problems)
    assert not problems.failed, [*problems.items, *problems.diagnostics]
    assert isinstance(app, App)
    return app


def compiled(folder: Path, environment: str = "") -> Compiled:
    """The one app of a repository."""
    config = load_config(folder, environment)
    (item,) = compile_specs(load_specs((), config), config).apps
    return item
