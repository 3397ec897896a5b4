"""Volumes that expire: a Job creates them, because Argo CD and Flux would create them again."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import role_and_binding
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import Run, job
from kaigen.compile.builders.lifetimes import EXPIRING, NEVER, ttl_setting
from kaigen.compile.builders.pods import NO_NETWORK, container_security, image_fields, pod_security
from kaigen.compile.builders.storage import claim_spec
from kaigen.compile.builders.weights import SMALL_RESOURCES
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Joined, Release, Setting, Tree
from kaigen.compile.field_expressions import Entries
from kaigen.compile.json_expressions import ObjectText
from kaigen.core.json_types import FieldPath
from kaigen.kinds.blocks import Security, Volume
from kaigen.kinds.job import Ttl, VolumeTtl
from kaigen.kubernetes.metadata_keys import FAILED_POD_TTL, FAILED_TTL, POD_TTL, RUN, TTL

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
