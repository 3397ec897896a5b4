"""The compiler of the kind `Notebook`: one pod with a Jupyter server, which may be suspended."""

from __future__ import annotations

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.devices import claim_template
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.image_build import awaited_builds
from kaigen.compile.builders.job_gate import gate_access
from kaigen.compile.builders.jobs import readiness_test
from kaigen.compile.builders.network import network_policy, service
from kaigen.compile.builders.storage import claim
from kaigen.compile.builders.workloads import WAVE, single_stateful_set
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.notebook.checks import check_notebook
from kaigen.compile.notebook.pod import HOME_CLAIM, PORT, params_of, pod_spec
from kaigen.compile.notebook.resolution import NotebookResolution, resolve_notebook
from kaigen.kubernetes.queues import QUEUE_LABEL

_COMPONENT = "notebook"
_TEST_MINUTES = 15


def notebook_objects(resolution: NotebookResolution) -> list[Object]:
    """Return the objects of a Notebook, in the order of values.yaml."""
    spec, frame, resources = resolution.spec, resolution.frame, resolution.resources
    objects = [_claim(resolution), *resolution.mounted.objects, *params_of(resolution).config_maps(frame, _COMPONENT)]
    if resources.device_class:
        objects.append(claim_template(frame, resources.device_class, resources.device_count, _COMPONENT))
    objects += account_objects(spec, frame, _COMPONENT)
    objects += gate_access(spec, frame, awaited_builds(resolution.build))
    if resolution.build is not None:
        objects.append(resolution.build.job)
    allowed = spec.service.allow_from
    objects.append(
        network_policy(
            frame, port=PORT if allowed else None, allow_from=allowed, origin=("spec", "service", "allowFrom")
        )
    )
    port = settings.count("service.port", spec.service.port, "Port of the Service.", origin=("spec", "service", "port"))
    objects.append(service(frame, _COMPONENT, port=port))
    workload = _workload(resolution)
    return [*objects, workload, *readiness_test(frame, workload, resolution.context, minutes=_TEST_MINUTES)]


def _claim(resolution: NotebookResolution) -> Object:
    # No template of a StatefulSet, whose volumes cannot grow: Kubernetes rejects a change of its templates.
    storage = resolution.spec.storage
    return claim(
        resolution.frame,
        resolution.context,
        storage,
        what="storage",
        name=HOME_CLAIM,
        retain=storage.retain,
        origin=("spec", "storage"),
        role="persistentvolumeclaim",
        wave=WAVE,
    )


def _workload(resolution: NotebookResolution) -> Object:
    """Return the StatefulSet: a new pod starts after the old one has ended, which a volume of one writer needs."""
    spec = resolution.spec
    level, queue = spec.security.pod_security, spec.placement.queue
    annotations: dict[str, str] = {POD_SECURITY: level} if level != "restricted" else {}
    annotations |= resolution.mounted.annotations
    labels: dict[str, Tree] = {QUEUE_LABEL: queue} if queue else {}
    replicas = Setting(
        "replicas",
        0 if spec.suspend else 1,
        "1, or 0 while the notebook is suspended.",
        {"enum": [0, 1]},
        origin=("spec", "suspend"),
    )
    return single_stateful_set(
        resolution.frame, _COMPONENT, pod_spec(resolution), replicas, labels=labels, annotations=annotations
    )


def describe_notebook(resolution: NotebookResolution) -> Description:
    """Return the summary."""
    state = ", suspended" if resolution.spec.suspend else ""
    build = resolution.build
    return Description(
        summary=f"Runs a Jupyter server{state}, with a volume of {resolution.spec.storage.size} for its files.",
        pod_security=resolution.spec.security.pod_security,
        notes=(build.note,) if build is not None else (),
        built=(build.reference,) if build is not None else (),
    )


compile_notebook = KindCompiler(
    resolve=resolve_notebook,
    check=check_notebook,
    objects=notebook_objects,
    describe=describe_notebook,
    default_naming=None,
    settings_order=(
        "image",
        "imagePullPolicy",
        "imagePullSecrets",
        "build",
        "command",
        "args",
        "replicas",
        "env",
        "params",
        "idleSeconds",
        "tokenSecret",
        "resources",
        "models",
        "datasets",
        "storage",
        "serviceAccount",
        "service",
    ),
)
