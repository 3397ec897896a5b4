"""The Model that trains what a Notebook tried, as the design wants it after a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.dialects.substratus.image import CONTEXT
from kaigen.dialects.substratus.names import API_VERSION
from kaigen.kinds.kind import Continued, GitSource, Trainer
from kaigen.kinds.lowering import PREFIX

_COMMENT = "# {field}: {{name: {word}}}  # Name the {what}: the notebook has none.\n"
_OF_IMAGE = "pod-security"
"""Annotation, without `kaigen.dev/`, that belongs to an image: whether it runs as its own user."""


def trainer_of(document: Mapping[str, Any], name: str, trainer: Trainer) -> Continued:
    """Return a Model with the image, base model, dataset, parameters and resources of a notebook.

    Args:
        document: the notebook as plain data.
        name: name of the Model.
        trainer: image with the training program, and its entry point.
    """
    spec: Mapping[str, Any] = document.get("spec") or {}
    given: Mapping[str, Any] = document["metadata"]
    is_design = "container" in spec or "sourceModel" in spec
    fields, directives = _image(spec, given.get("annotations") or {}, trainer, is_design=is_design)
    metadata: dict[str, Any] = {"name": name}
    if "namespace" in given:
        metadata["namespace"] = given["namespace"]
    if directives:
        metadata["annotations"] = directives
    has_image = bool(fields)
    model = spec.get("model") or spec.get("baseModel") or spec.get("sourceModel")
    dataset = spec.get("dataset") or spec.get("trainingDataset")
    base = "baseModel" if is_design else "model"
    run: dict[str, Any] = {}
    if model:
        run[base] = {"name": model} if isinstance(model, str) else dict(model)
    if dataset:
        run["dataset"] = dict(dataset)
    run |= {key: spec[key] for key in ("resources", "params") if spec.get(key)}
    if trainer.command:
        fields["command"] = list(trainer.command)
    blank = {"model": not model, "dataset": not dataset}
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
        has_image=has_image,
    )


def _image(
    spec: Mapping[str, Any], annotations: Mapping[str, str], trainer: Trainer, *, is_design: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields with the image and the annotations that belong to it; none for kaigen's own image."""
    if trainer.image:
        image = {"image": trainer.image}
        return {"container": image} if is_design else image, {}
    if trainer.git is not None:
        return _git(trainer.git, is_design=is_design), {}
    if trainer.artifact:
        return {"container": {"local": True}}, {PREFIX + CONTEXT: trainer.artifact}
    of_image = {PREFIX + name: annotations[PREFIX + name] for name in (_OF_IMAGE,) if PREFIX + name in annotations}
    container: Mapping[str, Any] = spec.get("container") or {}
    build: Mapping[str, Any] = spec.get("build") or {}
    if isinstance(spec.get("image"), Mapping):
        # The block of earlier releases.
        build, named = {**build, **spec["image"]}, spec["image"].get("name")
    else:
        named = spec.get("image")
    if named and not (build.get("git") or build.get("upload")):
        image = {"image": named}
        return {"container": image} if is_design else image, of_image
    if build.get("git"):
        return {"build": {"git": dict(build["git"])}}, of_image
    if any(container.get(key) for key in ("image", "git")):
        return {"container": {key: container[key] for key in ("image", "git") if key in container}}, of_image
    context = annotations.get(PREFIX + CONTEXT)
    if context is None:
        return {}, {}
    local = {"build": {"upload": dict(build["upload"])}} if build.get("upload") else {"container": {"local": True}}
    return local, {PREFIX + CONTEXT: context, **of_image}


def _git(source: GitSource, *, is_design: bool) -> dict[str, Any]:
    """Return the fields of an image that is built from a commit, with its branch for the reader."""
    branch = ("ref", f"refs/heads/{source.branch}") if is_design else ("branch", source.branch)
    git = {"url": source.url} | ({branch[0]: branch[1]} if source.branch else {}) | {"commit": source.commit}
    git |= {"path": source.path} if source.path else {}
    return {"container": {"git": git}} if is_design else {"build": {"git": git}}
