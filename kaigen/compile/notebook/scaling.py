"""What sets the number of pods of a Notebook besides Git: a container of its pod when it is idle, and its hours.

Both run the program of kaigen-reaper, which may patch the scale of this StatefulSet and one ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import token_mount, token_volume
from kaigen.compile.builders.hours import check_hours
from kaigen.compile.builders.job_gate import gate_account
from kaigen.compile.builders.jobs import Run, limited_spec, seconds
from kaigen.compile.builders.pods import (
    DEFAULT_USER,
    NO_NETWORK,
    container_security,
    image_fields,
    pod_security,
    pull_secrets,
)
from kaigen.compile.builders.weights import SMALL_RESOURCES
from kaigen.compile.expressions import NAME_MAX, Joined, Release, Setting, Text, Tree
from kaigen.compile.notebook.resolution import NotebookResolution
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Security
from kaigen.kinds.notebook import Idle, NotebookSpec
from kaigen.kinds.schedule import Hours
from kaigen.kubernetes.kind_table import longest_name

_Action = Literal["start", "stop"]
_ACTIONS: tuple[_Action, ...] = ("start", "stop")
_COMPONENT = "hours"
_STATE = Release("-state")
_WAVE = 3
_RETRIES = 6
_LATE = 3600
"""Seconds that a start or a stop may be late. A later one would surprise who works in the notebook by then."""


def scaled_by(spec: NotebookSpec) -> str:
    """Return what sets the replicas in the cluster, as the value of an annotation; empty where Git has them."""
    if spec.suspend:
        return ""
    return ", ".join([*(["idle"] if spec.idle is not None else []), *(["hours"] if spec.hours else [])])


def scale_rules(spec: NotebookSpec) -> list[Tree]:
    """Return the rules of a Role that let pods set the replicas of the notebook."""
    if spec.idle is None and not spec.hours:
        return []

    def rule(group: str, resource: str, name: Release) -> Tree:
        return {"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": ["patch"]}

    return [rule("apps", "statefulsets/scale", Release()), rule("", "configmaps", _STATE)]


def state_config_map(resolution: NotebookResolution) -> list[Object]:
    """Return the ConfigMap in which these pods write why the notebook is stopped; nothing where Git decides."""
    if not scale_rules(resolution.spec):
        return []
    metadata = resolution.frame.metadata("", _COMPONENT, name=_STATE)
    return [Object(role="configmap-state", body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})]


def idle_seconds(idle: Idle) -> Setting:
    """Return the setting with the time without activity."""
    return settings.count(
        "idleSeconds",
        seconds(idle.after),
        "Seconds without activity after which kernels and terminals end, and the pod stops.",
        origin=("spec", "idle", "after"),
    )


def idle_container(resolution: NotebookResolution, port: int, token: str, mount: Mapping[str, Tree]) -> dict[str, Tree]:
    """Return the container that stops the pod when Jupyter is idle.

    Args:
        resolution: the notebook.
        port: port of Jupyter.
        token: path of the token that opens it.
        mount: mount of the volume with this token.
    """
    assert resolution.spec.idle is not None
    after = idle_seconds(resolution.spec.idle)
    arguments: list[Tree] = [
        "idle",
        *_target(),
        Joined(("--after=", Text(after), "s")),
        f"--port={port}",
        f"--token-file={token}",
    ]
    return {**_program(resolution, "idle", "idle.", arguments), "volumeMounts": [mount, token_mount()]}


def hours_objects(resolution: NotebookResolution) -> list[Object]:
    """Return the CronJobs that start and stop the pod; nothing without hours."""
    return [
        _cron_job(resolution, number, hours, action)
        for number, hours in enumerate(resolution.spec.hours)
        for action in _ACTIONS
    ]


def check_scaling(resolution: NotebookResolution, problems: Problems) -> None:
    """Report hours that contradict each other, and a name to which the names of their CronJobs add too much.

    A shorter beginning of all names would be another volume: that of a notebook whose spec got hours later.
    """
    check_hours(resolution.spec.hours, ("spec", "hours"), problems)
    made = [(longest_name(each.body), each.name) for each in hours_objects(resolution)]  # type: ignore[arg-type]
    most = min((room - len(name.suffix) for room, name in made if isinstance(name, Release)), default=NAME_MAX)
    if len(resolution.metadata.name) > most:
        problems.error(
            "KG0452",
            f"`hours` needs a name of at most {most} characters, and {resolution.metadata.name} has more",
            ("spec", "hours"),
            "leave `hours` out, or create a notebook with a shorter name",
        )


def _cron_job(resolution: NotebookResolution, number: int, hours: Hours, action: _Action) -> Object:
    frame, spec = resolution.frame, resolution.spec
    starts = action == "start"
    what, path = (f"{action}-{number + 1}", f"{action}{number + 1}") if number else (action, action)
    origin: FieldPath = ("spec", "hours", number)
    replicas = 1 if starts else 0
    arguments: list[Tree] = ["scale", *_target(), f"--replicas={replicas}"]
    pod: dict[str, Tree] = {
        "restartPolicy": "Never",
        "serviceAccountName": gate_account(spec),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "imagePullSecrets": settings.pull_secrets(
            "imagePullSecrets", pull_secrets(resolution.image[0], spec=spec), "Secrets for pulling the images."
        ),
        "securityContext": pod_security(Security()),
        "containers": [{**_program(resolution, _COMPONENT, "hours.", arguments), "volumeMounts": [token_mount()]}],
        "volumes": [token_volume()],
    }
    run = Run(
        frame,
        role=f"cronjob-{what}",
        component=_COMPONENT,
        wave=_WAVE,
        pod=pod,
        retries=_RETRIES,
        deadline=None,
        origin=(),
        prefix="hours.",
        permanent={_COMPONENT: (13,)},
    )
    body: dict[str, Tree] = {
        "schedule": settings.text(
            f"hours.{path}.cron",
            hours.start if starts else hours.end,
            f"When the notebook {action}s, as a cron expression.",
            origin=(*origin, "start" if starts else "end"),
        ),
        "timeZone": settings.text(
            f"hours.{path}.timeZone", hours.time_zone, "Time zone of this time.", origin=(*origin, "timeZone")
        ),
        "concurrencyPolicy": "Replace",
        "startingDeadlineSeconds": _LATE,
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "suspend": spec.suspend,
        "jobTemplate": {"metadata": {"labels": frame.all_labels(_COMPONENT)}, "spec": limited_spec(run)},
    }
    return Object(
        role=run.role,
        wave=_WAVE,
        body={
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": frame.metadata(f"-{what}", _COMPONENT, wave=_WAVE),
            "spec": body,
        },
    )


def _target() -> list[Tree]:
    return [Joined(("--name=", Release())), Joined(("--state=", _STATE))]


def _program(resolution: NotebookResolution, name: str, prefix: str, arguments: list[Tree]) -> dict[str, Tree]:
    """Return a container that runs kaigen-reaper, without mounts."""
    return {
        "name": name,
        **NO_NETWORK,
        **image_fields(resolution.context.config.images["reaper"], prefix, ()),
        "args": arguments,
        "resources": Setting(
            f"{prefix}resources", dict(SMALL_RESOURCES), "Resources of the container.", settings.RESOURCES
        ),
        "securityContext": {"runAsUser": DEFAULT_USER, "runAsNonRoot": True, **container_security(read_only=True)},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
