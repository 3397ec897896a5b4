"""Objects that a tenant may and may not have, by what they name: backends, parents, projects, accounts and Secrets."""

from __future__ import annotations

from tests.tenancy.rows.kinds import runner
from tests.tenancy.rows.ray import ray_cluster
from tests.tenancy.tenants import TENANT, Body

GRANTED: Body = {
    **TENANT,
    "kinds": [
        *TENANT["kinds"],
        "Application.argoproj.io",
        "ApplicationSet.argoproj.io",
        "HelmRelease.helm.toolkit.fluxcd.io",
        "Kustomization.kustomize.toolkit.fluxcd.io",
    ],
    "classes": [*TENANT["classes"], "AppProject/team-a-*"],
}
"""The tenant, which is granted the kinds of these objects too."""

_GATEWAY = "gateway.networking.k8s.io"
_SERVICE: Body = {"name": "s", "port": 80}
_HOSTNAME: Body = {
    "group": "networking.istio.io",
    "kind": "Hostname",
    "name": "db.team-b.svc.cluster.local",
    "port": 80,
}
_RULES: Body = {"hostnames": ["x.a.example.com"]}


def _object(api: str, kind: str, /, **spec: object) -> Body:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def _route(kind: str = "HTTPRoute", /, **spec: object) -> Body:
    hosts = {} if kind in ("TCPRoute", "UDPRoute") else _RULES
    version = "v1" if kind in ("HTTPRoute", "GRPCRoute") else "v1alpha2"
    return _object(f"{_GATEWAY}/{version}", kind, **hosts, **spec)


def _backed(*backends: Body, kind: str = "HTTPRoute") -> Body:
    return _route(kind, rules=[{"backendRefs": [*backends]}])


def _filtered(**filter_: object) -> dict[str, Body]:
    """Return routes with a filter, by where they have it."""
    return {
        "a route": _route(rules=[{"filters": [filter_]}]),
        "a backend": _backed({**_SERVICE, "filters": [filter_]}),
        "a GRPCRoute": _route("GRPCRoute", rules=[{"filters": [filter_]}]),
    }


def _gateway(spec: Body | None = None, **tls: object) -> Body:
    listener: Body = {"name": "web", "port": 443, "protocol": "HTTPS", "hostname": "x.a.example.com"}
    listener["tls"] = {"certificateRefs": [{"name": "c"}], **tls}
    return _object(f"{_GATEWAY}/v1", "Gateway", gatewayClassName="x", listeners=[listener], **(spec or {}))


def _authority(kind: str, group: str) -> Body:
    reference = {"kind": kind, "group": group, "name": "c"}
    return _gateway({"tls": {"frontend": {"default": {"validation": {"caCertificateRefs": [reference]}}}}})


def _ingress(**backend: object) -> Body:
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    return _object("networking.k8s.io/v1", "Ingress", rules=[{"host": "x.a.example.com", "http": {"paths": [path]}}])


def _pool(**picker: object) -> Body:
    return _object(
        "inference.networking.k8s.io/v1",
        "InferencePool",
        selector={"matchLabels": {"app": "x"}},
        targetPorts=[{"number": 80}],
        endpointPickerRef={"name": "s", "port": {"number": 80}, **picker},
    )


def _service(**spec: object) -> Body:
    return _object("v1", "Service", ports=[{"port": 80}], selector={"app": "x"}, **spec)


def _kustomization(**changes: object) -> Body:
    spec: Body = {
        "interval": "1m",
        "prune": True,
        "serviceAccountName": "runner",
        "sourceRef": {"kind": "GitRepository", "name": "x"},
        **changes,
    }
    known = {key: value for key, value in spec.items() if value is not None}
    return _object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", **known)


def _release(**changes: object) -> Body:
    spec: Body = {
        "interval": "1m",
        "serviceAccountName": "runner",
        "chartRef": {"kind": "OCIRepository", "name": "x"},
        **changes,
    }
    known = {key: value for key, value in spec.items() if value is not None}
    return _object("helm.toolkit.fluxcd.io/v2", "HelmRelease", **known)


def _chart(namespace: str) -> Body:
    source = {"kind": "HelmRepository", "name": "x", "namespace": namespace}
    return _release(chartRef=None, chart={"spec": {"chart": "x", "sourceRef": source}})


