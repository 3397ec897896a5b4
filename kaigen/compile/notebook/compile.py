"""The compiler of the kind `Notebook`: one pod with a Jupyter server, which may be suspended."""

from __future__ import annotations

from functools import partial

from kaigen.catalog.images import default_images
from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_objects
from kaigen.compile.builders.alerts import run_alerts
from kaigen.compile.builders.egress import Server
from kaigen.compile.builders.frame import POD_SECURITY
from kaigen.compile.builders.image_build import awaited_builds, check_build
from kaigen.compile.builders.job_gate import gate_access
from kaigen.compile.builders.jobs import readiness_test
from kaigen.compile.builders.mounts import check_mounts
from kaigen.compile.builders.network import network_policy, service
from kaigen.compile.builders.pod_options import check_pod_options
from kaigen.compile.builders.pods import check_capabilities
from kaigen.compile.builders.queueing import check_queueing, queue_labels
from kaigen.compile.builders.resources import claim_template
from kaigen.compile.builders.routes import check_route, route_objects
from kaigen.compile.builders.storage import check_access_modes, claim
from kaigen.compile.builders.workloads import WAVE, single_stateful_set
from kaigen.compile.connections import Connections
from kaigen.compile.expressions import Setting, Tree
from kaigen.compile.kind_compiler import Description, KindCompiler
from kaigen.compile.notebook import login, scaling
from kaigen.compile.notebook.pod import (
    HOME_CLAIM,
    PORT,
    container_mounts,
    own_pod,
    params_of,
    pod_spec,
    required_environment,
)
from kaigen.compile.notebook.resolution import NotebookResolution, resolve_notebook
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kubernetes.metadata_keys import SCALED_BY

_STORAGE: FieldPath = ("spec", "storage")

_COMPONENT = "notebook"
_TEST_MINUTES = 15


def notebook_objects(resolution: NotebookResolution) -> list[Object]:
    """Return the objects of a Notebook, in the order of values.yaml."""
    spec, frame, resources = resolution.spec, resolution.frame, resolution.resources
    objects = [_claim(resolution), *resolution.mounted.objects, *params_of(resolution).config_maps(frame, _COMPONENT)]
    if resources.device_class:
        objects.append(claim_template(frame, resources.device_class, resources.device_count, _COMPONENT))
    objects += account_objects(spec, frame, _COMPONENT)
    objects += gate_access(spec, frame, awaited_builds(resolution.build), scaling.scale_rules(spec))
    if resolution.build is not None:
        objects.append(resolution.build.job)
    allowed, route = spec.service.allow_from, spec.route
    open_port = login.PORT if route is not None else PORT if allowed else None
    objects.append(network_policy(frame, port=open_port, allow_from=allowed, origin=("spec", "service", "allowFrom")))
    port = settings.count("service.port", spec.service.port, "Port of the Service.", origin=("spec", "service", "port"))
    objects.append(service(frame, _COMPONENT, port=port, target="http" if route is None else login.PORT_NAME))
    if route is not None:
        objects += login.login_config_maps(route, frame, _COMPONENT)
        profile = resolution.context.profile.name
        objects += route_objects(frame, route, path="/", service_port=port, pool=None, profile=profile)
    workload = _workload(resolution)
    objects += run_alerts(resolution, spec.monitoring, [workload])
    objects += [*scaling.state_config_map(resolution), *scaling.hours_objects(resolution)]
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
    level = spec.security.pod_security
    annotations: dict[str, str] = {POD_SECURITY: level} if level != "restricted" else {}
    annotations |= resolution.mounted.annotations
    labels = queue_labels(spec.placement)
    replicas = Setting(
        "replicas",
        0 if spec.suspend else 1,
        "1, or 0 while the notebook is suspended.",
        {"enum": [0, 1]},
        origin=("spec", "suspend"),
    )
    scaled_by = scaling.scaled_by(spec)
    return single_stateful_set(
        resolution.frame,
        _COMPONENT,
        pod_spec(resolution),
        None if scaled_by else replicas,
        labels=labels,
        annotations=annotations,
        notes={SCALED_BY: scaled_by} if scaled_by else None,
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


def check_notebook(resolution: NotebookResolution, problems: Problems) -> None:
    """Report every problem of a Notebook that its resolution did not."""
    spec = resolution.spec

    def origin(volumes: tuple[Tree, Tree]) -> FieldPath:
        """Return the field of the Model or Dataset that is mounted, or of the home folder."""
        named = [
            field
            for field, mounted in resolution.sources.items()
            for mount in mounted.mounts
            if mount["name"] in volumes
        ]
        return named[-1] if named else (*_STORAGE, "mountPath")

    check_mounts(container_mounts(resolution), origin, problems)
    check_build(spec.build, spec.image, problems)
    check_access_modes(spec.storage, resolution.context, _STORAGE, problems)
    check_pod_options(partial(own_pod, resolution), spec, resolution.metadata.name, resolution.context, problems)
    check_capabilities(spec.security, problems)
    check_queueing(spec.placement, resolution.context.profile, problems, why_single="on one pod")
    if spec.route is not None:
        check_route(spec.route, problems)
        login.check_login(spec.route, problems)
    scaling.check_scaling(resolution, problems)
    for name in (str(entry["name"]) for entry in required_environment(resolution)):
        if name in spec.env:
            message = f"`{name}` is set by kaigen for a Notebook"
            problems.error("KG0313", message, ("spec", "env", name), "leave it out")
    params_of(resolution).check(spec.env, problems)
    own, path = resolution.image
    if resolution.resources.has_gpu and not path and own == default_images()["notebook"]:
        problems.warning(
            "KG0334",
            "kaigen's image of notebooks has no PyTorch, and this one asks for a GPU",
            ("spec", "resources"),
            "set `image`, or build kaigen's with `--with-torch` and name it in `images.notebook` of kaigen.yaml",
        )


def connections_of(resolution: NotebookResolution) -> Connections:
    """Return the provider that users sign in at."""
    route = resolution.spec.route
    oidc = route.oidc if route is not None else None
    return Connections(servers=(Server(oidc.issuer, ("spec", "route", "oidc", "issuer")),) if oidc is not None else ())


compile_notebook = KindCompiler(
    resolve=resolve_notebook,
    check=check_notebook,
    objects=notebook_objects,
    describe=describe_notebook,
    connections=connections_of,
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
        "idle",
        "hours",
        "tokenSecret",
        "resources",
        "models",
        "datasets",
        "storage",
        "serviceAccount",
        "service",
        "route",
        "oidc",
        "oauth2Proxy",
    ),
)
