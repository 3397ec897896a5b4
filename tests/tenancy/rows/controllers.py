"""ExternalSecrets and SealedSecrets: what their controllers write."""

from __future__ import annotations

from tests.tenancy.objects import object_of
from tests.tenancy.tenants import Body


def _external(target: Body | None = None, **source: object) -> Body:
    """Return an ExternalSecret with changes of its target, and another source of data."""
    spec: Body = {
        "secretStoreRef": {"name": "vault"},
        "target": {"name": "e", **(target or {})},
        "data": [{"secretKey": "a", "remoteRef": {"key": "x"}}],
    }
    if source:
        spec["dataFrom"] = [source]
    return object_of("external-secrets.io/v1", "ExternalSecret", spec=spec)


def _external_template(**template: object) -> Body:
    return _external({"template": template})


def _sealed(**template: object) -> Body:
    spec = {"encryptedData": {"a": "AgBx"}, "template": template}
    return object_of("bitnami.com/v1alpha1", "SealedSecret", spec=spec)


def _generator(kind: str, name: str) -> Body:
    return _external(sourceRef={"generatorRef": {"kind": kind, "name": name}})


def _external_generator(kind: str) -> Body:
    """Return an ExternalSecret with a value of a generator."""
    body = _external()
    source = {"secretKey": "a", "remoteRef": {"key": "x"}, "sourceRef": {"generatorRef": {"kind": kind, "name": "ecr"}}}
    return {**body, "spec": {**body["spec"], "data": [source]}}


DENIED: dict[str, tuple[Body, str]] = {
    "annotation of an ExternalSecret's Secret": (
        _external_template(metadata={"annotations": {"replicator.v1.mittwald.de/replicate-to": "team-b"}}),
        "the annotation `replicator.v1.mittwald.de/replicate-to`",
    ),
    "annotation of a SealedSecret's Secret": (
        _sealed(metadata={"annotations": {"reflector.v1.k8s.emberstack.com/reflects": "team-b/x"}}),
        "the annotation `reflector.v1.k8s.emberstack.com/reflects`",
    ),
    **{
        f"template for {target}": (
            _external_template(templateFrom=[{"target": "Data"}, {"target": target, "literal": "a: b"}]),
            f"by the target `{target}`",
        )
        for target in ("Annotations", "Labels", "spec.rules", "data", "Data.x")
    },
    "object of another kind": (
        _external({"manifest": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding"}}),
        "objects other than Secrets",
    ),
    "ConfigMap of an ExternalSecret": (
        _external({"manifest": {"apiVersion": "v1", "kind": "ConfigMap"}}),
        "objects other than Secrets",
    ),
    "finalizer of a Secret": (_external_template(metadata={"finalizers": ["example.com/x"]}), "finalizers of a Secret"),
    **{
        f"type {type_.replace('/', ' ')} of {kind}": (body, f"a Secret of type `{type_}`")
        for type_ in ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1")
        for kind, body in (
            ("an ExternalSecret", _external_template(type=type_)),
            ("a SealedSecret", _sealed(type=type_)),
        )
    },
    "generator of the cluster": (_generator("ClusterGenerator", "ecr"), "the generator `ClusterGenerator/ecr`"),
    "generator of a single value": (_external_generator("ClusterGenerator"), "the generator `ClusterGenerator/ecr`"),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "Secret of a store": _external_template(
        type="kubernetes.io/dockerconfigjson",
        metadata={"labels": {"app": "x"}, "annotations": {"example.com/a": "b"}},
        templateFrom=[{"target": "Data", "literal": "a: b"}, {"literal": "c: d"}],
    ),
    "Secret of a generator": _generator("ECRAuthorizationToken", "ecr"),
    "Secret of the cluster's generator": _generator("ClusterGenerator", "a-ecr"),
    "sealed Secret": _sealed(type="Opaque", metadata={"labels": {"app": "x"}}),
}
"""Objects that the tenant may have."""