def _application(**changes: object) -> Body:
    destination = {"server": "https://kubernetes.default.svc", "namespace": "team-a"}
    source = {"repoURL": "https://git.example.com/x.git", "path": "x"}
    spec = {"project": "team-a-apps", "destination": destination, "source": source, **changes}
    return _object("argoproj.io/v1alpha1", "Application", **spec)


_PARENTS: dict[str, Body] = {
    "Service": {"group": "", "kind": "Service", "name": "s"},
    "Gateway": {"group": "", "kind": "Gateway", "name": "g"},
    f"ListenerSet.{_GATEWAY}": {"kind": "ListenerSet", "name": "l"},
    "XListenerSet.gateway.networking.x-k8s.io": {
        "group": "gateway.networking.x-k8s.io",
        "kind": "XListenerSet",
        "name": "l",
    },
    "Gateway.networking.istio.io": {"group": "networking.istio.io", "kind": "Gateway", "name": "g"},
}
_BACKENDS: dict[str, Body] = {
    "Hostname.networking.istio.io": _HOSTNAME,
    "TraefikService.traefik.io": {"group": "traefik.io", "kind": "TraefikService", "name": "api@internal"},
    "Backend.gateway.envoyproxy.io": {"group": "gateway.envoyproxy.io", "kind": "Backend", "name": "b"},
    "ServiceImport.multicluster.x-k8s.io": {
        "group": "multicluster.x-k8s.io",
        "kind": "ServiceImport",
        "name": "i",
        "port": 80,
    },
    "InferencePool": {"kind": "InferencePool", "name": "p", "port": 80},
    "InferencePool.inference.networking.x-k8s.io": {
        "group": "inference.networking.x-k8s.io",
        "kind": "InferencePool",
        "name": "p",
    },
    "Service.example.com": {"group": "example.com", "name": "s", "port": 80},
    "Secret": {"group": "", "kind": "Secret", "name": "s", "port": 80},
}
_PARAMETERS: dict[str, Body] = {
    kind: {"group": group, "kind": kind, "name": "p"}
    for group, kind in (("", "ConfigMap"), ("gateway.envoyproxy.io", "EnvoyProxy"), ("", "Secret"))
}


def account_places(name: str) -> dict[str, Body]:
    """Return objects that name a ServiceAccount, by how they do."""
    return {
        "account of a Kustomization": _kustomization(serviceAccountName=name),
        "account of its keys": _kustomization(decryption={"provider": "sops", "serviceAccountName": name}),
        "account of a HelmRelease": _release(serviceAccountName=name),
        "account of a kind that is not known": runner(serviceAccountName=name),
        "reference to an account": runner(auth={"kubernetes": {"serviceAccountRef": {"name": name}}}),
        "accounts in a list": runner(accounts=["x", name]),
        "account with its kind": runner(subjects=[{"kind": "ServiceAccount", "name": name}]),
        "account far below": runner(a=[[{"b": {"c": [{"d": {"account": name}}]}}]]),
    }


def secret_places(name: str) -> dict[str, Body]:
    """Return objects of kinds that kaigen does not know, and that name a Secret, by how they do."""
    return {
        # External Secrets Operator, PushSecret: it reads the Secret.
        "pushed": runner(selector={"secret": {"name": name}}),
        # cert-manager: an Issuer writes the key of its account, and a Certificate its own.
        "key of an issuer": runner(acme={"privateKeySecretRef": {"name": name}}),
        "token of a solver": runner(
            acme={"solvers": [{"dns01": {"cloudflare": {"apiTokenSecretRef": {"name": name, "key": "k"}}}}]}
        ),
        "credentials of an issuer": runner(venafi={"tpp": {"credentialsRef": {"name": name}}}),
        "login of a vault": runner(vault={"auth": {"appRole": {"secretRef": {"name": name}}}}),
        "secretName": runner(secretName=name),
        "with a kind": runner(ref={"kind": "Secret", "name": name}),
        "in a list": runner(pullSecrets=[name]),
        "in lists of lists": runner(a=[[name]]),
        "as a text": runner(credentials=name),
    }


DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"backend {kind} of a {route}": (_backed(backend, kind=route), f"a backend of kind `{kind}`")
        for kind, backend in _BACKENDS.items()
        for route in ("HTTPRoute", "GRPCRoute")
    },
    "second backend": (_backed(_SERVICE, _HOSTNAME), "a backend of kind `Hostname.networking.istio.io`"),
    **{
        f"mirror of {place}": (body, "a backend of kind `Hostname.networking.istio.io`")
        for place, body in _filtered(type="RequestMirror", requestMirror={"backendRef": _HOSTNAME}).items()
    },
    **{
        f"filter of {place}": (body, "a filter of the controller")
        for place, body in _filtered(
            type="ExtensionRef", extensionRef={"group": "traefik.io", "kind": "Middleware", "name": "m"}
        ).items()
    },
    **{
        f"parent {kind} of a {route}": (_route(route, parentRefs=[parent]), f"a parent of kind `{kind}`")
        for kind, parent in _PARENTS.items()
        for route in ("HTTPRoute", "GRPCRoute")
    },
    "second parent": (_route(parentRefs=[{"name": "g"}, _PARENTS["Service"]]), "a parent of kind `Service`"),
    "Ingress of a resource": (
        _ingress(resource={"apiGroup": "traefik.io", "kind": "TraefikService", "name": "api@internal"}),
        "a backend that is not a Service",
    ),
    "default backend with a resource": (
        _object(
            "networking.k8s.io/v1",
            "Ingress",
            defaultBackend={"resource": {"apiGroup": "k8s.example.com", "kind": "Bucket", "name": "b"}},
        ),
        "all hosts by a default backend",
    ),
    "picker of another kind": (
        _pool(group="networking.istio.io", kind="Hostname"),
        "an endpoint picker of kind `Hostname.networking.istio.io`",
    ),
    **{
        f"parameters of a Gateway by {kind}": (
            _gateway({"infrastructure": {"parametersRef": reference}}),
            "parameters of the controller",
        )
        for kind, reference in _PARAMETERS.items()
    },
    "options of TLS": (_gateway(options={"networking.gke.io/pre-shared-certs": "theirs"}), "options of TLS"),
    "certificate of another kind": (
        _gateway(certificateRefs=[{"group": "example.com", "kind": "Vault", "name": "c"}]),
        "certificates of kind `Vault.example.com`",
    ),
    "authority of the cluster": (
        _authority("ClusterTrustBundle", "certificates.k8s.io"),
        "certificates of kind `ClusterTrustBundle.certificates.k8s.io`",
    ),
    "address of a Service": (_service(clusterIP="10.96.7.7"), "the address `10.96.7.7`"),
    "addresses of a Service": (
        _service(clusterIP="10.96.7.7", clusterIPs=["10.96.7.7"], ipFamilyPolicy="SingleStack"),
        "the address `10.96.7.7`",
    ),
    "address of the DNS": (_service(clusterIP="10.96.0.10"), "the address `10.96.0.10`"),
    "address of Ray's Service": (
        ray_cluster({"headService": {"spec": {"ports": [{"port": 80}], "clusterIP": "10.96.7.7"}}}),
        "the address `10.96.7.7`",
    ),
    "addresses of Ray's Service": (
        ray_cluster({"headService": {"spec": {"ports": [{"port": 80}], "clusterIPs": ["10.96.7.7"]}}}),
        "the address `10.96.7.7`",
    ),
    **{
        f"{kind} with {case}": (make(**changes), what)
        for kind, make in (("Kustomization", _kustomization), ("HelmRelease", _release))
        for case, changes, what in (
            ("the rights of Flux", {"serviceAccountName": None}, "the rights of Flux itself"),
            ("another namespace", {"targetNamespace": "team-b"}, "objects in namespace `team-b`"),
            ("a kubeconfig", {"kubeConfig": {"secretRef": {"name": "x"}}}, "another login by a kubeconfig"),
        )
    },
    "Kustomization with an empty account": (_kustomization(serviceAccountName=""), "the rights of Flux itself"),
    "HelmRelease that is stored elsewhere": (_release(storageNamespace="team-b"), "objects in namespace `team-b`"),
    "source of another namespace": (
        _kustomization(sourceRef={"kind": "GitRepository", "name": "x", "namespace": "team-b"}),
        "the source `team-b/x`",
    ),
    "source of another chart": (
        _release(chartRef={"kind": "OCIRepository", "name": "x", "namespace": "team-b"}),
        "the source `team-b/x`",
    ),
    "repository of another namespace": (_chart("team-b"), "the source `team-b/x`"),
    "project of everyone": (_application(project="default"), "the project `AppProject/default`"),
    "no project": (_application(project=""), "the project `AppProject/`"),
    "project of another team": (_application(project="team-b-apps"), "the project `AppProject/team-b-apps`"),
    "Applications of generators": (
        _object(
            "argoproj.io/v1alpha1",
            "ApplicationSet",
            generators=[],
            template={"metadata": {"name": "x"}, "spec": _application()["spec"]},
        ),
        "Applications of any project",
    ),
    **{
        f"deployer: {case}": (body, "the ServiceAccount `deployer`")
        for case, body in account_places("deployer").items()
    },
}
"""Objects with what the finding names, by what is wrong with them."""

