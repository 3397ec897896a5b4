"""The Model that trains what a `Notebook` tried, as Substratus' design wants it written after a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kaigen.dialects.substratus.names import API_VERSION
from kaigen.kinds.kind import Continued

_COMMENT = "# {field}: {{name: {word}}}  # Name the {what}: the notebook has none.\n"


def trainer_of(document: Mapping[str, Any], name: str, image: str, command: Sequence[str]) -> Continued:
    """Return a Model with the image, base model, dataset, parameters and resources of a notebook.

    Args:
        document: the notebook as plain data.
        name: name of the Model.
        image: image with the training program; that of the notebook, or its build, when empty.
        command: entry point; that of the image when empty.
    """
    spec: Mapping[str, Any] = document.get("spec") or {}
    metadata = {"name": name}
    if "namespace" in document["metadata"]:
        metadata["namespace"] = document["metadata"]["namespace"]
    is_design = "container" in spec or "sourceModel" in spec
    source = _image(spec, image)
    model = spec.get("model") or spec.get("baseModel") or spec.get("sourceModel")
    dataset = spec.get("dataset") or spec.get("trainingDataset")
    run: dict[str, Any] = {}
    if model:
        run["baseModel" if is_design else "model"] = {"name": model} if isinstance(model, str) else dict(model)
    if dataset:
        run["dataset"] = dict(dataset)
    run |= {key: spec[key] for key in ("resources", "params") if spec.get(key)}
    fields: dict[str, Any] = {"container": source} if is_design and "build" not in source else dict(source)
    if command:
        fields["command"] = list(command)
    blank = {"model": not model, "dataset": not dataset}
    base = "baseModel" if is_design else "model"
    indent = "    " if is_design else "  "
    comments = [
        indent + _COMMENT.format(field=field, word=word, what=what)
        for field, word, what, is_blank in (
            (base, "MODEL", "base model", blank["model"]),
            ("dataset", "DATASET", "dataset", blank["dataset"]),
        )
        if is_blank
    ]
    fields |= {"trainer": run} if is_design else run
    return Continued(
        {"apiVersion": API_VERSION, "kind": "Model", "metadata": metadata, "spec": fields},
        "".join(comments),
        tuple(name for name, is_blank in blank.items() if is_blank),
        has_image=bool(source),
    )


def _image(spec: Mapping[str, Any], image: str) -> dict[str, Any]:
    """Return the fields of the image; none for a notebook that is built from a local folder."""
    container: Mapping[str, Any] = spec.get("container") or {}
    build: Mapping[str, Any] = spec.get("build") or {}
    if image or spec.get("image"):
        return {"image": image or spec["image"]}
    if build.get("git"):
        return {"build": {"git": dict(build["git"])}}
    return {key: container[key] for key in ("image", "git") if key in container}
