"""The smallest repository with a kind of its own."""

from __future__ import annotations

from pathlib import Path

from kaigen.compile.app import App
from kaigen.compile.context import SpecIndex
from kaigen.compile.problems import Problems
from kaigen.config.load import load_config
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.compile_spec import make_context
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import Run, compile_specs
from kaigen.pipeline.validate import validate

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
    """Write a repository with the kind `Thing` and one document of it.

    Args:
        folder: the repository's root; created.
        files: contents by path; `kind/` is the folder of the kind, `t/` its templates.
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
        location = path.replace("kind/", "kinds/thing/", 1) if path.startswith("kind/") else path
        location = location.replace("t/", "kinds/thing/templates/", 1) if path.startswith("t/") else location
        target = folder / location
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return folder


def messages(folder: Path, environment: str = "") -> list[str]:
    """Return the diagnostics of a repository, one line each: place, severity, code, message and hint."""
    try:
        found, _ = validate((), load_config(folder, environment))
    except InputError as error:
        found = error.diagnostics
    return [line(item, folder) for item in found]


def line(item: Diagnostic, folder: Path) -> str:
    """Return a diagnostic as one line."""
    place = str(item.mark).replace(f"{folder}/", "").replace("kinds/thing/templates/", "") if item.mark else ""
    text = f"{place} {item.severity.label[0]} {item.code} {item.message}" + (f" ({item.hint})" if item.hint else "")
    return text.replace(f"{folder}/", "")


def app_of(folder: Path) -> App:
    """Compile the only document of a repository without checks."""
    config = load_config(folder)
    (spec,) = Run.load((), config, use_cache=False).specs
    problems = Problems()
    app = spec.target.compiler()(spec.block, make_context(config, SpecIndex()), problems)
    assert not problems.failed, [*problems.items, *problems.diagnostics]
    assert isinstance(app, App)
    return app


def compiled(folder: Path, environment: str = "") -> Compiled:
    """Return the only app of a repository."""
    config = load_config(folder, environment)
    (item,) = compile_specs((), config).apps
    return item


def compiled_counts(folder: Path) -> list[int]:
    """Return how many files each of two renders of a repository compiles."""
    config = load_config(folder)
    counts = []
    for _ in range(2):
        run = Run.load((), config)
        tree = run.tree(folder / "rendered")
        tree.write()
        tree.save()
        counts.append(run.compiled)
    return counts
