"""Pod templates that users write, in place of pods that kaigen makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders import settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.problems import Problems


def check_pod_template(template: Mapping[str, Any], problems: Problems) -> None:
    """Report a missing `spec`, and fields that a pod template does not have."""
    for field in sorted(template.keys() - {"metadata", "spec"}):
        at = ("spec", "template", field)
        problems.error("KG0340", f"a pod template has no field `{field}`", at, "it has `metadata` and `spec`")
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
    """Return the template with the app's selector labels and kaigen's annotations.

    Args:
        template: the spec's template.
        frame: the app.
        component: value of the pods' component label.
        annotations: kaigen's annotations.
        defaults: fields of the pod that the template may override.
        doc: the setting's comment in `values.yaml`.
    """
    metadata, spec = template.get("metadata"), template.get("spec")
    given = metadata if isinstance(metadata, Mapping) else {}
    pod = {**defaults, **(spec if isinstance(spec, dict) else {})}
    return {
        "metadata": frame.pod_metadata(
            component, {**_texts(given.get("annotations")), **annotations}, labels=_texts(given.get("labels"))
        ),
        "spec": Setting("podSpec", pod, doc, settings.OBJECT, origin=("spec", "template", "spec")),
    }


def _texts(value: object) -> dict[str, str]:
    """Return the string entries of labels or annotations; the schema check reports the others."""
    return {str(key): text for key, text in value.items()} if isinstance(value, Mapping) else {}
