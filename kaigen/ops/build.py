"""Objects for live work, compiled from kaigen's own kind Job, so that they are as hardened as any other app's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.catalog.images import default_images
from kaigen.config.settings import Config
from kaigen.kubernetes.manifest import Manifest
from kaigen.kubernetes.metadata_keys import EXPIRES, RUN, TTL
from kaigen.pipeline.run import Run as Rendering

ARTIFACT = "kaigen.dev/artifact"
"""Annotation of a Job: path of the result in its container."""
MODEL = "kaigen.dev/model"
"""Annotation of a Job: the model that it runs."""

_WAVE = "argocd.argoproj.io/sync-wave"
_HELPER_RESOURCES = {"cpu": "50m", "memory": "256Mi"}


class Claim(Struct, frozen=True):
    """The volume of a run.

    Attributes:
        name: name of the PersistentVolumeClaim.
        mount_path: where containers see it.
        size: requested size, for a claim that is created.
        storage_class: its StorageClass; None for the profile's, empty for the cluster's default.
        ttl: seconds that it outlives the run, `never`, or empty for a claim that does not expire.
    """

    name: str
    mount_path: str = "/artifacts"
    size: str = "1Gi"
    storage_class: str | None = None
    ttl: str = ""


class Run(Struct, frozen=True):
    """A Job to create.

    Attributes:
        name: name of the app.
        namespace: its namespace.
        job: name of the Job.
        claim: its volume.
        spec: fields of the Job's spec besides the volume.
        labels: further labels of the Job and its pods.
        annotations: further annotations of the Job.
    """

    name: str
    namespace: str
    job: str
    claim: Claim
    spec: Mapping[str, Any]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


class Objects(Struct, frozen=True):
    """The objects of a run.

    Attributes:
        claim: the PersistentVolumeClaim.
        job: the Job.
        others: what the Job needs, which is deleted with it.
    """

    claim: Manifest
    job: Manifest
    others: Sequence[Manifest]


def run_objects(run: Run, config: Config) -> Objects:
    """Return the objects of a run.

    Args:
        run: the run.
        config: settings of the repository, such as its profile.

    Raises:
        InputError: the run is invalid.
    """
    volume: dict[str, Any] = {
        "size": run.claim.size,
        "mountPath": run.claim.mount_path,
        "retain": False,
        **({} if run.claim.storage_class is None else {"storageClassName": run.claim.storage_class}),
    }
    document = {
        "apiVersion": "kaigen.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": run.name, "namespace": run.namespace},
        "spec": {**run.spec, "output": {"volume": volume}},
    }
    (app,) = Rendering.load([document], _settings_of(config), use_cache=False).apps()
    claim: Manifest = {}
    job: Manifest = {}
    others = []
    for rendered in app.objects:
        body = _live(rendered.body)
        match body["kind"]:
            case "PersistentVolumeClaim":
                claim = body
            case "Job":
                job = body
            case _:
                others.append(body)
    _rename_claim(claim, job, run)
    _name_job(job, run)
    return Objects(claim, job, others)


def _settings_of(config: Config) -> Config:
    """Return the settings of a repository without those for its own apps, of which a live Job is none."""
    return replace(config, specs=(), values=(), overrides=(), pins={}, patches=(), gitops=None)


def _live(body: Mapping[str, Any]) -> Manifest:
    """Return a copy of an object without what only Argo CD reads."""
    metadata = dict(body["metadata"])
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key != _WAVE}
    return {**body, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def _rename_claim(claim: Manifest, job: Manifest, run: Run) -> None:
    old = claim["metadata"]["name"]
    annotations = claim["metadata"].setdefault("annotations", {})
    claim["metadata"]["name"] = run.claim.name
    annotations[RUN] = run.job
    if run.claim.ttl:
        claim["metadata"]["labels"] = {**claim["metadata"]["labels"], EXPIRES: "true"}
        annotations[TTL] = run.claim.ttl
    pod = dict(job["spec"]["template"]["spec"])
    pod["volumes"] = [
        {**volume, "persistentVolumeClaim": {"claimName": run.claim.name}}
        if (volume.get("persistentVolumeClaim") or {}).get("claimName") == old
        else volume
        for volume in pod["volumes"]
    ]
    template = {**job["spec"]["template"], "spec": pod}
    job["spec"] = {**job["spec"], "template": template}


def _name_job(job: Manifest, run: Run) -> None:
    template = job["spec"]["template"]
    labels = {**template["metadata"]["labels"], **run.labels}
    template["metadata"] = {**template["metadata"], "labels": labels}
    metadata = job["metadata"]
    # kaigen-reaper follows the Jobs with this label. The time of the volume counts from the end of the run.
    expiring = {EXPIRES: "true"} if run.claim.ttl else {}
    job["metadata"] = {
        **metadata,
        "name": run.job,
        "labels": {**metadata["labels"], **expiring, **run.labels},
        "annotations": {**metadata.get("annotations", {}), **run.annotations},
    }


def helper_pod(
    name: str, namespace: str, claim: Claim, config: Config, *, image: str = "", seconds: int, node: str = ""
) -> Manifest:
    """Return a pod that mounts a volume and waits for commands.

    Args:
        name: name of the pod.
        namespace: its namespace.
        claim: the volume.
        config: settings of the repository.
        image: image with a shell; kaigen's downloader when empty.
        seconds: how long it may run, should nobody delete it.
        node: the node that it must run on; empty for any.

    Raises:
        InputError: a name is invalid.
    """
    spec = {
        "image": image or {**default_images(), **config.plain_images}["downloader"],
        "command": ["sleep", str(seconds)],
        "resources": _HELPER_RESOURCES,
    }
    job = run_objects(Run("kaigen-files", namespace, "kaigen-files", claim, spec), config).job
    template = job["spec"]["template"]
    pod = dict(template["spec"])
    pod["activeDeadlineSeconds"] = seconds
    pod["terminationGracePeriodSeconds"] = 1
    if node:
        pod["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": template["metadata"]["labels"]},
        "spec": pod,
    }


def mounts_of(job: Manifest) -> dict[str, str]:
    """Return where the main container of a Job mounts its volume claims, by the name of the claim."""
    pod = job["spec"]["template"]["spec"]
    folders = {
        mount["name"]: mount["mountPath"]
        for container in (pod.get("containers") or [])[:1]
        for mount in container.get("volumeMounts") or []
    }
    return {
        volume["persistentVolumeClaim"]["claimName"]: folders[volume["name"]]
        for volume in pod.get("volumes") or []
        if "persistentVolumeClaim" in volume and volume["name"] in folders
    }
