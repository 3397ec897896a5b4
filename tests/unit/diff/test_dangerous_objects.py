"""Objects that reach beyond their namespace, or of which kaigen does not know what they do, are dangers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.block_settings import Allowed, VolumeGrant
from kaigen.config.settings import Config
from kaigen.diff import Effect, compare
from kaigen.diff.rules.kinds import UNKNOWN, effects, harmless_kinds
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.schemas import index

CRDS = Path(__file__).parents[2] / "cluster" / "crds"
Trees = dict[str, bytes]


def _types() -> dict[str, str]:
    """Return every kind of Kubernetes and of the CRDs of the tests, by its type, with an API version."""
    found = {}
    for kind, versions in index()["kinds"].items():
        for version in versions:
            group = version.rpartition("/")[0]
            found[f"{kind}.{group}" if group else kind] = version
    for path in CRDS.glob("*.yaml"):
        text = path.read_text(encoding="utf-8")
        group_match, kind_match = (
            re.search(pattern, text, re.MULTILINE) for pattern in (r"^  group: (\S+)", r"^    kind: (\S+)")
        )
        assert group_match is not None
        assert kind_match is not None
        found.setdefault(f"{kind_match[1]}.{group_match[1]}", f"{group_match[1]}/v1")
    return found


TYPES = _types()


def tree(*objects: dict[str, Any], folder: str = "ml/app") -> Trees:
    """Return a tree with objects of one app."""
    return {f"{folder}/manifests/{number}.yaml": json.dumps(each).encode() for number, each in enumerate(objects)}


def dangers(old: Trees, new: Trees, config: Config | None = None) -> list[str]:
    """Return the texts of the dangers of a change."""
    return [effect.text for effect in found(old, new, config) if effect.level == "danger"]


def found(old: Trees, new: Trees, config: Config | None = None) -> list[Effect]:
    """Return the effects of a change."""
    change = compare(old, new, settings={"": config} if config else None)
    return [effect for app in change.apps for _, effect in app.all_effects()]


def loaded(text: str) -> dict[str, Any]:
    """Return an object of its YAML, with a name and the namespace `ml`."""
    data: dict[str, Any] = yaml.safe_load(text)
    data["metadata"] = {"name": "x", "namespace": "ml", **data.get("metadata", {})}
    return data


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_a_kind_is_harmless_for_a_reason_or_a_danger(type_: str) -> None:
    kind = type_.partition(".")[0]
    old = loaded(f"{{apiVersion: {TYPES[type_]}, kind: {kind}}}")
    new = {**old, "spec": {"anything": True}}
    changes = (tree(), tree(old)), (tree(old), tree(new)), (tree(old), tree())
    shown = [dangers(*change) for change in changes]
    if type_ in harmless_kinds():
        assert shown[0] == []
        assert harmless_kinds()[type_]
        assert type_ not in effects()
    else:
        assert shown[0], type_
        assert shown[1], type_
        assert shown[2] or type_ not in effects() or type_.startswith(REMOVAL), type_


REMOVAL = ("Application", "ClusterRole", "HelmRelease", "Kustomization", "PersistentVolume", "ReferenceGrant", "Res")


def test_every_kind_that_kaigen_creates_is_harmless() -> None:
    assert {row.type for row in KINDS.values() if row.emitted} <= harmless_kinds().keys()


def test_every_builtin_kind_has_a_clause() -> None:
    builtin = {
        type_
        for type_, version in TYPES.items()
        if ("." not in version.rpartition("/")[0] or version.partition("/")[0].endswith(".k8s.io"))
        and "ref" in index()["kinds"].get(type_.partition(".")[0], {}).get(version, {})
    }
    known = harmless_kinds().keys() | effects().keys()
    assert builtin - known == set()


def test_an_unknown_kind_is_a_danger() -> None:
    assert dangers(tree(), tree(loaded("{apiVersion: example.com/v1, kind: AccessList}"))) == [UNKNOWN]


ADDED = {
    "Argo CD into another namespace": (
        "{apiVersion: argoproj.io/v1alpha1, kind: Application, spec: {source: {repoURL: 'https://evil.example/x.git', "
        "path: .}, destination: {namespace: kube-system}}}",
        "Argo CD applies https://evil.example/x.git . into namespace kube-system",
    ),
    "a project for everything": (
        "{apiVersion: argoproj.io/v1alpha1, kind: AppProject, spec: {sourceRepos: ['*'], destinations: "
        "[{server: '*', namespace: '*'}], clusterResourceWhitelist: [{group: '*', kind: '*'}]}}",
        "source",
    ),
    "an ApplicationSet": ("{apiVersion: argoproj.io/v1alpha1, kind: ApplicationSet}", "Argo CD makes"),
    "a Kustomization": (
        "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, spec: {path: ./, serviceAccountName: admin, "
        "sourceRef: {kind: GitRepository, name: evil}}}",
        "Flux applies ./ of GitRepository evil as ServiceAccount admin",
    ),
    "a GitRepository": (
        "{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, spec: {url: 'https://evil.example/x.git'}}",
        "Flux fetches what is applied from https://evil.example/x.git",
    ),
    "a HelmRelease": ("{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease}", "Flux installs"),
    "a mutating policy": (
        "{apiVersion: admissionregistration.k8s.io/v1beta1, kind: MutatingAdmissionPolicy, spec: {}}",
        "changes objects of the whole cluster",
    ),
    "a weaker policy": (
        "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: "
        "{name: kaigen-tenant-team-a}, spec: {failurePolicy: Ignore}}",
        "a weaker one accepts more",
    ),
    "external addresses": (
        "{apiVersion: v1, kind: Service, spec: {externalIPs: [8.8.8.8], ports: [{port: 53}]}}",
        "external addresses",
    ),
    "a name of another server": (
        "{apiVersion: v1, kind: Service, spec: {type: ExternalName, externalName: api.team-b.svc}}",
        "a Service of type ExternalName",
    ),
    "endpoints": (
        "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: "
        "[{addresses: [169.254.169.254]}]}",
        "169.254.169.254",
    ),
    "older endpoints": (
        "{apiVersion: v1, kind: Endpoints, subsets: [{addresses: [{ip: 169.254.169.254}]}]}",
        "169.254.169.254",
    ),
    "a definition with a webhook": (
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {names: {kind: X}}}",
        "defines a kind for the whole cluster",
    ),
    "all secrets of a store": (
        "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, spec: {secretStoreRef: {kind: ClusterSecretStore, "
        "name: vault}, dataFrom: [{find: {name: {regexp: .*}}}]}}",
        "reads every secret of ClusterSecretStore vault",
    ),
    "an object in place of a Secret": (
        "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, spec: {target: {manifest: {kind: "
        "ClusterRoleBinding}}}}",
        "creates an object of another kind",
    ),
    "annotations of a Secret by a template": (
        "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, spec: {target: {template: {templateFrom: "
        "[{target: Annotations, literal: a}]}}}}",
        "writes Annotations of the Secret",
    ),
    "another store": (
        "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, spec: {secretStoreRef: {kind: ClusterSecretStore, "
        "name: other}, data: [{remoteRef: {key: team-b/db}}]}}",
        "reads team-b/db of ClusterSecretStore other",
    ),
    "a policy of Cilium": (
        "{apiVersion: cilium.io/v2, kind: CiliumClusterwideNetworkPolicy}",
        "traffic of pods of every namespace",
    ),
    "a token of Prometheus": (
        "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, spec: {endpoints: [{bearerTokenFile: /token}]}}",
        "files of its own",
    ),
    "Pods of every namespace": (
        "{apiVersion: monitoring.coreos.com/v1, kind: PodMonitor, spec: {namespaceSelector: {any: true}}}",
        "Pods of every namespace",
    ),
    "a server in a volume": (
        "{apiVersion: v1, kind: PersistentVolume, spec: {nfs: {server: 10.0.0.1, path: /}}}",
        "pods of the claim get nfs",
    ),
    "a storage class": (
        "{apiVersion: storage.k8s.io/v1, kind: StorageClass, provisioner: nfs.csi.k8s.io}",
        "driver nfs.csi.k8s.io",
    ),
    "a node": ("{apiVersion: v1, kind: Node}", "labels and taints"),
    "a certificate of a user": (
        "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest}",
        "authenticates as that user to the API server",
    ),
    "limits of the API server": ("{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema}", "limits requests"),
    "references of another namespace": (
        "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, spec: {from: [{namespace: team-b}], "
        "to: [{kind: Secret}]}}",
        "objects of namespace team-b may use every Secret",
    ),
    "devices of others": (
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, spec: {spec: {devices: {requests: [{name: a, "
        "exactly: {adminAccess: true}}]}}}}",
        "adminAccess",
    ),
    "devices of others in a claim": (
        "{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, spec: {devices: {requests: [{name: a, adminAccess: "
        "true}]}}}",
        "adminAccess",
    ),
    "a quota": (
        "{apiVersion: v1, kind: ResourceQuota, metadata: {name: kaigen}, spec: {hard: {requests.nvidia.com/gpu: "
        "'800'}}}",
        "requests.nvidia.com/gpu",
    ),
    "limits of all pods": ("{apiVersion: v1, kind: LimitRange}", "all pods of the namespace"),
    "a priority": ("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, value: 1}", "may evict pods"),
    "rights to everything": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: ['*'], resources: ['*'], verbs: "
        "['*']}]}",
        "do anything with everything",
    ),
    "rights to Secrets": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [secrets], verbs: "
        "['*']}]}",
        "do anything with secrets",
    ),
    "rights to the namespace": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [namespaces], "
        "verbs: [get, patch]}, {apiGroups: [''], resources: [pods], verbs: [create]}]}",
        "patch and get namespaces",
    ),
    "a role of the cloud": (
        "{apiVersion: v1, kind: ServiceAccount, metadata: {annotations: {eks.amazonaws.com/role-arn: "
        "'arn:aws:iam::1:role/admin'}}}",
        "arn:aws:iam::1:role/admin",
    ),
    "a token of an account": (
        "{apiVersion: v1, kind: Secret, metadata: {annotations: {kubernetes.io/service-account.name: deployer}}, type: "
        "kubernetes.io/service-account-token}",
        "ServiceAccount deployer",
    ),
    "a token of a node": ("{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token}", "bootstrap"),
    "a Secret sealed elsewhere": (
        "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, metadata: {annotations: "
        "{sealedsecrets.bitnami.com/cluster-wide: 'true'}}}",
        "unseals what was sealed under another name",
    ),
    "a copied Secret": (
        "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, spec: {template: {metadata: {annotations: "
        "{reflector.v1.k8s.emberstack.com/reflects: team-b/token}}}}}",
        "team-b/token",
    ),
    "a Secret that is copied by a label": (
        "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, spec: {template: {metadata: {labels: "
        "{example.com/copy: team-b}}}}}",
        "its Secret has label example.com/copy: team-b",
    ),
    "files of KEDA": (
        "{apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, spec: {filePath: /token}}",
        "KEDA authenticates by filePath",
    ),
    "the identity of KEDA": (
        "{apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, spec: {podIdentity: {provider: azure-workload}}}",
        "podIdentity",
    ),
    "a server of another namespace": (
        "{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, spec: {scaleTargetRef: {name: x}, triggers: [{type: "
        "prometheus, metadata: {serverAddress: 'http://prometheus.team-b:9090'}}]}}",
        "http://prometheus.team-b:9090",
    ),
    "data of another namespace": (
        "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {dataSourceRef: {kind: PersistentVolumeClaim, name: data, "
        "namespace: team-b}}}",
        "team-b/data",
    ),
    "a Secret of another namespace": (
        "{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, spec: {listeners: [{tls: {certificateRefs: [{name: "
        "tls, namespace: team-b}]}}]}}",
        "team-b/tls",
    ),
    "a backend of another namespace": (
        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {rules: [{backendRefs: [{name: api, "
        "namespace: team-b}]}]}}",
        "team-b/api",
    ),
    "everyone": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r}, subjects: "
        "[{kind: Group, name: 'system:authenticated'}]}",
        "system:authenticated",
    ),
    "the administrator": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: ClusterRole, name: "
        "cluster-admin}, subjects: [{kind: ServiceAccount, name: a}]}",
        "ClusterRole cluster-admin",
    ),
    "an account of another namespace": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: r}, subjects: "
        "[{kind: ServiceAccount, name: a, namespace: team-b}]}",
        "ServiceAccount team-b/a",
    ),
    "a Role that is not in the tree": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: other}, subjects: "
        "[{kind: ServiceAccount, name: a}]}",
        "gives Role other",
    ),
    "raw configuration": (
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: "
        "{nginx.ingress.kubernetes.io/configuration-snippet: a}}}",
        "raw configuration",
    ),
    "the control plane": (
        "{apiVersion: apps/v1, kind: DaemonSet, spec: {template: {spec: {nodeSelector: "
        "{node-role.kubernetes.io/control-plane: ''}}}}}",
        "node-role.kubernetes.io/control-plane",
    ),
    "quota of a queue": (
        "{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, spec: {clusterQueue: team-b}}",
        "the queue ClusterQueue/team-b",
    ),
    "a certificate": ("{apiVersion: cert-manager.io/v1, kind: Certificate}", "signs a certificate"),
    "a route of the mesh": ("{apiVersion: networking.istio.io/v1, kind: VirtualService}", "of a host in the mesh"),
    "a namespace": ("{apiVersion: v1, kind: Namespace}", "its labels decide"),
    "a webhook": (
        "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration}",
        "of the whole cluster",
    ),
    "an API": ("{apiVersion: apiregistration.k8s.io/v1, kind: APIService}", "whole cluster"),
}


@pytest.mark.parametrize("what", ADDED)
def test_a_new_object_that_reaches_further_is_a_danger(what: str) -> None:
    text, expected = ADDED[what]
    shown = dangers({}, tree(loaded(text)))
    assert any(expected in each for each in shown), shown


@pytest.mark.parametrize("what", ADDED)
def test_so_is_an_object_that_comes_to_reach_further(what: str) -> None:
    new = loaded(ADDED[what][0])
    old = {key: new[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": "x", "namespace": "ml"}}
    old["metadata"]["name"] = new["metadata"]["name"]
    # What has no further field is changed by a label.
    after = {**new, "metadata": {**new["metadata"], "labels": {"a": "b"}}}
    assert dangers(tree(old), tree(after))


HARMLESS = {
    "a Secret": "{apiVersion: v1, kind: Secret, type: Opaque}",
    "a Service": "{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}",
    "a claim of its own volume": "{apiVersion: v1, kind: PersistentVolumeClaim, spec: {volumeName: ml-data}}",
    "a route of a shared Gateway": (
        "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {parentRefs: [{name: public, namespace: "
        "gateways}], rules: [{backendRefs: [{name: api}]}]}}"
    ),
    "a Secret of its own namespace": (
        "{apiVersion: keda.sh/v1alpha1, kind: TriggerAuthentication, spec: {secretTargetRef: [{name: a}]}}"
    ),
    "a sealed Secret": "{apiVersion: bitnami.com/v1alpha1, kind: SealedSecret, spec: {encryptedData: {a: b}}}",
    "a store of its namespace": (
        "{apiVersion: external-secrets.io/v1, kind: ExternalSecret, spec: {secretStoreRef: {name: own}, data: "
        "[{remoteRef: {key: a}}]}}"
    ),
    "rights to watch": (
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [pods], "
        "verbs: [get, list, watch]}, {apiGroups: [batch], resources: [jobs], resourceNames: [a], verbs: [get]}]}"
    ),
    "an issuer of certificates": (
        "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {annotations: {cert-manager.io/cluster-issuer: "
        "letsencrypt}}}"
    ),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_a_usual_object_is_no_danger(what: str) -> None:
    assert dangers({}, tree(loaded(HARMLESS[what]))) == []


def test_what_the_namespace_reached_before_is_no_danger() -> None:
    account = loaded(ADDED["a role of the cloud"][0])
    other = {**account, "metadata": {**account["metadata"], "name": "y"}}
    old = tree(account)
    assert dangers(old, {**old, **tree(other, folder="ml/b")}) == []
    moved = {**other, "metadata": {**other["metadata"], "namespace": "team-b"}}
    assert dangers(old, {**old, **tree(moved, folder="team-b/b")})


def test_annotations_of_kaigen_yaml_are_no_danger() -> None:
    account = loaded(ADDED["a role of the cloud"][0])
    config = Config(annotations=account["metadata"]["annotations"])
    assert dangers({}, tree(account), config) == []


APPLICATION = """
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: prod.ml.NAME, namespace: argocd}
spec:
  project: kaigen.ml
  source: {repoURL: https://git.example.com/ml.git, targetRevision: main, path: rendered/ml/NAME/manifests}
  destination: {server: https://kubernetes.default.svc, namespace: ml}
  syncPolicy: {syncOptions: [ServerSideApply=true]}
"""


def applied(name: str, *changes: tuple[str, str], folder: str = "_argocd/apps") -> Trees:
    """Return a tree with an app and its Application."""
    text = APPLICATION.replace("NAME", name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    config_map = loaded(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}")
    return {**tree(config_map, folder=f"ml/{name}"), f"{folder}/ml.{name}.yaml": text.encode()}


def test_an_application_of_a_new_app_is_no_danger() -> None:
    old = applied("chat")
    assert dangers(old, {**old, **applied("new")}) == []


@pytest.mark.parametrize(
    "change",
    [
        ("https://git.example.com/ml.git", "https://evil.example/x.git"),
        ("targetRevision: main", "targetRevision: evil"),
        ("namespace: ml}", "namespace: kube-system}"),
        ("https://kubernetes.default.svc", "https://other.example"),
        ("kaigen.ml", "default"),
        ("rendered/ml/new/manifests", "evil"),
        ("rendered/ml/new/manifests", "rendered/ml/other/manifests"),
        ("rendered/ml/new/manifests", "evil/ml/new/manifests"),
        ("syncPolicy: {", "syncPolicy: {automated: {prune: true}, "),
        ("manifests}", "manifests, helm: {values: evil}}"),
        ("namespace: argocd}", "namespace: ml}"),
    ],
)
def test_an_application_with_other_settings_than_the_others_is_a_danger(change: tuple[str, str]) -> None:
    old = applied("chat")
    assert dangers(old, {**old, **applied("new", change)})


RELEASE = """
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: NAME, namespace: flux-system}
spec: {chartRef: {kind: OCIRepository, name: NAME}, interval: 5m, releaseName: NAME, targetNamespace: PLACE}
"""
CHART = """
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: NAME, namespace: flux-system}
spec: {layerSelector: {operation: copy}, ref: {tag: 1.0.0-NAME}, url: "oci://charts.example.com/NAME"}
"""


def synced(text: str, name: str, place: str) -> Trees:
    """Return a tree with an app and the object that syncs it."""
    config_map = loaded(f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: {place}}}}}")
    body = text.replace("NAME", name).replace("PLACE", place).encode()
    return {**tree(config_map, folder=f"{place}/{name}"), f"_flux/apps/{place}.{name}.yaml": body}


@pytest.mark.parametrize("text", [RELEASE, CHART])
def test_what_syncs_a_new_app_of_another_namespace_is_no_danger(text: str) -> None:
    old = synced(text, "chat", "ml")
    assert dangers(old, {**old, **synced(text, "new", "lab")}) == []
    assert dangers(old, {**old, **synced(text.replace("spec: {", "spec: {suspend: false, "), "new", "lab")})


GUARDED = """
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: prod.PLACE.NAME, namespace: flux-system}
spec:
  path: ./PLACE/NAME/manifests
  sourceRef: {kind: GitRepository, name: ml}
  components: [../../../_flux/after/PLACE.NAME/0a1b2c3d]
