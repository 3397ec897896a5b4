"""What kaigen-reaper does for Jobs: it creates volumes that expire, and deletes what finished runs leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import role_and_binding
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import Run, job, seconds
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields, pod_security
from kaigen.compile.builders.storage import claim_spec
from kaigen.compile.builders.weights import SMALL_RESOURCES
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Release, Setting, Text, Tree
from kaigen.compile.field_expressions import Entries
from kaigen.compile.json_expressions import ObjectText
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Security, Volume
from kaigen.kinds.job import PodTtl, Ttl, VolumeTtl
from kaigen.kubernetes.metadata_keys import EXPIRES, FAILED_POD_TTL, FAILED_TTL, POD_TTL, RUN, TTL

NEVER = "never"

_SECONDS: Mapping[str, Any] = {
    "type": ["integer", "string"],
    "anyOf": [{"type": "integer", "minimum": 0}, {"const": NEVER}],
}

EXPIRING: Mapping[str, str] = {EXPIRES: "true"}
"""Label by which kaigen-reaper finds Jobs and volumes."""

_COMPONENT = "claim"
_SUFFIX = f"-{_COMPONENT}"
_WAVE = 1
_RETRIES = 6
_PERMANENT_EXIT_CODES = (10, 13)


def claim_job(
    frame: Frame,
    context: Context,
    volume: Volume,
    ttl: Ttl | VolumeTtl,
    *,
    run: Tree,
    what: str,
    name: Release,
    origin: FieldPath,
    pull: Tree,
) -> list[Object]:
    """Return the Job that creates a volume that expires, and its access to the API server.

    The volume belongs to the ServiceAccount of the Job, which exists as long as the app does. If it belonged to the
    Job, Argo CD and Flux would delete it with that Job when a new run replaces it.

    Args:
        frame: the app.
        context: has the image of the reaper.
        volume: the spec's block.
        ttl: its lifetime.
        run: name of the Job whose end starts the clock.
        what: prefix of the settings' paths, and the component label of the volume.
        name: name of the volume.
        origin: the spec's field of the volume.
        pull: `imagePullSecrets` of the app's pods.
    """
    account = Release(_SUFFIX)
    claim: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "labels": frame.all_labels(what, EXPIRING),
            "annotations": Entries({RUN: run, **_annotations(ttl, what, (*origin, "ttl"))}, frame.annotations_setting),
        },
        "spec": claim_spec(context, volume, what, origin),
    }
    pod: dict[str, Tree] = {
        "restartPolicy": "Never",
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "imagePullSecrets": pull,
        "securityContext": pod_security(Security()),
        "containers": [_container(context, account, ObjectText(claim))],
    }
    made = job(
        Run(
            frame,
            role="job-claim",
            component=_COMPONENT,
            wave=_WAVE,
            pod=pod,
            retries=_RETRIES,
            deadline=None,
            origin=(),
            prefix="claim.",
            permanent={_COMPONENT: _PERMANENT_EXIT_CODES},
            labels=EXPIRING,
            annotations={POD_TTL: "0", FAILED_POD_TTL: NEVER},
            suffix=_SUFFIX,
        )
    )
    return [*_access(frame, account, name, run), made]


def _annotations(ttl: Ttl | VolumeTtl, what: str, origin: FieldPath) -> dict[str, Tree]:
    block = ttl if isinstance(ttl, VolumeTtl) else VolumeTtl(completed=ttl)
    completed = (*origin, "completed") if block is ttl else origin
    failed = (*origin, "failed") if block.failed is not None else completed
    return {
        TTL: ttl_setting(f"{what}.ttl", block.completed, "the volume is deleted after a completed run", completed),
        FAILED_TTL: ttl_setting(
            f"{what}.failedTtl",
            block.completed if block.failed is None else block.failed,
            "the volume is deleted after a failed run",
            failed,
        ),
    }


def _container(context: Context, account: Expr, claim: Expr) -> dict[str, Tree]:
    return {
        "name": _COMPONENT,
        **NO_NETWORK,
        **image_fields(context.config.images["reaper"], "claim.", ()),
        "args": ["claim", Joined(("--owner=", account)), Joined(("--volume=", claim))],
        "env": [{"name": "NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}],
        "resources": Setting(
            "claim.resources", dict(SMALL_RESOURCES), "Resources of the container.", settings.RESOURCES
        ),
        "securityContext": container_security(read_only=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _access(frame: Frame, account: Expr, volume: Expr, run: Tree) -> list[Object]:
    def rule(group: str, resource: str, name: Tree, *verbs: str) -> Mapping[str, Tree]:
        return {"apiGroups": [group], "resources": [resource], "resourceNames": [name], "verbs": list(verbs)}

    rules: list[Tree] = [
        # `create` cannot be limited to a name: the name is not known when it is authorized.
        {"apiGroups": [""], "resources": ["persistentvolumeclaims"], "verbs": ["create"]},
        rule("", "persistentvolumeclaims", volume, "get", "patch"),
        rule("", "serviceaccounts", account, "get"),
        rule("batch", "jobs", run, "get"),
    ]
    body: dict[str, Tree] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": frame.metadata(_SUFFIX, _COMPONENT),
        "automountServiceAccountToken": False,
    }
    own = Object(role="serviceaccount-claim", body=body)
    return [own, *role_and_binding(frame, _SUFFIX, _COMPONENT, rules, account, role_suffix=_SUFFIX)]


def ttl_seconds(ttl: Ttl) -> int | str:
    """Return a time after the end of a run in seconds, or `never`."""
    return ttl if isinstance(ttl, int) or ttl == NEVER else seconds(ttl)


def ttl_annotations(ttl: Ttl | PodTtl, origin: FieldPath) -> dict[str, Tree]:
    """Return the annotations of a Job whose pods expire.

    They belong to the Job and not to its pod template, so that a change of them does not start a new run.

    Args:
        ttl: the spec's field.
        origin: its path.
    """
    block = ttl if isinstance(ttl, PodTtl) else PodTtl(pods=ttl)
    short = block is not ttl
    failed = block.pods if block.failed_pods is None else block.failed_pods
    given = block.failed_pods is not None
    return {
        POD_TTL: ttl_setting(
            "ttl.pods", block.pods, "its pods are deleted after it completed", origin if short else (*origin, "pods")
        ),
        FAILED_POD_TTL: ttl_setting(
            "ttl.failedPods",
            failed,
            "its pods are deleted after it failed",
            (*origin, "failedPods") if given else origin if short else (*origin, "pods"),
        ),
    }


def ttl_setting(path: str, ttl: Ttl, what: str, origin: FieldPath) -> Text:
    """Return a setting with a time after the end of a run, as the text of an annotation.

    Args:
        path: path of the setting.
        ttl: the time.
        what: what happens then.
        origin: the spec's field.
    """
    doc = f"Seconds until {what}, or `{NEVER}`."
    return Text(Setting(path, ttl_seconds(ttl), doc, _SECONDS, origin=origin))
