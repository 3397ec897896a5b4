"""References to Secrets are found in every kind that can make some, known to kaigen or not."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.secrets.makers import made_by
from kaigen.secrets.references import DOCKER, TLS, references

POD: dict[str, Any] = {
    "imagePullSecrets": [{"name": "pull"}],
    "initContainers": [
        {
            "name": "fetch",
            "env": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}],
        }
    ],
    "containers": [{"name": "main", "envFrom": [{"secretRef": {"name": "all", "optional": True}}]}],
    "volumes": [
        {"name": "certs", "secret": {"secretName": "certs", "items": [{"key": "ca.crt", "path": "ca"}]}},
        {
            "name": "mixed",
            "projected": {"sources": [{"secret": {"name": "mixed"}}, {"configMap": {"name": "no"}}]},
        },
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


def around(api_version: str, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


TEMPLATE = {"template": {"spec": POD}}


@pytest.mark.parametrize(
    "obj",
    [
        around("v1", "Pod", POD),
        around("apps/v1", "Deployment", TEMPLATE),
        around("apps/v1", "StatefulSet", TEMPLATE),
        around("apps/v1", "DaemonSet", TEMPLATE),
        around("batch/v1", "Job", TEMPLATE),
        around("batch/v1", "CronJob", {"jobTemplate": {"spec": TEMPLATE}}),
        around("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": [{"template": {"spec": TEMPLATE}}]}),
        around(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"workerTemplate": {"spec": POD}}},
        ),
        around("ray.io/v1", "RayCluster", {"headGroupSpec": TEMPLATE}),
        around("example.com/v1", "NobodyKnows", {"deep": [{"er": {"podSpec": POD}}]}),
    ],
    ids=lambda obj: obj["kind"],
)
def test_a_pod_is_read_wherever_it_stands(obj: dict[str, Any]) -> None:
    found = references(obj)
    assert [(item.name, item.keys) for item in found] == IN_POD
    for item in found:
        here: Any = obj
        for step in item.path:
            here = here[step]
        assert here == item.name
    types = {item.name: item.type for item in found}
    assert types["pull"] == DOCKER
    assert {item.name for item in found if item.optional} == {"all"}
    assert {item.name for item in found if item.as_file} == {"pull", "certs", "mixed"}
    assert found[1].purpose == "variable HF_TOKEN of fetch"


def test_kinds_without_pods_are_read_too() -> None:
    ingress = around("networking.k8s.io/v1", "Ingress", {"tls": [{"secretName": "web"}, {"hosts": ["a"]}]})
    (web,) = references(ingress)
    assert (web.name, web.keys, web.type) == ("web", ("tls.crt", "tls.key"), TLS)

    certificates = {
        "certificateRefs": [{"name": "edge", "namespace": "infra"}, {"name": "x", "kind": "Other"}]
    }
    gateway = around("gateway.networking.k8s.io/v1", "Gateway", {"listeners": [{"tls": certificates}]})
    (edge,) = references(gateway)
    assert (edge.name, edge.namespace) == ("edge", "infra")

    trigger = around(
        "keda.sh/v1alpha1",
        "TriggerAuthentication",
        {"secretTargetRef": [{"parameter": "token", "name": "p", "key": "k"}]},
    )
    assert [(item.name, item.keys) for item in references(trigger)] == [("p", ("k",))]

    account: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "x"},
        "imagePullSecrets": [{"name": "r"}],
    }
    assert [item.name for item in references(account)] == ["r"]

    monitor = around(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        {"endpoints": [{"basicAuth": {"username": {"name": "auth", "key": "user"}}}]},
    )
    assert [(item.name, item.keys) for item in references(monitor)] == [("auth", ("user",))]


def test_what_only_looks_like_a_reference_is_none() -> None:
    store = around("external-secrets.io/v1", "ExternalSecret", {"secretStoreRef": {"name": "vault"}})
    assert references(store) == []
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x"},
        "data": {"containers": "[]"},
    }
    assert references(config) == []
    assert references(around("v1", "Pod", {"containers": "none", "volumes": 3})) == []


EXTERNAL = {"data": [{"secretKey": "a", "remoteRef": {"key": "x"}}], "target": {"name": "made"}}


@pytest.mark.parametrize(
    ("spec", "name", "keys"),
    [
        (EXTERNAL, "made", {"a"}),
        ({"data": EXTERNAL["data"]}, "x", {"a"}),
        ({"dataFrom": [{"extract": {"key": "x"}}]}, "x", None),
        ({**EXTERNAL, "target": {"template": {"data": {"b": "{{ .a }}"}}}}, "x", {"b"}),
        (
            {**EXTERNAL, "target": {"template": {"data": {"b": "{{ .a }}"}, "mergePolicy": "Merge"}}},
            "x",
            {"a", "b"},
        ),
        ({**EXTERNAL, "target": {"template": {"templateFrom": [{"literal": "x"}]}}}, "x", None),
        ({**EXTERNAL, "target": {"template": {"type": "Opaque"}}}, "x", {"a"}),
    ],
)
def test_an_external_secret_tells_what_it_makes(
    spec: dict[str, Any], name: str, keys: set[str] | None
) -> None:
    made = made_by(around("external-secrets.io/v1", "ExternalSecret", spec))
    assert made is not None
    assert (made.name, made.keys, made.way) == (
        name,
        keys if keys is None else frozenset(keys),
        "ExternalSecret",
    )


def test_a_sealed_secret_makes_one_of_its_own_name() -> None:
    spec = {"encryptedData": {"a": "Ag"}, "template": {"metadata": {"name": "other"}, "data": {"b": "c"}}}
    made = made_by(around("bitnami.com/v1alpha1", "SealedSecret", spec))
    assert made is not None
    assert (made.name, made.keys, made.way) == ("x", frozenset({"a", "b"}), "SealedSecret")
    assert made_by(around("v1", "Pod", POD)) is None
