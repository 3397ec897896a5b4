"""Lists the violations of Pod Security level restricted in a pod."""

from __future__ import annotations

from typing import cast

from kaigen.diff.objects import get_map
from kaigen.diff.pods import PodTemplate
from kaigen.kubernetes import pods
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.pod_security import violations


def weaknesses(template: PodTemplate) -> list[str]:
    """Return a description of each violation of level restricted, as in `container main is privileged`."""
    pod = pods.PodTemplate((), cast("Object", get_map(template.data, "metadata")), cast("Object", template.spec))
    return [
        f"{f'container {found.container}' if found.container else 'pod'} {found.problem}"
        for found in violations(pod, "restricted")
    ]