"""


@pytest.mark.parametrize(
    ("component", "is_danger"),
    [
        ("../../../_flux/after/lab.new/4e5f6071", False),
        ("../../../_flux/after/ml.chat/0a1b2c3d", True),
        ("../../../lab/other/manifests", True),
        ("../../../_flux/after/lab.new/4e5f6071/../..", True),
    ],
)
def test_a_kustomization_may_have_only_the_component_of_its_app(component: str, is_danger: bool) -> None:
    old = synced(GUARDED, "chat", "ml")
    text = GUARDED.replace("../../../_flux/after/PLACE.NAME/0a1b2c3d", component)
    assert bool(dangers(old, {**old, **synced(text, "new", "lab")})) == is_danger


@pytest.mark.parametrize("folder", ["ml/evil/manifests", "ml/_argocd/manifests", "x/y/_argocd/apps"])
def test_an_application_among_the_objects_of_an_app_is_a_danger(folder: str) -> None:
    old = applied("chat")
    assert dangers(old, {**old, **applied("new", folder=folder)})


def test_the_removal_of_an_app_is_shown_object_by_object() -> None:
    old = {**applied("chat"), **applied("new")}
    assert dangers(old, applied("chat")) == []
    kept = {path: data for path, data in old.items() if "ml.new" not in path}
    finalizers = b"metadata: {finalizers: [resources-finalizer.argocd.argoproj.io], "
    application = {path: data.replace(b"metadata: {", finalizers) for path, data in old.items()}
    assert dangers(application, kept)


POD = """
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - {name: run, image: a, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
      MORE
"""
ROLE = (
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [RESOURCE], verbs: "
    "[get]}]}"
)
BINDING = (
    "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: x}, subjects: "
    "[{kind: ServiceAccount, name: deployer, namespace: ml}]}"
)


@pytest.mark.parametrize(("resource", "is_danger"), [("secrets", True), ("configmaps", False)])
def test_pods_that_run_as_an_account_with_rights_are_a_danger(resource: str, is_danger: bool) -> None:
    account = tree(loaded(ROLE.replace("RESOURCE", resource)), loaded(BINDING), folder="ml/_tenant")
    job = tree(loaded(POD.replace("MORE", "serviceAccountName: deployer")))
    shown = dangers(account, {**account, **job})
    assert any("service account deployer, which may: get secrets" in text for text in shown) == is_danger


VOLUMES = {
    "a bucket": ("s3.csi.aws.com", {"bucketName": "acme"}, None),
    "a folder of a bucket": (
        "gcsfuse.csi.storage.gke.io",
        {"bucketName": "acme", "mountOptions": "implicit-dirs,only-dir=team-a"},
        None,
    ),
    "a folder above": (
        "gcsfuse.csi.storage.gke.io",
        {"bucketName": "acme", "mountOptions": "implicit-dirs,only-dir=team-a/../team-b"},
        "the folder may leave the bucket",
    ),
    "an encoded folder": (
        "gcsfuse.csi.storage.gke.io",
        {"bucketName": "acme", "mountOptions": "only-dir=team-a%2fb"},
        "the folder may leave the bucket",
    ),
    "an unknown driver": ("nfs.csi.k8s.io", {}, "does not allow the driver nfs.csi.k8s.io"),
    "an attribute": ("s3.csi.aws.com", {"bucketName": "acme", "x": "y"}, "does not allow the attribute x"),
    "another bucket": ("s3.csi.aws.com", {"bucketName": "team-b"}, "does not allow the bucket s3://team-b"),
}


@pytest.mark.parametrize("what", VOLUMES)
def test_what_a_pod_mounts_with_a_driver_is_shown(what: str) -> None:
    driver, attributes, problem = VOLUMES[what]
    csi = json.dumps({"driver": driver, "volumeAttributes": attributes})
    config = Config(allow=Allowed(volumes=(VolumeGrant(uris=("s3://acme*", "gs://acme*")),)))
    effects = found({}, tree(loaded(POD.replace("MORE", f"volumes: [{{name: m, csi: {csi}}}]"))), config)
    ((level, text),) = [(each.level, each.text) for each in effects if each.rule == "csi-volume"]
    assert level == ("danger" if problem else "notice")
    assert driver in text
    assert (problem or "") in text


@pytest.mark.parametrize(
    ("handle", "secret", "more", "expected"),
    [
        ("acme/team-a", "kube-system/csi-s3-secret", {}, "notice"),
        ("acme/team-a/../../other", "kube-system/csi-s3-secret", {}, "danger"),
        ("acme/team-a//b", "kube-system/csi-s3-secret", {}, "danger"),
        ("acme/./b", "kube-system/csi-s3-secret", {}, "danger"),
        ("acme/team-a", "team-b/keys", {}, "danger"),
        ("acme/team-a", "kube-system/csi-s3-secret", {"claimRef": {"namespace": "team-b"}}, "danger"),
        ("acme/team-a", "kube-system/csi-s3-secret", {"nodeAffinity": {"required": {}}}, "danger"),
        ("acme/team-a", "kube-system/csi-s3-secret", {"nfs": {"server": "a"}}, "danger"),
    ],
)
def test_a_volume_of_a_bucket_is_no_danger_if_kaigen_yaml_allows_it(
    handle: str, secret: str, more: dict[str, Any], expected: str
) -> None:
    namespace, _, name = secret.partition("/")
    csi = {"driver": "ru.yandex.s3.csi", "volumeHandle": handle}
    csi_secret = {"nodePublishSecretRef": {"name": name, "namespace": namespace}}
    spec = {"claimRef": {"namespace": "ml", "name": "c"}, "csi": {**csi, **csi_secret}, **more}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    assert {each.level for each in found({}, tree(volume))} - {"info"} >= {expected}
    assert bool(dangers({}, tree(volume))) == (expected == "danger")


DENY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: default-deny}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
"""
POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: p}
spec: {podSelector: SELECTOR, policyTypes: [Ingress, Egress], RULES}
"""
OWN = "{matchLabels: {app.kubernetes.io/name: app}}"
OTHER = "{matchLabels: {app.kubernetes.io/name: chat}}"

OPEN = {
    "everything to all pods": ("{}", "ingress: [{}], egress: [{}]", True),
    "everything from all pods": ("{}", "egress: [{}]", True),
    "a port of all pods": ("{}", "ingress: [{ports: [{port: 80}]}]", True),
    "an expression": ("{matchExpressions: [{key: a, operator: Exists}]}", "ingress: [{}]", True),
    "everything from its own pods": (OWN, "egress: [{}]", True),
    "every address": (OWN, "egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0}}]}]", True),
    "every address over IPv6": (OWN, "egress: [{to: [{ipBlock: {cidr: '::/0'}}]}]", True),
    "every namespace": (OWN, "ingress: [{from: [{namespaceSelector: {}}]}]", True),
    "pods of another app": (OTHER, "ingress: [{ports: [{port: 80}]}]", True),
    "the metadata of a cloud": (
        OWN,
        "egress: [{to: [{ipBlock: {cidr: 169.254.169.254/32}}], ports: [{port: 80}]}]",
        True,
    ),
    "a part of link-local": (OWN, "egress: [{to: [{ipBlock: {cidr: 169.254.0.0/17}}], ports: [{port: 80}]}]", True),
    "loopback": (OWN, "egress: [{to: [{ipBlock: {cidr: 127.0.0.1/32}}], ports: [{port: 80}]}]", True),
    "loopback over IPv6": (OWN, "egress: [{to: [{ipBlock: {cidr: '::1/128'}}], ports: [{port: 80}]}]", True),
    "mapped metadata": (
        OWN,
        "egress: [{to: [{ipBlock: {cidr: '::ffff:169.254.169.254/128'}}], ports: [{port: 80}]}]",
        True,
    ),
    "metadata over IPv6": (OWN, "egress: [{to: [{ipBlock: {cidr: 'fd00:ec2::254/128'}}], ports: [{port: 80}]}]", True),
    "a port of its own pods": (OWN, "ingress: [{ports: [{port: 80}]}]", False),
    "a port of every server": (OWN, "egress: [{ports: [{port: 443}]}]", False),
    "its own pods": (OWN, f"ingress: [{{from: [{{podSelector: {OWN}}}]}}]", False),
    "a range": (OWN, "egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]", False),
    "nothing": ("{}", "ingress: []", False),
}


@pytest.mark.parametrize("what", OPEN)
def test_a_policy_that_opens_what_others_deny_is_a_danger(what: str) -> None:
    selector, rules, is_danger = OPEN[what]
    chat = POLICY.replace("SELECTOR", OTHER).replace("RULES", "ingress: []").replace("name: p}", "name: chat}")
    base = {**tree(loaded(DENY), folder="ml/_tenant"), **tree(loaded(chat), folder="ml/chat")}
    policy = tree(loaded(POLICY.replace("SELECTOR", selector).replace("RULES", rules)))
    assert bool(dangers(base, {**base, **policy})) == is_danger


def test_a_policy_that_allows_everything_is_a_danger_without_others() -> None:
    text = POLICY.replace("SELECTOR", "{}").replace("RULES", "ingress: [{}], egress: [{}]")
    ingress, egress = dangers({}, tree(loaded(text)))
    assert "from anywhere on every port" in ingress
    assert "to anywhere on every port" in egress
    assert dangers({}, tree(loaded(text.replace("[{}]", "[{ports: [{port: 80}]}]")))) == []


def test_a_policy_with_the_name_of_the_tenancy_is_a_danger() -> None:
    base = tree(loaded(DENY), folder="ml/_tenant")
    text = POLICY.replace("SELECTOR", "{}").replace("RULES", "ingress: [{}], egress: [{}]")
    policy = loaded(text.replace("name: p", "name: default-deny"))
    duplicate, ingress, egress = dangers(base, {**base, **tree(policy)})
    assert "from anywhere on every port" in ingress
    assert "to anywhere on every port" in egress
    assert "one of the two replaces the other" in duplicate


def test_the_text_of_a_new_policy_has_what_it_allows() -> None:
    rules = "egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 443}]}]"
    policy = loaded(POLICY.replace("SELECTOR", OWN).replace("RULES", rules))
    (text,) = [each.text for each in found({}, tree(policy)) if each.rule == "policy-added"]
    assert text.endswith("allows egress to 10.0.0.0/8 on port 443")


NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: ml}}"
KEPT = NAMESPACE.replace("name: ml", "name: ml, annotations: {argocd.argoproj.io/sync-options: Prune=false}")
LIMIT_RANGE = "{apiVersion: v1, kind: LimitRange, metadata: {name: l}, spec: {limits: []}}"
_ADMISSION = "admissionregistration.k8s.io/v1"
PROTECTIONS = {
    "NetworkPolicy": DENY,
    "ResourceQuota": "{apiVersion: v1, kind: ResourceQuota, metadata: {name: kaigen}, spec: {hard: {pods: 8}}}",
    "LimitRange": LIMIT_RANGE,
    **{
        kind: f"{{apiVersion: {_ADMISSION}, kind: {kind}, metadata: {{name: v}}}}"
        for kind in (
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
        )
    },
}


@pytest.mark.parametrize("kind", PROTECTIONS)
@pytest.mark.parametrize("folder", ["ml/_tenant", "ml/app", "_argocd"])
def test_the_removal_of_a_protection_is_a_danger_without_apps_too(kind: str, folder: str) -> None:
    text = PROTECTIONS[kind].replace("metadata: {", "metadata: {namespace: ml, ")
    assert dangers(tree(loaded(text), folder=folder), {})


@pytest.mark.parametrize("kind", ["NetworkPolicy", "ResourceQuota"])
@pytest.mark.parametrize(
    ("old", "new", "is_danger"),
    [("", "", True), (NAMESPACE, "", False), (NAMESPACE, NAMESPACE, True), (KEPT, "", True)],
    ids=["no Namespace", "with its Namespace", "its Namespace stays", "its Namespace is kept"],
)
def test_a_protection_may_be_removed_with_its_namespace(kind: str, old: str, new: str, is_danger: bool) -> None:
    protection = loaded(PROTECTIONS[kind])
    before = tree(protection, *([loaded(old)] if old else []), folder="ml/_tenant")
    after = tree(loaded(new), folder="ml/_tenant") if new else {}
    texts = [text for text in dangers(before, after) if "no longer" in text]
    assert bool(texts) == is_danger


@pytest.mark.parametrize(
    ("selector", "is_danger"),
    [
        ("{matchLabels: {app.kubernetes.io/name: chat}}", True),
        ("{matchExpressions: [{key: app.kubernetes.io/name, operator: Exists}]}", True),
        ("{matchLabels: {app.kubernetes.io/name: app}}", False),
        ("{matchLabels: {app.kubernetes.io/name: chat, tier: x}}", False),
    ],
)
def test_the_removal_of_a_policy_that_selects_pods_of_another_app_is_a_danger(selector: str, is_danger: bool) -> None:
    chat = loaded(POD.replace("MORE", ""))
    chat["spec"]["template"]["metadata"] = {"labels": {"app.kubernetes.io/name": "chat"}}
    other = tree(chat, folder="ml/chat")
    policy = tree(loaded(POLICY.replace("SELECTOR", selector).replace("RULES", "ingress: []")))
    assert bool(dangers({**other, **policy}, other)) == is_danger


QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: kaigen}, spec: {hard: {HARD}}}"


@pytest.mark.parametrize(
    ("hard", "is_danger"),
    [
        ("requests.nvidia.com/gpu: 800", True),
        ("pods: 8", True),
        ("requests.nvidia.com/gpu: many", True),
        ("requests.nvidia.com/gpu: 4", False),
        ("requests.nvidia.com/gpu: 8, pods: 8", False),
        (None, True),
    ],
)
def test_a_quota_of_a_tenancy_may_only_be_lowered(hard: str | None, is_danger: bool) -> None:
    app = tree(loaded(POD.replace("MORE", "")))
    old = {**app, **tree(loaded(QUOTA.replace("HARD", "requests.nvidia.com/gpu: 8")), folder="ml/_tenant")}
    new = {**app, **(tree(loaded(QUOTA.replace("HARD", hard)), folder="ml/_tenant") if hard else {})}
    assert bool(dangers(old, new)) == is_danger


def test_an_account_that_can_label_the_namespace_is_a_danger() -> None:
    objects = [
        "{apiVersion: v1, kind: ServiceAccount, metadata: {name: runner}}",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [''], resources: [namespaces], "
        "verbs: [get, patch]}]}",
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: x}, subjects: "
        "[{kind: ServiceAccount, name: runner, namespace: ml}]}",
        POD.replace("MORE", "serviceAccountName: runner"),
    ]
    shown = dangers({}, tree(*map(loaded, objects)))
    assert len(shown) == 3, shown
