"""Names of objects, labels and annotations, and names inside pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kaigen.check import codes
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.names import LABEL_1123, LABEL_FORM, LABEL_NAME, PORT_NAME, QUALIFIED, NameRule, is_qualified
from kaigen.kubernetes.pods import Container, PodTemplate
from kaigen.kubernetes.schemas import may_be_custom

ENV_NAME = r"[-._a-zA-Z][-._a-zA-Z0-9]*"
_ACCEPTED_ENV_NAME = r"[ -<>-~]+"
"""What the API server accepts since Kubernetes 1.32 (`IsRelaxedEnvVarName`); few programs read such variables."""
ANNOTATIONS_MAX = 256 * 1024
_PORT_NAME_FORM = "lower-case letters, digits and single '-' between them"


def object_name_findings(obj: Object) -> Iterator[Problem]:
    """Check the name of an object, or the prefix from which the server generates one."""
    metadata = mapping(obj.get("metadata"))
    name, prefix = metadata.get("name"), metadata.get("generateName")
    rule = kind_of(obj).name
    # The server shortens the prefix and adds five characters.
    if isinstance(prefix, str) and len(prefix) > rule.max_length:
        yield from _name_findings(prefix, rule, ("metadata", "generateName"), str(obj.get("kind")))
    elif isinstance(prefix, str) and prefix and not re.fullmatch(rule.pattern, prefix.removesuffix("-")):
        message = f"`{prefix}` is not a valid prefix of a name; allowed: {rule.form}"
        yield Problem(codes.NAME_INVALID, message, ("metadata", "generateName"))
    if isinstance(name, str) and name:
        yield from _name_findings(name, rule, ("metadata", "name"), str(obj.get("kind")))
    elif isinstance(prefix, str) and prefix:
        yield Problem(
            codes.NAME_GENERATED,
            "a generated name makes a new object at every sync",
            ("metadata", "generateName"),
            "set metadata.name; append a hash of the content where each change must make a new object",
            Severity.WARNING,
        )
    else:
        yield Problem(codes.NAME_MISSING, "the object has no name", ("metadata",) if metadata else ())
    yield from _finalizer_findings(obj)
    yield from _owner_findings(metadata)
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace:
        path: FieldPath = ("metadata", "namespace")
        yield from _name_findings(namespace, LABEL_NAME, path, "Namespace")


_OWN_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")


def _finalizer_findings(obj: Object) -> Iterator[Problem]:
    """Check that finalizers of Kubernetes' own kinds have a prefix (`ValidateFinalizerName` of pkg/apis/core)."""
    finalizers = mapping(obj.get("metadata")).get("finalizers")
    if may_be_custom(str(obj.get("apiVersion")), str(obj.get("kind"))) or not isinstance(finalizers, list):
        return
    for number, name in enumerate(finalizers):
        if isinstance(name, str) and "/" not in name and name not in _OWN_FINALIZERS:
            message = f"`{name}` is not a name such as example.com/protection"
            yield Problem(codes.NAME_INVALID, message, ("metadata", "finalizers", number))


def _owner_findings(metadata: Object) -> Iterator[Problem]:
    """Check that an object has at most one owner that controls it (`ValidateOwnerReferences`)."""
    controlling = [number for number, owner in entries(metadata.get("ownerReferences")) if owner.get("controller")]
    if len(controlling) > 1:
        path: FieldPath = ("metadata", "ownerReferences", controlling[1], "controller")
        yield Problem(codes.FIELD_CONFLICT, "only one owner may be the controller", path)


def _name_findings(name: str, rule: NameRule, path: FieldPath, kind: str) -> Iterator[Problem]:
    if len(name) > rule.max_length:
        reason = f": {rule.reason}" if rule.reason else ""
        message = f"the name has {len(name)} characters; the limit for a {kind} is {rule.max_length}{reason}"
        yield Problem(codes.NAME_TOO_LONG, message, path)
    if not re.fullmatch(rule.pattern, name):
        message = f"`{name}` is not a valid name; allowed: {rule.form}"
        yield Problem(codes.NAME_INVALID, message, path, _valid_name_hint(name, rule))


def _valid_name_hint(name: str, rule: NameRule) -> str:
    """Return a hint with the nearest valid name; empty when there is none."""
    better = re.sub(r"[^a-z0-9.-]+" if "." in rule.form else r"[^a-z0-9-]+", "-", name.lower()).strip("-.")
    return f"use `{better}`" if better and re.fullmatch(rule.pattern, better) else ""


def label_findings(labels: object, path: FieldPath) -> Iterator[Problem]:
    """Check the keys and values of labels, or of a mapping that is matched with labels."""
    if not isinstance(labels, dict):
        return
    for key, value in labels.items():
        if not isinstance(key, str) or not _is_key(key):
            yield Problem(codes.LABEL_INVALID, f"`{key}` is not a valid label key", (*path, str(key)))
        if isinstance(value, str) and not _is_label_value(value):
            if len(value) > 63:
                message = f"the value has {len(value)} characters; the limit for a label is 63"
            else:
                message = f"`{value}` is not a valid label value: letters, digits, and '-', '_', '.' between them"
            yield Problem(codes.LABEL_INVALID, message, (*path, str(key)))


