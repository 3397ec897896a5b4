"""Policies for objects in Git: Pod Security, names and labels, resources, and no secrets.

`kaigen.check.schema_check` checks whether the API server accepts an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from kaigen.check import codes
from kaigen.check.amounts import claim_findings, node_findings, resource_findings, scratch_findings
from kaigen.check.folder_build import folder_build_findings
from kaigen.check.forms import DATA_KEY
from kaigen.check.live_fields import live_findings
from kaigen.check.names import (
    label_findings,
    metadata_findings,
    object_name_findings,
    pod_name_findings,
    port_name_findings,
)
from kaigen.core.credentials import SHORTEST, looks_like_secret, may_contain_secret
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.images import is_image, lower_case
from kaigen.kubernetes.manifest import Object, entries, group_of, mapping, type_of
from kaigen.kubernetes.names import LABEL_1123, LABEL_FORM
from kaigen.kubernetes.pod_security import LEVELS, Control, violations
from kaigen.kubernetes.pods import Container, PodTemplate, containers, pod_templates
from kaigen.kubernetes.runs import job_set_spec
from kaigen.kubernetes.schemas import is_cluster_scoped

DATA_MAX = 1024 * 1024
CLIENT_APPLY_MAX = 256 * 1024

_NAMESPACE = ("metadata", "namespace")


def check_names(obj: Object) -> list[Problem]:
    """Check the names, labels, annotations and keys of an object that the API server checks beyond its schema, the
    names of its images, and that a build of its folder does not change it."""
    metadata = mapping(obj.get("metadata"))
    return [
        *object_name_findings(obj),
        *metadata_findings(metadata, ("metadata",)),
        *live_findings(obj),
        *folder_build_findings(obj),
        *kind_findings(obj),
        *image_findings(obj),
    ]


def check_policy(obj: Object, *, pod_security: str = "restricted") -> list[Problem]:
    """Check an object against the policies.

    Args:
        obj: one Kubernetes object of plain values; values of the wrong type are ignored.
        pod_security: the level of the Pod Security Standards that its pods must meet: `privileged`, `baseline`
            or `restricted`.

    Returns:
        All problems; missing requests and the like are warnings.

    Raises:
        ValueError: there is no such level.
    """
    if pod_security not in LEVELS:
        raise ValueError(f"no Pod Security level {pod_security!r}; there are {', '.join(LEVELS)}")
    metadata = mapping(obj.get("metadata"))
    findings = [*check_names(obj), *claim_findings(obj), *_secret_findings(obj)]
    if "namespace" in metadata and is_cluster_scoped(str(obj.get("apiVersion")), str(obj.get("kind"))):
        message = f"a {obj.get('kind')} belongs to no namespace"
        findings.append(
            Problem(codes.NAMESPACE_ON_CLUSTER_KIND, message, ("metadata", "namespace"), "remove metadata.namespace")
        )
    for template in pod_templates(obj):
        if template.path and template.metadata:
            findings += metadata_findings(template.metadata, (*template.path, "metadata"))
        found = containers(template)
        findings += pod_name_findings(template, found)
        findings += scratch_findings(template)
        findings += node_findings(template)
        findings += _security_findings(template, pod_security)
        for container in found:
            if not template.single:  # its controller sets requests
                findings += resource_findings(template, container)
            findings += _literal_findings(container)
    return findings


def _security_findings(template: PodTemplate, level: str) -> list[Problem]:
    """Return a finding for every violation of a Pod Security level in one pod."""
    found = []
    for violation in violations(template, level):
        subject = f"the container `{violation.container}`" if violation.container else "the pod"
        message = f"{subject} {violation.problem}"
        found.append(Problem(_CODES[violation.control], message, violation.path, violation.hint))
    return found


_CODES: dict[Control, str] = {control: getattr(codes, control.name) for control in Control}


_IMAGE_FORM = (
    "write REGISTRY/REPOSITORY:TAG: a repository has small letters and digits, and between them `.`, `_`, `__`, `-` "
    "or `/`"
)


def image_findings(obj: Object) -> Iterator[Problem]:
    """Check the names of the images of containers and volumes, in the pods of an object."""
    for path, image in _images(obj):
        if isinstance(image, str) and image and not is_image(image):
            meant = lower_case(image)
            hint = f"did you mean `{meant}`?" if is_image(meant) else _IMAGE_FORM
            yield Problem(codes.IMAGE_INVALID, f"`{image}` is not the name of an image", path, hint)


def _images(obj: Object) -> Iterator[tuple[FieldPath, object]]:
    for template in pod_templates(obj):
        for container in containers(template):
            yield (*container.path, "image"), container.body.get("image")
        for number, volume in entries(template.spec.get("volumes")):
            reference = mapping(volume.get("image")).get("reference")
            yield (*template.spec_path, "volumes", number, "image", "reference"), reference


ALTERNATIVES = "refer to a Secret in the cluster, or use an ExternalSecret, a SealedSecret or a SOPS-encrypted Secret"
SECRET_NAME = r"(?:\w*_)?(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|API_?KEY|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY)"


def _secret_findings(obj: Object) -> list[Problem]:
    """Report the values of a Secret, and every value of another object that looks like a credential."""
    if obj.get("kind") == "Secret" and group_of(obj) == "":
        return list(_secret_values(obj))
    texts: list[str] = []
    _collect(obj, texts)
    return list(_long_strings(obj, ())) if may_contain_secret("\n".join(texts)) else []


def _literal_findings(container: Container) -> Iterator[Problem]:
    """Report variables with the name of a secret and a literal value that does not look like a credential."""
    for number, variable in entries(container.body.get("env")):
        name, value = variable.get("name"), variable.get("value")
        if not isinstance(name, str) or not isinstance(value, str) or not value or not _is_secret_name(name):
            continue
        if not value.startswith(("$(", "/")) and not looks_like_secret(f"{name}={value}"):
            yield Problem(
                codes.SECRET_LITERAL,
                f"the variable {name} has a literal value",
                (*container.path, "env", number, "value"),
                f"if the value is secret, {ALTERNATIVES}",
                Severity.WARNING,
            )


@lru_cache(maxsize=10_000)
def _is_secret_name(name: str) -> bool:
    return re.fullmatch(SECRET_NAME, name, re.IGNORECASE) is not None


def _secret_values(obj: Object) -> Iterator[Problem]:
    """Report the values of a Secret, except those that SOPS encrypted."""
    for field in ("data", "stringData"):
        for key, value in mapping(obj.get(field)).items():
            if not ("sops" in obj and isinstance(value, str) and value.startswith("ENC[")):
                message = f"the Secret contains a value for `{key}`"
                yield Problem(codes.SECRET_OBJECT, message, (field, str(key)), ALTERNATIVES)


def _collect(value: dict[str, object] | list[object], texts: list[str]) -> None:
    """Collect all strings long enough for a credential, the longest with their keys."""
    if isinstance(value, dict):
        for key, child in value.items():
            if child.__class__ is str:
                if len(child) >= SHORTEST:
                    texts.append(child if len(child) < 40 else f"{key}={child}")
            elif child.__class__ is dict or child.__class__ is list:
                _collect(child, texts)
    else:
        for child in value:
            if child.__class__ is str:
                if len(child) >= SHORTEST:
                    texts.append(child)
            elif child.__class__ is dict or child.__class__ is list:
                _collect(child, texts)


def _long_strings(value: object, path: FieldPath) -> Iterator[Problem]:
    if isinstance(value, dict):
        name = value.get("name")
        for key, child in value.items():
            if isinstance(child, str):
                label = name if key == "value" and isinstance(name, str) else key
                yield from _credential(str(label), child, (*path, str(key)))
            elif isinstance(child, (dict, list)):
                yield from _long_strings(child, (*path, str(key)))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            if isinstance(child, str):
                yield from _credential("", child, (*path, number))
            elif isinstance(child, (dict, list)):
                yield from _long_strings(child, (*path, number))


def _credential(name: str, value: str, path: FieldPath) -> Iterator[Problem]:
    if len(value) < SHORTEST:
        return
    found = looks_like_secret(value) or looks_like_secret(f"{name}={value}")
    if found:
        yield Problem(codes.SECRET_VALUE, f"looks like {found}", path, ALTERNATIVES)


def kind_findings(obj: Object) -> Iterator[Problem]:
    """Check an object against the policies of its kind, if there are any."""
    check = POLICIES.get(type_of(obj))
    return check(obj) if check else iter(())


def service_findings(obj: Object) -> Iterator[Problem]:
    """Check the port names of a Service, which are required when it has several ports."""
    spec = mapping(obj.get("spec"))
    yield from label_findings(spec.get("selector"), ("spec", "selector"))
    ports = entries(spec.get("ports"))
    seen: set[object] = set()
    for number, port in ports:
        name = port.get("name")
        path: FieldPath = ("spec", "ports", number)
        if name is None and len(ports) > 1:
            message = "a Service with several ports needs a name for each"
            yield Problem(codes.PORT_NAME_INVALID, message, path)
        if isinstance(name, str):
            if name in seen:
                yield Problem(codes.PORT_NAME_INVALID, f"duplicate port name `{name}`", (*path, "name"))
            elif len(name) > 63 or not re.fullmatch(LABEL_1123, name):
                message = f"`{name}` is not a valid port name: {LABEL_FORM}"
                yield Problem(codes.PORT_NAME_INVALID, message, (*path, "name"))
            seen.add(name)
        target = port.get("targetPort")
        if isinstance(target, str):
            yield from port_name_findings(target, (*path, "targetPort"))


def config_map_findings(obj: Object) -> Iterator[Problem]:
    """Check the keys and the size of a ConfigMap."""
    size = 0
    data, binary = mapping(obj.get("data")), mapping(obj.get("binaryData"))
    for field, values in (("data", data), ("binaryData", binary)):
        for key, value in values.items():
            size += len(str(value).encode()) if field == "data" else len(str(value)) * 3 // 4
            if not re.fullmatch(DATA_KEY, str(key)) or key in (".", "..") or str(key).startswith(".."):
                message = f"`{key}` is not a valid key: up to 253 letters, digits, '-', '_' and '.'"
                yield Problem(codes.DATA_KEY_INVALID, message, (field, str(key)))
            elif field == "binaryData" and key in data:
                message = f"the key `{key}` is also in data"
                yield Problem(codes.DATA_KEY_INVALID, message, (field, key))
    if size > DATA_MAX:
        message = f"the ConfigMap has {size} bytes; the limit is {DATA_MAX}"
        yield Problem(codes.TOO_LARGE, message, (), "store the data in a volume or an image")
    elif size > CLIENT_APPLY_MAX:
        message = f"the ConfigMap has {size} bytes; client-side apply stores a copy of at most {CLIENT_APPLY_MAX}"
        hint = "sync it with server-side apply"
        yield Problem(codes.TOO_LARGE, message, (), hint, Severity.WARNING)


def job_findings(obj: Object) -> Iterator[Problem]:
    """Check the longest host name of the pods of an Indexed Job."""
    name, spec = mapping(obj.get("metadata")).get("name"), mapping(obj.get("spec"))
    completions = spec.get("completions")
    if not isinstance(name, str) or not isinstance(completions, int) or spec.get("completionMode") != "Indexed":
        return
    host = f"{name}-{max(completions - 1, 0)}"
    if len(host) > 63:
        message = f"its pods get host names of {len(host)} characters, such as {host}; the limit is 63"
        yield Problem(codes.NAME_TOO_LONG, message, ("metadata", "name"))


def job_set_findings(obj: Object) -> Iterator[Problem]:
    """Check the longest names of the Jobs and pods that a JobSet makes, or the one of a TrainingRuntime."""
    name = mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str):
        return
    spec, where = job_set_spec(obj)
    for number, replicated in entries(spec.get("replicatedJobs")):
        path: FieldPath = (*where, "replicatedJobs", number, "name")
        replicas = replicated.get("replicas", 1)
        job = f"{name}-{replicated.get('name')}-{max(replicas - 1, 0) if isinstance(replicas, int) else 0}"
        if len(job) > 63:
            message = f"its Jobs get names of {len(job)} characters, such as {job}; the limit is 63"
            yield Problem(codes.NAME_TOO_LONG, message, path)
            continue
        job_spec = mapping(mapping(replicated.get("template")).get("spec"))
        completions = job_spec.get("completions", job_spec.get("parallelism", 1))
        pod = f"{job}-{max(completions - 1, 0) if isinstance(completions, int) else 0}-xxxxx"
        if len(pod) > 63:
            message = f"its pods get names of {len(pod)} characters, such as {pod}; the limit is 63"
            yield Problem(codes.NAME_TOO_LONG, message, path)


POLICIES: dict[str, Callable[[Object], Iterator[Problem]]] = {
    "ConfigMap": config_map_findings,
    "Job.batch": job_findings,
    "Service": service_findings,
    "JobSet.jobset.x-k8s.io": job_set_findings,
    # Its TrainJob, and the JobSet of that, have the same name where kaigen made them.
    "TrainingRuntime.trainer.kubeflow.org": job_set_findings,
}
