"""How references are read: kinds, namespaces, keys, ports, and fields of kinds that nobody described."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.kubernetes.manifest import Identity
from kaigen.kubernetes.references import Reference, references_of
from kaigen.kubernetes.secrets import MadeSecret, made_secrets

Object = dict[str, Any]


def object_of(api_version: str, kind: str, **fields: Any) -> Object:
    """An object in the namespace ml."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": "ml"}, **fields}


def unknown(spec: Object, group: str = "example.com") -> Object:
    """An object of a kind without a row in the table of kinds."""
    return object_of(f"{group}/v1", "Undescribed", spec=spec)


def secret(name: str, *path: str | int, namespace: str = "ml", **fields: Any) -> Reference:
    """A reference to a Secret that is read."""
    return Reference(Identity("Secret", namespace, name), path, "reads", **fields)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"authSecretRef": {"name": "a"}}, [secret("a", "spec", "authSecretRef", "name")]),
        ({"deep": [[{"secretRef": {"name": "a", "namespace": "b"}}]]},
         [secret("a", "spec", "deep", 0, 0, "secretRef", "name", namespace="b")]),
        ({"secretKeyRef": {"name": "a", "key": "k"}},
         [secret("a", "spec", "secretKeyRef", "name", keys=(("k", ("spec", "secretKeyRef", "key")),))]),
        ({"secretRef": {"name": "a", "optional": True}},
         [secret("a", "spec", "secretRef", "name", optional=True)]),
        ({"secretRef": {"name": "a", "kind": "Secret"}}, [secret("a", "spec", "secretRef", "name")]),
        ({"secretRef": {"name": "a", "kind": "Vault"}}, []),
        ({"secretRef": {"name": "a", "group": "vault.example.com"}}, []),
        ({"secretRef": {"name": ""}}, []),
        ({"secretRef": {"name": 3}}, []),
        ({"secretRef": {"name": "a", "key": "k"}}, []),
        ({"secretKeyRef": {"name": "a"}}, []),
        ({"password": {"name": "a", "key": "k"}}, []),
    ],
)  # fmt: skip
def test_fields_with_the_usual_names_are_read_in_any_kind(spec: Object, expected: list[Reference]) -> None:
    assert references_of(unknown(spec)) == expected


@pytest.mark.parametrize(
    ("field", "value", "names"),
    [
        ("password", {"name": "a", "key": "k"}, ["a"]),
        ("bearerTokenSecret", {"name": "a", "key": "k"}, ["a"]),
        ("password", {"name": "a"}, []),
        ("passwords", {"name": "a", "key": "k"}, []),
    ],
)
def test_kinds_of_monitoring_have_more_such_fields(field: str, value: Object, names: list[str]) -> None:
    found = references_of(unknown({field: value}, "monitoring.coreos.com"))
    assert [each.target.name for each in found] == names


def test_an_object_without_a_namespace_gets_that_of_its_deployment() -> None:
    obj = unknown({"secretRef": {"name": "a"}, "template": {"containers": [{"envFrom": [
        {"secretRef": {"name": "b"}}, {"configMapRef": {"name": "c"}},
    ]}]}})  # fmt: skip
    for namespace in ("ml", "ai"):
        obj["metadata"] = {"name": "x"}
        assert [each.target for each in references_of(obj, namespace)] == [
            Identity("Secret", namespace, "a"), Identity("Secret", namespace, "b"),
            Identity("ConfigMap", namespace, "c"),
        ]  # fmt: skip
    obj["metadata"]["namespace"] = "own"
    assert {each.target.namespace for each in references_of(obj, "ai")} == {"own"}


def test_a_binding_names_a_role_of_the_cluster_or_of_its_namespace() -> None:
    for kind, namespace in (("Role", "ml"), ("ClusterRole", "")):
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
        binding = object_of("rbac.authorization.k8s.io/v1", "RoleBinding", roleRef=role, subjects=[
            {"kind": "ServiceAccount", "name": "s", "namespace": "b"}, {"kind": "User", "name": "u"},
        ])  # fmt: skip
        assert {each.target for each in references_of(binding)} == {
            Identity(f"{kind}.rbac.authorization.k8s.io", namespace, "r"), Identity("ServiceAccount", "b", "s"),
        }  # fmt: skip


