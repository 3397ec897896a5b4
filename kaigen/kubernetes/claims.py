"""PersistentVolumeClaims that objects and Jobs with the image of kaigen-reaper make, and their default class."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries, mapping, steps_of, values_at
from kaigen.kubernetes.pods import containers, pod_templates


def listed_claims(obj: Object) -> Iterator[tuple[FieldPath, Object]]:
    """Yield the templates of the claims that an object makes, with their places."""
    for dotted in kind_of(obj).claim_templates:
        for path, found in values_at(obj, steps_of(dotted)):
            for number, claim in entries(found):
                yield (*path, number), claim


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


STORAGE_CLASS = "storage.k8s.io/v1/StorageClass"

INGRESS_CLASS = "networking.k8s.io/v1/IngressClass"

_IS_DEFAULT = ("storageclass.kubernetes.io/is-default-class", "ingressclass.kubernetes.io/is-default-class")
"""https://kubernetes.io/docs/reference/labels-annotations-taints/"""


def is_default(class_: Object) -> bool:
    """Return whether claims or Ingresses without a class get this one."""
    annotations = mapping(mapping(class_.get("metadata")).get("annotations"))
    return any(annotations.get(name) == "true" for name in _IS_DEFAULT)
