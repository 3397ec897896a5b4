"""References to Secrets are found in every kind, known to kaigen or not."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secrets import DOCKER_CONFIG, TLS, made_secrets
from kaigen.pipeline.app_secrets import purpose_of

POD: dict[str, Any] = {
    "imagePullSecrets": [{"name": "pull"}],
    "initContainers": [
        {"name": "fetch", "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]}
    ],
    "containers": [{"name": "main", "envFrom": [{"secretRef": {"name": "all", "optional": True}}]}],
    "volumes": [
        {"name": "certs", "secret": {"secretName": "certs", "items": [{"key": "ca.crt", "path": "ca"}]}},
        {"name": "mixed", "projected": {"sources": [{"secret": {"name": "mixed"}}, {"configMap": {"name": "no"}}]}},
        {"name": "bucket", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "csi"}}},
    ],
}
IN_POD = [
    ("pull", (".dockerconfigjson",)),
    ("hf", ("token",)),
    ("all", ()),
    ("certs", ("ca.crt",)),
    ("mixed", ()),
    ("csi", ()),
]


def secrets_of(obj: dict[str, Any]) -> list[Reference]:
    """The references of an object to Secrets."""
    return [one for one in references_of(obj) if one.target.type == "Secret"]


def key_names(reference: Reference) -> tuple[str, ...]:
    """The keys that are read."""
    return tuple(key for key, _ in reference.keys)


def object_of(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


TEMPLATE = {"template": {"spec": POD}}


@pytest.mark.parametrize(
    "obj",
    [
        object_of("v1", "Pod", POD),
        object_of("apps/v1", "Deployment", TEMPLATE),
        object_of("apps/v1", "StatefulSet", TEMPLATE),
        object_of("apps/v1", "DaemonSet", TEMPLATE),
        object_of("batch/v1", "Job", TEMPLATE),
        object_of("batch/v1", "CronJob", {"jobTemplate": {"spec": TEMPLATE}}),
        object_of("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"template": {"spec": TEMPLATE}}]}),
        object_of(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"workerTemplate": {"spec": POD}}},
        ),
        object_of("ray.io/v1", "RayCluster", {"headGroupSpec": TEMPLATE}),
        object_of("example.com/v1", "NobodyKnows", {"deep": [{"er": {"podSpec": POD}}]}),
    ],
    ids=lambda obj: obj["kind"],
)
def test_a_pod_is_found_anywhere_in_an_object(obj: dict[str, Any]) -> None:
    found = secrets_of(obj)
    assert [(item.target.name, key_names(item)) for item in found] == IN_POD
    for item in found:
        here: Any = obj
        for step in item.path:
            here = here[step]
        assert here == item.target.name
    types = {item.target.name: item.secret_type for item in found}
    assert types["pull"] == DOCKER_CONFIG
    assert {item.target.name for item in found if item.optional} == {"all"}
    assert {item.target.name for item in found if item.as_files} == {"pull", "certs", "mixed"}
    assert purpose_of(obj, found[1]) == "variable HF_TOKEN of fetch"


def test_references_are_found_in_kinds_without_pods() -> None:
    ingress = object_of("networking.k8s.io/v1", "Ingress", {"tls": [{"secretName": "web"}, {"hosts": ["a"]}]})
    (web,) = secrets_of(ingress)
    assert (web.target.name, key_names(web), web.secret_type) == ("web", ("tls.crt", "tls.key"), TLS)

    certificates = {"certificateRefs": [{"name": "edge", "namespace": "infra"}, {"name": "x", "kind": "Other"}]}
    gateway = object_of("gateway.networking.k8s.io/v1", "Gateway", {"listeners": [{"tls": certificates}]})
    (edge,) = secrets_of(gateway)
    assert (edge.target.name, edge.target.namespace) == ("edge", "infra")

    trigger = object_of(
        "keda.sh/v1alpha1",
        "TriggerAuthentication",
        {"secretTargetRef": [{"parameter": "token", "name": "p", "key": "k"}]},
    )
    assert [(item.target.name, key_names(item)) for item in secrets_of(trigger)] == [("p", ("k",))]

    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "x"},
        "imagePullSecrets": [{"name": "r"}],
    }
    assert [item.target.name for item in secrets_of(account)] == ["r"]

    monitor = object_of(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        {"endpoints": [{"basicAuth": {"username": {"name": "auth", "key": "user"}}}]},
    )
    assert [(item.target.name, key_names(item)) for item in secrets_of(monitor)] == [("auth", ("user",))]


def test_fields_that_only_resemble_references_are_ignored() -> None:
    store = object_of("external-secrets.io/v1", "ExternalSecret", {"secretStoreRef": {"name": "vault"}})
    assert secrets_of(store) == []
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"containers": "[]"},
    }
    assert secrets_of(config) == []
    assert secrets_of(object_of("v1", "Pod", {"containers": "none", "volumes": 3})) == []


EXTERNAL = {"data": [{"secretKey": "a", "remoteRef": {"key": "x"}}], "target": {"name": "made"}}


@pytest.mark.parametrize(
    ("spec", "name", "keys"),
    [
        (EXTERNAL, "made", {"a"}),
        ({"data": EXTERNAL["data"]}, "x", {"a"}),
        ({"dataFrom": [{"extract": {"key": "x"}}]}, "x", None),
        ({**EXTERNAL, "target": {"template": {"data": {"b": "{{ .a }}"}}}}, "x", {"b"}),
        ({**EXTERNAL, "target": {"template": {"data": {"b": "{{ .a }}"}, "mergePolicy": "Merge"}}}, "x", {"a", "b"}),
        ({**EXTERNAL, "target": {"template": {"templateFrom": [{"literal": "x"}]}}}, "x", None),
        ({**EXTERNAL, "target": {"template": {"type": "Opaque"}}}, "x", {"a"}),
    ],
)
def test_the_keys_of_an_external_secret_are_known(spec: dict[str, Any], name: str, keys: set[str] | None) -> None:
    (made,) = made_secrets(object_of("external-secrets.io/v1", "ExternalSecret", spec))
    assert (made.name, made.keys, made.source) == (name, keys if keys is None else frozenset(keys), "ExternalSecret")


def test_a_sealed_secret_makes_a_secret_of_its_own_name() -> None:
    spec = {"encryptedData": {"a": "Ag"}, "template": {"metadata": {"name": "other"}, "data": {"b": "c"}}}
    (made,) = made_secrets(object_of("bitnami.com/v1alpha1", "SealedSecret", spec))
    assert (made.name, made.keys, made.source) == ("x", frozenset({"a", "b"}), "SealedSecret")
    assert list(made_secrets(object_of("v1", "Pod", POD))) == []
