"""A pod template of the user's, taken as it is in place of what kaigen would make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.field_expressions import Labels
from kaigen.compile.problems import Problems


def check_pod_template(template: Mapping[str, Any], problems: Problems) -> None:
    """Tell of what is not in a pod template, and of what no pod template has."""
    for part in sorted(template.keys() - {"metadata", "spec"}):
        at = ("spec", "template", part)
        problems.error("KG0340", f"a pod template has no field `{part}`", at, "it has `metadata` and `spec`")
    if not isinstance(template.get("spec"), dict):
        at_all = ("spec", "template")
        problems.error("KG0341", "the template has no `spec`", at_all, "add it, with `containers`")


def pod_template(
    template: Mapping[str, Any],
    frame: Frame,
    component: str,
    annotations: Mapping[str, str],
    *,
    defaults: Mapping[str, Any],
    doc: str,
) -> dict[str, Tree]:
    """The template with the app's labels, by which its pods are found, and kaigen's annotations.

    Args:
        template: as the spec has it.
        frame: of the app.
        component: value of the pods' component label.
        annotations: kaigen's own.
        defaults: fields of the pod where the template does not say them.
        doc: what the setting is, for `values.yaml`.
    """
    metadata, spec = template.get("metadata"), template.get("spec")
    given = metadata if isinstance(metadata, Mapping) else {}
    labels = frame.selector(component)
    notes = {**_texts(given.get("annotations")), **annotations}
    pod = {**defaults, **(spec if isinstance(spec, dict) else {})}
    return {
        "metadata": {
            "labels": Labels(labels.common, {**_texts(given.get("labels")), **labels.own}, labels.helper),
            **({"annotations": notes} if notes else {}),
        },
        "spec": Setting("podSpec", pod, doc, settings.OBJECT, origin=("spec", "template", "spec")),
    }


def _texts(value: object) -> dict[str, str]:
    """A mapping of texts, as labels and annotations are; the schema speaks of other values."""
    return {str(key): text for key, text in value.items()} if isinstance(value, Mapping) else {}
