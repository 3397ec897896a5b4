"""The init container that waits until a Job has completed, and its permission to read that Job."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kaigen.compile.app import Object
from kaigen.compile.builders.access import (
    account_fields,
    account_name,
    account_of,
    role_and_binding,
    service_account,
    token_mount,
)
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.pods import NO_NETWORK, container_security
from kaigen.compile.builders.weights import SMALL_RESOURCES, WAIT_TIMEOUT, downloader_image
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Release, Tree
from kaigen.compile.setting_expressions import Fallback
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Transfer
from kaigen.kinds.pod import PodFields

_COMPONENT = "gate"
_SUFFIX = f"-{_COMPONENT}"


class AwaitedRun(Struct, frozen=True):
    """A run that pods wait for: a Job, JobSet or TrainJob.

    Attributes:
        kind: its kind.
        group: its API group.
        name: setting with its name, which ends in a hash of what it runs.
    """

    kind: str
    group: str
    name: Expr


def job_gate(
    run: AwaitedRun,
    context: Context,
    *,
    name: str,
    transfer: Transfer | None,
    prefix: str = "download",
    origin: FieldPath = ("spec", "transfer"),
) -> dict[str, Tree]:
    """Return the init container that waits until a Job has completed. Its pod needs `token_volume`.

    Args:
        run: the Job.
        context: has the image of the downloader.
        name: name of the container.
        transfer: settings of the downloader, where this app has an image of its own for it.
        prefix: prefix of the settings of its image.
        origin: the spec's field of `transfer`.
    """
    return {
        "name": name,
        **NO_NETWORK,
        **downloader_image(context, transfer or Transfer(), origin if transfer else (), prefix),
        "args": ["wait-job", f"--kind={run.kind}", Joined(("--name=", run.name)), f"--timeout={WAIT_TIMEOUT}"],
        "resources": dict(SMALL_RESOURCES),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [token_mount()],
    }


def gate_account(spec: PodFields) -> Tree:
    """Return the name of the ServiceAccount of pods that wait for Jobs: that of the spec, or one for this alone."""
    account = account_of(spec)
    return Fallback(account_name(), Release(_SUFFIX)) if account is None else account_fields(spec)["serviceAccountName"]


def run_rule(run: AwaitedRun) -> Tree:
    """Return the rule of a Role that lets pods read the Job that they wait for."""
    return {
        "apiGroups": [run.group],
        "resources": [f"{run.kind.lower()}s"],
        "resourceNames": [run.name],
        "verbs": ["get"],
    }


def gate_access(spec: PodFields, frame: Frame, runs: Sequence[AwaitedRun], more: Sequence[Tree] = ()) -> list[Object]:
    """Return what lets pods read the Jobs that they wait for; nothing without any.

    Args:
        spec: the spec, which may name a ServiceAccount.
        frame: the app.
        runs: the Jobs.
        more: further rules of the Role.
    """
    rules = [*(run_rule(run) for run in dict.fromkeys(runs)), *more]
    if not rules:
        return []
    own = [] if account_of(spec) else [service_account(frame, _SUFFIX, _COMPONENT, {}, given=False)]
    return [*own, *role_and_binding(frame, _SUFFIX, _COMPONENT, rules, gate_account(spec))]