@pytest.mark.parametrize(
    ("api_version", "kind", "target"),
    [
        ("apps/v1", "Deployment", "Deployment.apps"),
        ("apps/v1", "StatefulSet", "StatefulSet.apps"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "LeaderWorkerSet.leaderworkerset.x-k8s.io"),
        ("other.example.com/v1", "Deployment", None),
        ("v1", "ConfigMap", None),
    ],
)
def test_an_autoscaler_names_a_kind_that_can_be_scaled(api_version: str, kind: str, target: str | None) -> None:
    scaled = {"apiVersion": api_version, "kind": kind, "name": "d"}
    scaler = object_of("autoscaling/v2", "HorizontalPodAutoscaler", spec={"scaleTargetRef": scaled})
    assert [each.target for each in references_of(scaler)] == ([Identity(target, "ml", "d")] if target else [])


@pytest.mark.parametrize(
    ("obj", "made"),
    [
        (object_of("v1", "Secret", data={"a": ""}, stringData={"b": ""}),
         MadeSecret("x", frozenset({"a", "b"}), "Secret", ("stringData",))),
        (object_of("v1", "Secret", data={"a": ""}, sops={}),
         MadeSecret("x", frozenset({"a"}), "SOPS", ("data",))),
        (object_of("bitnami.com/v1alpha1", "SealedSecret", spec={"encryptedData": {"a": ""}}),
         MadeSecret("x", frozenset({"a"}), "SealedSecret", ("spec", "encryptedData"))),
        (object_of("external-secrets.io/v1", "ExternalSecret", spec={"data": [{"secretKey": "a"}, {}]}),
         MadeSecret("x", frozenset({"a"}), "ExternalSecret", ("spec", "data"))),
        (object_of("external-secrets.io/v1", "ExternalSecret", spec={"dataFrom": [{}], "target": {"name": "t"}}),
         MadeSecret("t", None, "ExternalSecret", ("spec",))),
        (object_of("external-secrets.io/v1", "ExternalSecret", spec={"target": {"manifest": {}}}), None),
        (object_of("v1", "Secret") | {"metadata": {}}, None),
        (object_of("v1", "ConfigMap", data={"a": ""}), None),
    ],
)  # fmt: skip
def test_an_object_makes_a_secret_with_these_keys(obj: Object, made: MadeSecret | None) -> None:
    assert list(made_secrets(obj)) == ([made] if made else [])


TLS_INGRESS: Object = {"tls": [{"hosts": ["a.example"], "secretName": "a-tls"}, {"hosts": ["b.example"]}]}
LISTENERS: Object = {"listeners": [
    {"tls": {"certificateRefs": [{"name": "a-tls"}, {"name": "there", "namespace": "other"}]}}, {"name": "http"},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("api_version", "kind", "annotations", "spec", "names"),
    [
        ("networking.k8s.io/v1", "Ingress", {"cert-manager.io/cluster-issuer": "le"}, TLS_INGRESS, ["a-tls"]),
        ("networking.k8s.io/v1", "Ingress", {"cert-manager.io/issuer": "le"}, TLS_INGRESS, ["a-tls"]),
        ("networking.k8s.io/v1", "Ingress", {"kubernetes.io/tls-acme": "true"}, TLS_INGRESS, ["a-tls"]),
        ("networking.k8s.io/v1", "Ingress", {"kubernetes.io/tls-acme": "false"}, TLS_INGRESS, []),
        ("networking.k8s.io/v1", "Ingress", {}, TLS_INGRESS, []),
        ("gateway.networking.k8s.io/v1", "Gateway", {"cert-manager.io/issuer": "le"}, LISTENERS, ["a-tls"]),
        ("gateway.networking.k8s.io/v1", "Gateway", {"kubernetes.io/tls-acme": "true"}, LISTENERS, []),
        ("cert-manager.io/v1", "Certificate", {}, {"secretName": "a-tls"}, ["a-tls"]),
    ],
)
def test_cert_manager_makes_the_secrets_of_certificates(
    api_version: str, kind: str, annotations: Object, spec: Object, names: list[str]
) -> None:
    obj = object_of(api_version, kind, spec=spec)
    obj["metadata"]["annotations"] = annotations
    found = list(made_secrets(obj))
    assert [each.name for each in found] == names
    assert {each.source for each in found} <= {"cert-manager"}
