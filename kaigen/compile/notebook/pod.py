"""The pod of a Notebook."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.builders import settings
from kaigen.compile.builders.access import account_fields, token_volume
from kaigen.compile.builders.image_build import build_gate
from kaigen.compile.builders.job_gate import gate_account
from kaigen.compile.builders.params import ParamsOf
from kaigen.compile.builders.pod_options import extended_pod
from kaigen.compile.builders.pods import (
    SCRATCH,
    entry_point,
    image_fields,
    main_container_security,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.settings import variables_of
from kaigen.compile.expressions import Release, Setting, Text, Tree
from kaigen.compile.notebook.login import login_container, login_volumes
from kaigen.compile.notebook.resolution import NotebookResolution
from kaigen.compile.notebook.scaling import idle_container, idle_seconds

PORT = 8888
"""Port of the server: that of Jupyter's own images, and of Substratus' containers."""

HOME = "home"
"""Name of the volume with the home folder."""

HOME_CLAIM = Release("-home")
"""Name of its claim."""

TOKEN_FILE = "JUPYTER_TOKEN_FILE"
"""Variable with the path of the token (source: jupyter_server/auth/identity.py, `_token_default`)."""

IDLE = "NOTEBOOK_IDLE_SECONDS"
"""Variable of kaigen's image (source: its README)."""

TOKEN_VOLUME = "notebook-token"
"""Name of the volume with the token."""

_TOKEN_FOLDER = "/etc/kaigen-token"
_STARTUP_ATTEMPTS = 60
_SCRATCH = "10Gi"
"""Limit of /tmp: three times what pip writes there to install PyTorch with CUDA, 3.1 GB of wheels."""


def pod_spec(resolution: NotebookResolution) -> dict[str, Tree]:
    """Return the spec of the pod."""
    return extended_pod(own_pod(resolution), resolution.spec, resolution.context)


def own_pod(resolution: NotebookResolution) -> dict[str, Tree]:
    """Return the spec of the pod without what the fields about pods add."""
    spec = resolution.spec
    image, origin = resolution.image
    init = [*build_gate(resolution.build, resolution.context), *resolution.mounted.init]
    claims: Tree = [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]
    return {
        **account_fields(spec),
        **({"serviceAccountName": gate_account(spec)} if _has_token(resolution) else {}),
        "enableServiceLinks": False,
        "imagePullSecrets": settings.pull_secrets(
            "imagePullSecrets", pull_secrets(image, spec=spec), "Secrets for pulling the images.", origin=origin
        ),
        **resolution.scheduling,
        "securityContext": dict(resolution.security),
        **({"resourceClaims": claims} if resolution.resources.device_class else {}),
        **({"initContainers": init} if init else {}),
        "containers": [_container(resolution), *_login(resolution), *_idle(resolution)],
        "volumes": _volumes(resolution),
    }


def params_of(resolution: NotebookResolution) -> ParamsOf:
    """Return the parameters."""
    return ParamsOf(resolution.spec.params, "Parameters of the notebook.", resolution.spec.params_file)


def container_mounts(resolution: NotebookResolution) -> list[Mapping[str, Tree]]:
    """Return the volume mounts of the container."""
    mounts: list[Mapping[str, Tree]] = [
        {"name": HOME, "mountPath": resolution.spec.storage.mount_path},
        _token_mount(),
        *resolution.mounted.mounts,
        *params_of(resolution).mounts(),
        {"name": SCRATCH, "mountPath": "/tmp"},
    ]
    if resolution.resources.shared_memory:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    return mounts


def _token_mount() -> dict[str, Tree]:
    """Return the mount of the token that opens the notebook."""
    return {"name": TOKEN_VOLUME, "mountPath": _TOKEN_FOLDER, "readOnly": True}


def _has_token(resolution: NotebookResolution) -> bool:
    """Return whether a container of the pod calls the API server."""
    return resolution.build is not None or resolution.spec.idle is not None


def _volumes(resolution: NotebookResolution) -> list[Tree]:
    resources, route = resolution.resources, resolution.spec.route
    token, key = _token_settings(resolution)
    volumes: list[Tree] = [
        {"name": HOME, "persistentVolumeClaim": {"claimName": HOME_CLAIM}},
        {
            "name": TOKEN_VOLUME,
            "secret": {
                "secretName": token,
                "items": [{"key": key, "path": "token"}],
            },
        },
        *resolution.mounted.volumes,
        *params_of(resolution).volumes(),
        scratch_volume(resources.scratch_limit or _SCRATCH),
        *(login_volumes(route, resolution.metadata.name) if route is not None else []),
    ]
    if _has_token(resolution):
        volumes.append(token_volume())
    if resources.shared_memory:
        volumes.append(shared_memory_volume(resources.shared_memory))
    return volumes


def _token_settings(resolution: NotebookResolution) -> tuple[Setting, Setting]:
    """Return name and key of the Secret with the token."""
    token, origin = resolution.token, ("spec", "tokenSecret")
    given = resolution.spec.token_secret is not None
    doc = "Secret with the token that opens the notebook."
    return (
        settings.text("tokenSecret.name", token.name, doc, origin=(*origin, "name") if given else ()),
        settings.text(
            "tokenSecret.key", token.key, "Key of the token in the Secret.", origin=(*origin, "key") if given else ()
        ),
    )


def _login(resolution: NotebookResolution) -> list[Tree]:
    """Return the proxy that asks users to sign in; nothing without a route."""
    route = resolution.spec.route
    if route is None:
        return []
    name, key = _token_settings(resolution)
    return [login_container(route, PORT, {"name": name, "key": key}, resolution.context)]


def _idle(resolution: NotebookResolution) -> list[Tree]:
    """Return the container that stops the pod when it is idle; nothing if it never is."""
    if resolution.spec.idle is None:
        return []
    return [idle_container(resolution, PORT, f"{_TOKEN_FOLDER}/token", _token_mount())]


def _container(resolution: NotebookResolution) -> dict[str, Tree]:
    spec, resources = resolution.spec, resolution.resources
    image, origin = resolution.image
    # The version of the server: it answers without a token, and says nothing more.
    probe: dict[str, Tree] = {"httpGet": {"path": "/api", "port": "http"}, "timeoutSeconds": 5}
    return {
        "name": "notebook",
        **image_fields(image, "", origin),
        **entry_point(spec.command, spec.args),
        "workingDir": spec.storage.mount_path,
        "env": [*required_environment(resolution), *variables_of(spec.env), *params_of(resolution).variables()],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": Setting(
            "resources",
            resources.requirements,
            "Resources of the container.",
            settings.RESOURCES,
            origin=("spec", "resources"),
        ),
        "startupProbe": {**probe, "periodSeconds": 5, "failureThreshold": _STARTUP_ATTEMPTS},
        "readinessProbe": {**probe, "periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6},
        "securityContext": main_container_security(spec.security, resources),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": container_mounts(resolution),
    }


def required_environment(resolution: NotebookResolution) -> list[dict[str, Tree]]:
    """Return the variables that kaigen sets and the spec may not override."""
    spec = resolution.spec
    variables: list[dict[str, Tree]] = [
        {"name": "HOME", "value": spec.storage.mount_path},
        {"name": TOKEN_FILE, "value": f"{_TOKEN_FOLDER}/token"},
    ]
    if spec.idle is not None:
        variables.append({"name": IDLE, "value": Text(idle_seconds(spec.idle))})
    return variables
