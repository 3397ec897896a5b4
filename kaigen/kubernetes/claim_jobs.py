"""Volumes that Jobs with the image of kaigen-reaper create in the cluster."""

from __future__ import annotations

import json

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.pods import containers, pod_templates

_COMMAND = "claim"
_ARGUMENT = "--volume="


class CreatedVolume(Struct, frozen=True):
    """A PersistentVolumeClaim that a Job creates.

    Attributes:
        body: the PersistentVolumeClaim.
        path: the argument of the Job that has it.
    """

    body: Object
    path: FieldPath


def created_volume(obj: Object) -> CreatedVolume | None:
    """Return the volume that a Job creates with `kaigen-reaper claim`; None for any other object."""
    if obj.get("kind") != "Job":
        return None
    for template in pod_templates(obj):
        for container in containers(template):
            arguments = container.body.get("args")
            if not isinstance(arguments, list) or arguments[:1] != [_COMMAND]:
                continue
            for number, argument in enumerate(arguments):
                if isinstance(argument, str) and argument.startswith(_ARGUMENT):
                    # The kubelet expands `$$` to `$`.
                    text = argument.removeprefix(_ARGUMENT).replace("$$", "$")
                    try:
                        body = json.loads(text)
                    except ValueError:
                        return None
                    return CreatedVolume(mapping(body), (*container.path, "args", number))
    return None