UNSERVED: dict[str, tuple[Body, str]] = {
    "address of Ray's Service with managers of its own": (
        ray_cluster(
            {
                "headService": {
                    "metadata": {"managedFields": [{"manager": "x", "operation": "Update"}]},
                    "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.7.7"},
                }
            }
        ),
        "the address `10.96.7.7`",
    ),
    **{
        f"backend {kind} of a {route}": (_backed(backend, kind=route), f"a backend of kind `{kind}`")
        for kind, backend in _BACKENDS.items()
        for route in ("TLSRoute", "TCPRoute", "UDPRoute")
    },
    **{
        f"parent {kind} of a {route}": (_route(route, parentRefs=[parent]), f"a parent of kind `{kind}`")
        for kind, parent in _PARENTS.items()
        for route in ("TLSRoute", "TCPRoute", "UDPRoute")
    },
    "any host of a TLSRoute": (
        _object(f"{_GATEWAY}/v1alpha2", "TLSRoute", rules=[{"backendRefs": [_SERVICE]}]),
        "the host `*`",
    ),
    **{
        f"check of {place}": (body, "a backend of kind `Hostname.networking.istio.io`")
        for place, body in _filtered(type="ExternalAuth", externalAuth={"backendRef": _HOSTNAME}).items()
    },
    "default Gateways": (_route(useDefaultGateways="All"), "the cluster's default Gateways"),
}
"""The same, with fields that the API server of the tests does not take: of the experimental channel of Gateway API, and
of a template's metadata."""

ALLOWED: dict[str, Body] = {
    "backend": _backed(_SERVICE, {"group": "", "kind": "Service", **_SERVICE}),
    "backend of a GRPCRoute": _backed(_SERVICE, kind="GRPCRoute"),
    "pool as a backend": _backed({"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "p"}),
    "mirror": _filtered(type="RequestMirror", requestMirror={"backendRef": _SERVICE})["a route"],
    "headers": _filtered(type="RequestHeaderModifier", requestHeaderModifier={"set": [{"name": "a", "value": "b"}]})[
        "a backend"
    ],
    "parent": _route(parentRefs=[{"name": "g"}, {"group": _GATEWAY, "kind": "Gateway", "name": "h"}]),
    "Ingress of a Service": _ingress(service={"name": "x", "port": {"number": 80}}),
    "pool": _pool(),
    "pool with a kind": _pool(group="", kind="Service"),
    "Gateway": _gateway({"infrastructure": {"labels": {"app": "x"}}}),
    "certificate with a kind": _gateway(certificateRefs=[{"group": "", "kind": "Secret", "name": "c"}]),
    "authority": _authority("ConfigMap", ""),
    "Service": _service(),
    "Service without an address": _service(clusterIP="None"),
    "Service with an empty address": _service(clusterIP=""),
    "Service of Ray without an address": ray_cluster(
        {"headService": {"spec": {"ports": [{"port": 80}], "clusterIP": "None"}}}
    ),
    "Kustomization": _kustomization(targetNamespace="team-a"),
    "HelmRelease": _release(targetNamespace="team-a", storageNamespace="team-a"),
    "chart": _chart("team-a"),
    "Application": _application(),
    # A namespace, and the name of an object of another kind, are not names of Secrets or accounts.
    "other names": runner(
        namespace="deployer",
        source={"kind": "GitRepository", "name": "sops-age"},
        secretName="deployer-x",
        labels={"deployer": "x"},
    ),
    "account of the tenant": runner(serviceAccountName="runner"),
}
"""Objects that the tenant may have."""
