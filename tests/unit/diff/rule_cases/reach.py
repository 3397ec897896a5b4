"""What reaches beyond its namespace."""

from __future__ import annotations

from typing import Any

from kaigen.compile.builders.frame import KEEP
from tests.unit.diff.diff_cases import Obj, claim, deployment, obj, with_
from tests.unit.diff.rule_cases.objects import Case

WEB = deployment(replicas=2)
POD = "spec/template/spec"


def volume(**source: Any) -> Obj:
    """A PersistentVolume of the namespace `ml`."""
    return obj("PersistentVolume", "v", spec={"claimRef": {"namespace": "ml", "name": "c"}, **source})


def csi(namespace: str) -> Obj:
    """A volume whose driver reads a Secret."""
    secret = {"name": "keys", "namespace": namespace}
    return volume(csi={"driver": "nfs.csi.k8s.io", "volumeHandle": "x", "nodePublishSecretRef": secret})


def priority(default: bool) -> Obj:
    """A PriorityClass."""
    return obj("PriorityClass", "p", "scheduling.k8s.io/v1", value=1, globalDefault=default)


def ingress(text: str, key: str = "nginx.ingress.kubernetes.io/configuration-snippet") -> Obj:
    """An Ingress with raw configuration."""
    found = obj("Ingress", "i", "networking.k8s.io/v1", spec={})
    found["metadata"]["annotations"] = {key: text}
    return found


def storage_class(default: str) -> Obj:
    """A StorageClass."""
    found = obj("StorageClass", "s", "storage.k8s.io/v1", provisioner="x")
    found["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": default}
    return found


def annotated(**annotations: str) -> Obj:
    """A ConfigMap with annotations."""
    found = obj("ConfigMap", "c")
    found["metadata"]["annotations"] = dict(annotations)
    return found


def keys(text: str) -> list[tuple[str, str]]:
    """The danger of annotations that a syncer obeys."""
    return [("danger", f"Argo CD, Flux or Helm may skip, replace or delete it: {text}")]


def unkept(*lost: str) -> list[tuple[str, str]]:
    """The danger of an object that nothing keeps any more."""
    text = " and ".join(lost)
    return [("danger", f"Argo CD, Flux or Helm may now delete it with its file or its app, without {text}")]


FLUX = "kustomize.toolkit.fluxcd.io"
ARGO = "argocd.argoproj.io"
BACKEND = "haproxy-ingress.github.io/config-backend"

