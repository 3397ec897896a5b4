"""Policies for single kinds beyond their schema: Service, ConfigMap, Job, JobSet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from kaigen.check import codes
from kaigen.check.names import label_findings, port_name_findings
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, mapping, type_of
from kaigen.kubernetes.names import LABEL_1123, LABEL_FORM

DATA_KEY = r"[-._a-zA-Z0-9]{1,253}"
DATA_MAX = 1024 * 1024
CLIENT_APPLY_MAX = 256 * 1024


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
    """Check the longest names of the Jobs and pods that a JobSet makes."""
    name = mapping(obj.get("metadata")).get("name")
    if not isinstance(name, str):
        return
    for number, replicated in entries(mapping(obj.get("spec")).get("replicatedJobs")):
        path: FieldPath = ("spec", "replicatedJobs", number, "name")
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
}
