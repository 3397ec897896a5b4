"""Write an app as plain manifests: one file for each object, and a kustomization that lists them."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import App, Rendered
from kaigen.core.json_types import Json
from kaigen.kubernetes.manifest import mapping
from kaigen.yaml.dump import dump

NAME_REFERENCES = "name-references.kustomize"
"""Configuration of kustomize: the fields that name other objects. Files with this ending contain no objects."""


def app_folder(app: App) -> str:
    """Return the folder of an app in the output tree."""
    return f"{app.namespace}/{app.name}"


def shown_source(app: App) -> str:
    """Return the name of the spec's file, safe for one line of YAML or Markdown."""
    return "".join(char if char.isprintable() and char != "`" else "?" for char in app.source)


def header(app: App) -> str:
    """Return the first line of a rendered file."""
    origin = f" from {shown_source(app)}" if app.source else ""
    return f"# Rendered by kaigen{origin}. Change the spec, not this file.\n"


def manifest_files(
    app: App, values: Mapping[str, Json] | None = None, *, rendered: list[Rendered] | None = None
) -> dict[str, bytes]:
    """Return the files of an app's manifests by path in the output tree.

    Args:
        app: the app.
        values: settings with overrides applied; the defaults when None.
        rendered: the app's objects, if the caller already has them.
    """
    folder = f"{app_folder(app)}/manifests"
    head = header(app) + "---\n"
    items = app.render(values) if rendered is None else rendered
    files = {f"{folder}/{_file(item)}": (item.object.verbatim or head + dump(item.body)).encode() for item in items}
    kustomization: dict[str, Json] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": [_file(item) for item in items],
    }
    references = _name_references(items)
    if references:
        kustomization["configurations"] = [NAME_REFERENCES]
        files[f"{folder}/{NAME_REFERENCES}"] = (head + dump({"nameReference": references})).encode()
    files[f"{folder}/kustomization.yaml"] = (head + dump(kustomization)).encode()
    return files


def _name_references(items: list[Rendered]) -> list[Json]:
    """Return the fields with names of other objects that kustomize does not know, for overlays that change names.

    kustomize knows those of a HorizontalPodAutoscaler, and not those of KEDA
    (source: its documentation of `configurations`, and api/internal/konfig/builtinpluginconsts/namereference.go).
    """
    scaled = [mapping(item.body.get("spec")) for item in items if item.body.get("kind") == "ScaledObject"]
    # Without a kind, KEDA scales a Deployment.
    targets = {str(mapping(spec.get("scaleTargetRef")).get("kind") or "Deployment") for spec in scaled}
    fields: list[Json] = [{"kind": "ScaledObject", "path": "spec/scaleTargetRef/name"}]
    return [{"kind": kind, "fieldSpecs": fields} for kind in sorted(targets)]


def manifest_stream(items: list[Rendered]) -> str:
    """Return objects as one YAML stream in apply order."""
    ordered = sorted(items, key=lambda item: item.object.wave)
    return "".join(_document(item.object.verbatim or dump(item.body)) for item in ordered)


def _file(item: Rendered) -> str:
    return f"{item.object.role}.{item.object.ending}"


def _document(text: str) -> str:
    return f"---\n{text.removeprefix('---').lstrip()}" + ("" if text.endswith("\n") else "\n")