CASES: list[Case] = [
    *(
        Case("syncer-keys", key, annotated(), annotated(**{key: text}), keys(f"{key}: {text}"))
        for key, text in {
            f"{FLUX}/reconcile": "disabled",
            f"{FLUX}/ssa": "Ignore",
            f"{ARGO}/hook": "Skip",
            f"{ARGO}/sync-options": "Force=true",
            "helm.sh/hook": "pre-delete",
        }.items()
    ),
    Case(
        "syncer-keys",
        "a new object that is a hook",
        None,
        annotated(**{f"{ARGO}/hook": "PreSync"}),
        keys(f"{ARGO}/hook: PreSync"),
    ),
    Case(
        "syncer-keys",
        "the same as before",
        annotated(**{f"{FLUX}/ssa": "Ignore"}),
        annotated(a="b", **{f"{FLUX}/ssa": "Ignore"}),
        [],
    ),
    *(
        Case("syncer-keys", f"{key}: {text}", annotated(), annotated(**{key: text}), [])
        for key, text in {
            **KEEP,
            f"{ARGO}/sync-options": "Prune=false, Delete=confirm",
            f"{ARGO}/sync-wave": "2",
        }.items()
    ),
    *(
        Case("syncer-keys-removed", key, annotated(**{key: text}), annotated(), unkept(*lost))
        for key, text, lost in (
            (f"{ARGO}/sync-options", "Prune=false", [f"{ARGO}/sync-options: Prune=false"]),
            (
                f"{ARGO}/sync-options",
                "Prune=false,Delete=false",
                [f"{ARGO}/sync-options: Delete=false", f"{ARGO}/sync-options: Prune=false"],
            ),
            (f"{FLUX}/prune", "disabled", [f"{FLUX}/prune: disabled"]),
            (f"{FLUX}/reconcile", "disabled", [f"{FLUX}/reconcile: disabled"]),
            ("helm.sh/resource-policy", "keep", ["helm.sh/resource-policy: keep"]),
        )
    ),
    Case(
        "syncer-keys-removed",
        "one of two options",
        annotated(**{f"{ARGO}/sync-options": "Prune=false,Delete=false"}),
        annotated(**{f"{ARGO}/sync-options": "Delete=false"}),
        unkept(f"{ARGO}/sync-options: Prune=false"),
    ),
    Case(
        "syncer-keys-removed",
        "a volume, which another rule reports",
        claim(annotations=dict(KEEP)),
        claim(),
        unkept(f"{ARGO}/sync-options: Delete=false"),
    ),
    *(
        Case(
            "syncer-keys-removed",
            key,
            annotated(**{key: text}),
            annotated(),
            [("notice", f"Argo CD, Flux or Helm no longer obey {key}: {text}")],
        )
        for key, text in ((f"{ARGO}/hook", "Skip"), (f"{FLUX}/ssa", "Ignore"))
    ),
    *(
        Case("syncer-keys-removed", what, annotated(**{key: text}), annotated(**after), [])
        for what, key, text, after in (
            ("another value", f"{FLUX}/ssa", "Ignore", {f"{FLUX}/ssa": "Merge"}),
            ("the wave", f"{ARGO}/sync-wave", "2", {}),
            ("the same", f"{FLUX}/prune", "disabled", {f"{FLUX}/prune": "disabled", "a": "b"}),
            ("another annotation", "example.com/a", "b", {}),
        )
    ),
    Case(
        "volume-reach",
        "the root of a node",
        None,
        volume(hostPath={"path": "/"}),
        [("danger", "pods get the folder / of a node")],
    ),
    Case(
        "volume-reach",
        "a Secret of another namespace",
        csi("ml"),
        csi("team-b"),
        [("danger", "driver nfs.csi.k8s.io uses Secret team-b/keys of another namespace")],
    ),
    Case("volume-reach", "a Secret of its own namespace", None, csi("ml"), []),
    Case(
        "default-priority",
        "a default of the cluster",
        None,
        priority(True),
        [("danger", "every pod of the cluster without a priority class gets this priority")],
    ),
    Case("default-priority", "one of many", None, priority(False), []),
    Case(
        "admission",
        "a webhook",
        None,
        obj("ValidatingWebhookConfiguration", "w", "admissionregistration.k8s.io/v1", webhooks=[]),
        [("danger", "requests to the API server of the whole cluster go through it")],
    ),
    Case(
        "default-class",
        "a default of the cluster",
        storage_class("false"),
        storage_class("true"),
        [("danger", "it becomes the cluster's default StorageClass")],
    ),
    Case(
        "snippet",
        "raw configuration",
        ingress("a"),
        ingress("b"),
        [("danger", "raw configuration of the ingress controller: nginx.ingress.kubernetes.io/configuration-snippet")],
    ),
    Case(
        "snippet",
        "raw configuration of another controller",
        ingress("a", BACKEND),
        ingress("b", BACKEND),
        [("danger", f"raw configuration of the ingress controller: {BACKEND}")],
    ),
    Case(
        "scheduling-reach",
        "a node by name",
        WEB,
        with_(WEB, f"{POD}/nodeName", "control-plane"),
        [("danger", "pods bypass the scheduler and run on node control-plane")],
    ),
    Case(
        "scheduling-reach",
        "a priority of the system",
        None,
        with_(WEB, f"{POD}/priorityClassName", "system-node-critical"),
        [("danger", "pods have the priority system-node-critical and may evict any other pod")],
    ),
    Case(
        "scheduling-reach",
        "every taint",
        WEB,
        with_(WEB, f"{POD}/tolerations", [{"operator": "Exists"}]),
        [("danger", "pods tolerate every taint, also those of control-plane nodes")],
    ),
    Case(
        "scheduling-reach",
        "one taint",
        WEB,
        with_(WEB, f"{POD}/tolerations", [{"operator": "Exists", "key": "nvidia.com/gpu"}]),
        [],
    ),
]
