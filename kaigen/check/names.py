"""The syntax of names: of objects, labels, annotations, and what stands in a pod.

Sources: the validation code of k8s.io/apimachinery and k8s.io/kubernetes v1.36.3, and for custom resources
that of their controllers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kaigen.check import codes
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.kind_table import kind_of
from kaigen.kubernetes.manifest import Object, Path, mapping
from kaigen.kubernetes.names import (
    LABEL_1123,
    LABEL_FORM,
    LABEL_NAME,
    PORT_NAME,
    QUALIFIED,
    NameRule,
    is_qualified,
)
from kaigen.kubernetes.pods import Container, PodTemplate

ENV_NAME = r"[-._a-zA-Z][-._a-zA-Z0-9]*"
ANNOTATIONS_MAX = 256 * 1024


_good_keys: set[str] = set()
_good_values: set[str] = {""}


def object_name_findings(obj: Object) -> Iterator[Problem]:
    """The name of an object, or the prefix that one is generated from."""
    metadata = mapping(obj.get("metadata"))
    name, prefix = metadata.get("name"), metadata.get("generateName")
    rule = kind_of(obj).name
    if isinstance(name, str) and name:
        yield from _name(name, rule, ("metadata", "name"), str(obj.get("kind")))
    elif isinstance(prefix, str) and prefix:
        # The server cuts the prefix and adds five characters, so that only its form can be wrong.
        if not re.fullmatch(rule.pattern, prefix.removesuffix("-")):
            message = f"`{prefix}` is not of {rule.form}"
            yield Problem(codes.NAME_INVALID, message, ("metadata", "generateName"))
        yield Problem(
            codes.NAME_GENERATED,
            "a generated name makes a new object at every sync",
            ("metadata", "generateName"),
            "give it a name; end it in a hash of the content where each change must make a new object",
            Severity.WARNING,
        )
    else:
        yield Problem(codes.NAME_MISSING, "lacks a name", ("metadata",) if metadata else ())
    namespace = metadata.get("namespace")
    if isinstance(namespace, str) and namespace:
        path: Path = ("metadata", "namespace")
        yield from _name(namespace, LABEL_NAME, path, "Namespace")


def _name(name: str, rule: NameRule, path: Path, kind: str) -> Iterator[Problem]:
    if len(name) > rule.max_length:
        reason = f": {rule.reason}" if rule.reason else ""
        message = f"the name has {len(name)} characters, a {kind}'s may have {rule.max_length}{reason}"
        yield Problem(codes.NAME_TOO_LONG, message, path)
    if not re.fullmatch(rule.pattern, name):
        yield Problem(codes.NAME_INVALID, f"`{name}` is not of {rule.form}", path, _mended(name, rule))


def _mended(name: str, rule: NameRule) -> str:
    """A hint with a valid name near to an invalid one."""
    better = re.sub(r"[^a-z0-9.-]+" if "." in rule.form else r"[^a-z0-9-]+", "-", name.lower()).strip("-.")
    return f"`{better}` would do" if better and re.fullmatch(rule.pattern, better) else ""


def label_findings(labels: object, path: Path) -> Iterator[Problem]:
    """The keys and values of labels, or of anything that is matched with labels."""
    if not isinstance(labels, dict):
        return
    for key, value in labels.items():
        if key not in _good_keys:
            if not isinstance(key, str) or not is_qualified(key):
                yield Problem(codes.LABEL_INVALID, f"`{key}` is not a label key", (*path, str(key)))
            else:
                _remember(_good_keys, key)
        if isinstance(value, str) and value not in _good_values:
            if len(value) > 63:
                message = f"the value has {len(value)} characters, a label's may have 63"
                yield Problem(codes.LABEL_INVALID, message, (*path, str(key)))
            elif not re.fullmatch(QUALIFIED, value):
                message = f"`{value}` is not a label value: letters, digits, and '-', '_', '.' between them"
                yield Problem(codes.LABEL_INVALID, message, (*path, str(key)))
            else:
                _remember(_good_values, value)


def _remember(good: set[str], text: str) -> None:
    """Labels repeat from object to object: keep what was found valid."""
    if len(good) < 10_000:
        good.add(text)


def metadata_findings(metadata: Object, path: Path) -> Iterator[Problem]:
    """The labels and annotations of an object or a template."""
    yield from label_findings(metadata.get("labels"), (*path, "labels"))
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict):
        return
    size = 0
    for key, value in annotations.items():
        if key not in _good_keys:
            if not isinstance(key, str) or not is_qualified(key):
                message = f"`{key}` is not an annotation key"
                yield Problem(codes.ANNOTATION_INVALID, message, (*path, "annotations", str(key)))
            else:
                _remember(_good_keys, key)
        size += len(str(key)) + len(str(value))
    # Bytes are counted only where characters do not settle it.
    if size * 4 > ANNOTATIONS_MAX:
        size = sum(len(str(k).encode()) + len(str(v).encode()) for k, v in annotations.items())
        if size > ANNOTATIONS_MAX:
            message = f"the annotations have {size} bytes, at most {ANNOTATIONS_MAX} are stored"
            yield Problem(codes.TOO_LARGE, message, (*path, "annotations"))


def pod_name_findings(template: PodTemplate, found: Sequence[Container]) -> Iterator[Problem]:
    """Names inside a pod: containers, volumes, variables, ports, and labels to match."""
    spec, path = template.spec, (*template.path, "spec")
    yield from label_findings(spec.get("nodeSelector"), (*path, "nodeSelector"))
    volumes = spec.get("volumes")
    if isinstance(volumes, list):
        for number, volume in enumerate(volumes):
            if isinstance(volume, dict):
                yield from _dns_label(volume.get("name"), (*path, "volumes", number, "name"), "volume")
    first: dict[str, str] = {}
    for container in found:
        name = container.body.get("name")
        yield from _dns_label(name, (*container.path, "name"), "container")
        if isinstance(name, str) and first.setdefault(name, container.field) != container.field:
            message = f"the container `{name}` is also in {first[name]}"
            yield Problem(codes.POD_NAME_INVALID, message, (*container.path, "name"))
        yield from _variables(container)
        yield from _ports(container)


def _dns_label(name: object, path: Path, what: str) -> Iterator[Problem]:
    if not isinstance(name, str) or name in _good_labels:
        return
    if len(name) > 63:
        message = f"the name has {len(name)} characters, a {what}'s may have 63"
        yield Problem(codes.POD_NAME_INVALID, message, path)
    elif not re.fullmatch(LABEL_1123, name):
        message = f"`{name}` is not a {what} name: {LABEL_FORM}"
        yield Problem(codes.POD_NAME_INVALID, message, path, _mended(name, LABEL_NAME))
    else:
        _remember(_good_labels, name)


_good_labels: set[str] = set()
_good_variables: set[str] = set()
_good_ports: set[str] = set()


def _variables(container: Container) -> Iterator[Problem]:
    listed = container.body.get("env")
    if not isinstance(listed, list):
        return
    for number, variable in enumerate(listed):
        name = variable.get("name") if isinstance(variable, dict) else None
        if not isinstance(name, str) or name in _good_variables:
            continue
        if not re.fullmatch(ENV_NAME, name):
            message = f"`{name}` is not a variable name: letters, digits, '_', '-', '.', and no digit first"
            yield Problem(codes.ENV_NAME_INVALID, message, (*container.path, "env", number, "name"))
        else:
            _remember(_good_variables, name)


def _ports(container: Container) -> Iterator[Problem]:
    listed = container.body.get("ports")
    if not isinstance(listed, list):
        return
    seen: set[str] = set()
    for number, port in enumerate(listed):
        name = port.get("name") if isinstance(port, dict) else None
        if not isinstance(name, str):
            continue
        path = (*container.path, "ports", number, "name")
        if name in seen:
            yield Problem(codes.PORT_NAME_INVALID, f"the port name `{name}` is given twice", path)
        seen.add(name)
        yield from port_name_findings(name, path)


def port_name_findings(name: str, path: Path) -> Iterator[Problem]:
    """The name of a container's port, or of one that a Service or a probe calls."""
    if name in _good_ports:
        return
    if len(name) > 15:
        message = f"the port name `{name}` has {len(name)} characters, it may have 15"
        yield Problem(codes.PORT_NAME_INVALID, message, path)
    elif not re.fullmatch(PORT_NAME, name):
        message = f"`{name}` is not a port name: lower-case letters, digits and single '-' between them"
        yield Problem(codes.PORT_NAME_INVALID, message, path)
    else:
        _remember(_good_ports, name)