# Labels, variables and ports repeat from object to object, so results are kept.
_is_key = lru_cache(maxsize=10_000)(is_qualified)


@lru_cache(maxsize=10_000)
def _is_label_value(value: str) -> bool:
    return not value or (len(value) <= 63 and re.fullmatch(QUALIFIED, value) is not None)


@lru_cache(maxsize=10_000)
def _is_label(name: str) -> bool:
    return len(name) <= 63 and re.fullmatch(LABEL_1123, name) is not None


@lru_cache(maxsize=10_000)
def _is_variable(name: str) -> bool:
    return re.fullmatch(ENV_NAME, name) is not None


@lru_cache(maxsize=10_000)
def _is_port_name(name: str) -> bool:
    return len(name) <= 15 and re.fullmatch(PORT_NAME, name) is not None


def metadata_findings(metadata: Object, path: FieldPath) -> Iterator[Problem]:
    """Check the labels and annotations of an object or a template."""
    yield from label_findings(metadata.get("labels"), (*path, "labels"))
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return
    size = 0
    for key, value in annotations.items():
        if not isinstance(key, str) or not _is_key(key):
            message = f"`{key}` is not a valid annotation key"
            yield Problem(codes.ANNOTATION_INVALID, message, (*path, "annotations", str(key)))
        size += len(str(key)) + len(str(value))
    # Bytes are counted only where the number of characters leaves doubt.
    if size * 4 > ANNOTATIONS_MAX:
        size = sum(len(str(k).encode()) + len(str(v).encode()) for k, v in annotations.items())
        if size > ANNOTATIONS_MAX:
            message = f"the annotations have {size} bytes; the limit is {ANNOTATIONS_MAX}"
            yield Problem(codes.TOO_LARGE, message, (*path, "annotations"))


def pod_name_findings(template: PodTemplate, listed: Sequence[Container]) -> Iterator[Problem]:
    """Check the names inside a pod: containers, volumes, variables, ports, and labels to match."""
    spec, path = template.spec, template.spec_path
    yield from label_findings(spec.get("nodeSelector"), (*path, "nodeSelector"))
    for number, volume in entries(spec.get("volumes")):
        yield from _label_findings(volume.get("name"), (*path, "volumes", number, "name"), "volume")
    first: dict[str, str] = {}
    for container in listed:
        name = container.body.get("name")
        yield from _label_findings(name, (*container.path, "name"), "container")
        if isinstance(name, str) and first.setdefault(name, container.field) != container.field:
            message = f"the name `{name}` is already used in {first[name]}"
            yield Problem(codes.POD_NAME_INVALID, message, (*container.path, "name"))
        yield from _variable_findings(container)
        yield from _port_findings(container)


def _label_findings(name: object, path: FieldPath, what: str) -> Iterator[Problem]:
    if not isinstance(name, str) or _is_label(name):
        return
    if len(name) > 63:
        message = f"the name has {len(name)} characters; the limit for a {what} is 63"
        yield Problem(codes.POD_NAME_INVALID, message, path)
    else:
        message = f"`{name}` is not a valid {what} name: {LABEL_FORM}"
        yield Problem(codes.POD_NAME_INVALID, message, path, _valid_name_hint(name, LABEL_NAME))


def _variable_findings(container: Container) -> Iterator[Problem]:
    for number, variable in entries(container.body.get("env")):
        name = variable.get("name")
        if isinstance(name, str) and not _is_variable(name):
            message = f"`{name}` is not a valid variable name: letters, digits, '_', '-', '.', and no leading digit"
            accepted = re.fullmatch(_ACCEPTED_ENV_NAME, name) is not None
            severity = Severity.WARNING if accepted else Severity.ERROR
            yield Problem(codes.ENV_NAME_INVALID, message, (*container.path, "env", number, "name"), "", severity)


def _port_findings(container: Container) -> Iterator[Problem]:
    seen: set[str] = set()
    for number, port in entries(container.body.get("ports")):
        name = port.get("name")
        if not isinstance(name, str) or not name:
            continue
        path = (*container.path, "ports", number, "name")
        if name in seen:
            yield Problem(codes.PORT_NAME_INVALID, f"duplicate port name `{name}`", path)
        seen.add(name)
        yield from port_name_findings(name, path)


def port_name_findings(name: str, path: FieldPath) -> Iterator[Problem]:
    """Check the name of a port of a container, or of one that a Service or a probe calls."""
    if _is_port_name(name):
        return
    if len(name) > 15:
        message = f"the port name `{name}` has {len(name)} characters; the limit is 15"
    else:
        message = f"`{name}` is not a valid port name: {_PORT_NAME_FORM}"
    yield Problem(codes.PORT_NAME_INVALID, message, path)
