"""What a build makes of a rendered folder is what kaigen checked: no object is unpacked, dropped or replaced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.kustomize import build, build_of, in_order, read_by_kubectl
from tests.unit.extend.repository import KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, JOB, Repository

PLAIN = CONFIG + "passthrough: true\n"
EVIL = """\
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: evil}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
  subjects: [{kind: ServiceAccount, name: default, namespace: ml}]
- apiVersion: v1
  kind: Pod
  metadata: {name: node, namespace: kube-system}
  spec: {hostPID: true, containers: [{name: c, image: evil, securityContext: {privileged: true}}]}
"""
EVIL_JSON = json.dumps(yaml.safe_load(EVIL))


def head(api_version: str, kind: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: allow, namespace: ml}}\n"


ACCESS = head("example.com/v1", "AccessList")
UNPACKED = {
    "a kind without a schema": f"{ACCESS}items:\n{EVIL}",
    "List of another group": f"{head('example.com/v1', 'List')}items:\n{EVIL}",
    "List of the core group": f"{head('v1', 'List')}items:\n{EVIL}",
    "a list of a known kind": f"{head('v1', 'PodList')}items:\n{EVIL}",
    "a list of a custom kind": f"{head('ray.io/v1', 'RayClusterList')}items:\n{EVIL}",
    "a list in a list": f"{ACCESS}items: [{{apiVersion: a.b/v1, kind: CList, items: {EVIL_JSON}}}]",
    "ResourceList of kyaml": f"{head('config.kubernetes.io/v1', 'ResourceList')}items:\n{EVIL}",
    "ResourceList of any group": f"{head('example.com/v1', 'ResourceList')}items:\n{EVIL}",
    "ResourceList with a function": head("example.com/v1", "ResourceList") + "functionConfig: {a: b}\n",
    "List with a function": head("example.com/v1", "List") + "functionConfig: {a: b}\n",
    "an empty list": f"{ACCESS}items: []\n",
    "null": f"{ACCESS}items:\n",
    "a merge key": f"{ACCESS}a: &a {{items: {EVIL_JSON}}}\n<<: *a\n",
    "an alias": f"{ACCESS}a: &a {EVIL_JSON}\nitems: *a\n",
    "an escaped key": f'{ACCESS}"\\x69tems":\n{EVIL}',
    "a quoted kind": f"{ACCESS.replace('AccessList', chr(34) + 'Access' + chr(92) + 'x4cist' + chr(34))}items:\n{EVIL}",
    "JSON": json.dumps({**yaml.safe_load(ACCESS), "items": yaml.safe_load(EVIL)}),
    "next to spec and status": f"{ACCESS}spec: {{}}\nitems:\n{EVIL}",
}
"""Objects that kustomize unpacks or drops."""

READ_AS_LISTS = {
    "a kind with another ending": head("example.com/v1", "Access") + f"items:\n{EVIL}",
    "a kind in lower case": head("example.com/v1", "accesslist") + f"items:\n{EVIL}",
    "a kind with a schema": head("v1", "ConfigMap") + f"items:\n{EVIL}",
}
"""Objects that kustomize passes on, and that Argo CD, Flux, Helm and kubectl unpack."""

OF_BUILDS = {
    "Kustomization": head("kustomize.config.k8s.io/v1beta1", "Kustomization") + "namePrefix: evil-\n",
    "Component": head("kustomize.config.k8s.io/v1alpha1", "Component") + "resources: [a.yaml]\n",
    "another kind of kustomize": head("kustomize.config.k8s.io/v1", "Anything"),
    "an odd version": head("kustomize.config.k8s.io/x/y", "Kustomization"),
    "a builtin transformer": head("builtin", "PatchTransformer") + "patch: '{}'\n",
    "a builtin generator": head("builtin", "ConfigMapGenerator") + "literals: [a=b]\n",
    "a function": head("config.kubernetes.io/v1", "Anything"),
    "an old function": head("config.k8s.io/v1alpha1", "Anything"),
    "a ResourceList without items": head("config.kubernetes.io/v1", "ResourceList") + "a: b\n",
}
"""Files of kustomize and its functions."""

REFUSED = UNPACKED | READ_AS_LISTS | OF_BUILDS
OTHER_CODES = {
    "a kind in lower case": "KG0212",
    "an odd version": "KG0212",
    "a builtin transformer": "KG0501",
    "a builtin generator": "KG0501",
}
"""What is refused for another reason."""

PASSED_ON = {
    "a kind that ends in List without items": ACCESS + "spec: {entries: [{a: b}]}\n",
    "items deeper down": head("example.com/v1", "Access") + "spec: {items: [{apiVersion: v1, kind: Pod}]}\n",
    "items in capitals": head("example.com/v1", "AccessList") + "Items: [{apiVersion: v1, kind: Pod}]\n",
    "a Kustomization of Flux": head("kustomize.toolkit.fluxcd.io/v1", "Kustomization")
    + "spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: a}}\n",
    "a similar group": head("kustomize.config.k8s.io.example.com/v1", "Kustomization"),
    "another object of the file's kind": head("example.com/v1", "Kustomization") + "resources: [a.yaml]\n",
    "objects whose files had one name": "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{a: {data}}}\n"
        for name, namespace, data in (("x", "ml", "b"), ("x", "other", "c"), ("x-2", "ml", "d"), ("x.2", "ml", "e"))
    ),
    "a binding without a namespace": head("rbac.authorization.k8s.io/v1", "RoleBinding")
    + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}\n"
    + "subjects: [{kind: ServiceAccount, name: a}, {kind: ServiceAccount, name: a, namespace: other}]\n"
    + "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: ml}\n"
    + "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a, namespace: other}\n",
    "variables of kustomize": head("v1", "ConfigMap") + "data: {a: $(NAME), b: '${NAME}', c: '{{ .x }}'}\n",
    "odd values": head("example.com/v1", "Odd")
    + "spec: {a: 'yes', b: '0x10', c: 1.5, d: '1e3', e: '', f: {}, g: []}\n",
}
"""Objects that reach a cluster as they are written."""


@pytest.mark.parametrize("name", REFUSED)
def test_an_object_that_a_build_changes_is_refused_at_its_line(repository: Repository, name: str) -> None:
    file = "specs/l.json" if name == "JSON" else "specs/l.yaml"
    repository.write({"kaigen.yaml": PLAIN, file: REFUSED[name]})
    done = repository.kaigen("validate")
    code = OTHER_CODES.get(name, "KG0553")
    assert (done.code, f"error[{code}]" in done.err, f"{file}:" in done.err) == (2, True, True), done.text
    assert repository.kaigen("render").code == 2
    assert not (repository.folder / "rendered").exists()


@pytest.mark.parametrize("name", UNPACKED)
def test_kustomize_changes_what_is_refused(kubectl: Path, tmp_path: Path, name: str) -> None:
    built = build_of(kubectl, tmp_path / "folder", REFUSED[name])
    assert "allow" not in [body["metadata"]["name"] for body in built]


@pytest.mark.parametrize("name", READ_AS_LISTS)
def test_kubectl_and_helm_read_any_object_with_items_as_a_list(kubectl: Path, tmp_path: Path, name: str) -> None:
    (passed_on,) = build_of(kubectl, tmp_path / "folder", REFUSED[name])
    read = read_by_kubectl(kubectl, yaml.safe_dump(passed_on))
    assert read == ["clusterrolebinding.rbac.authorization.k8s.io/evil", "pod/node"]


@pytest.mark.parametrize("name", PASSED_ON)
def test_what_is_accepted_is_built_as_it_is_written(repository: Repository, kubectl: Path, name: str) -> None:
    repository.write({"kaigen.yaml": PLAIN, "specs/l.yaml": PASSED_ON[name]})
    done = repository.kaigen("render")
    assert done.code == 0, done.text
    (folder,) = repository.folder.glob("rendered/*/l/manifests")
    assert in_order(build(kubectl, folder)) == in_order(yaml.safe_load_all(PASSED_ON[name]))


def kind(repository: Repository, template: str, name: str = "object") -> None:
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": SCHEMA,
            f"kinds/thing/templates/{name}.yaml.jinja": template,
            "specs/one.yaml": SPEC,
        }
    )


@pytest.mark.parametrize("name", ["a kind without a schema", "a kind with another ending", "Kustomization"])
def test_templates_make_no_object_that_a_build_changes(repository: Repository, name: str) -> None:
    kind(repository, REFUSED[name].replace("name: allow, namespace: ml", "name: '{{ release }}'"))
    done = repository.kaigen("validate")
    assert (done.code, "KG0553" in done.err, "object.yaml.jinja:" in done.err) == (2, True, True), done.text


def test_patches_make_no_object_that_a_build_changes(repository: Repository) -> None:
    patch = "patches:\n  - target: {app: evaluate, kind: Job}\n    patch: {items: [{apiVersion: v1, kind: Pod}]}\n"
    repository.write({"kaigen.yaml": CONFIG + patch, "specs/evaluate.yaml": JOB})
    done = repository.kaigen("validate")
    assert (done.code, "KG0553" in done.err, "kaigen.yaml:" in done.err) == (2, True, True), done.text


def test_a_template_does_not_replace_the_list_of_files(repository: Repository, kubectl: Path) -> None:
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ release }}', namespace: ml}\ndata: {a: b}\n"
    kind(repository, template, "kustomization")
    repository.rendered()
    (folder,) = repository.folder.glob("rendered/ml/one/manifests")
    assert [body["data"] for body in build(kubectl, folder)] == [{"a": "b"}]


_SEALED = "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]"
_SOPS = f"sops: {{mac: '{_SEALED}', version: 3.9.0, age: [{{recipient: age1x, enc: x}}]}}\n"
_SECRET = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: ml}}\ndata: {{a: '{_SEALED}'}}\n"
ENCRYPTED = {
    "a Pod": f"{head('v1', 'Pod')}spec: {{nodeName: '{_SEALED}', containers: [{{name: a, image: b}}]}}\n",
    "a ConfigMap": f"{head('v1', 'ConfigMap')}data: {{a: '{_SEALED}'}}\n",
    "a Role": f"{head('rbac.authorization.k8s.io/v1', 'Role')}rules: []\n",
    "a NetworkPolicy": f"{head('networking.k8s.io/v1', 'NetworkPolicy')}spec: {{podSelector: {{}}}}\n",
    "a kind without a schema": f"{head('example.com/v1', 'Thing')}spec: {{a: '{_SEALED}'}}\n",
    "a Secret of another group": f"{head('example.com/v1', 'Secret')}data: {{a: '{_SEALED}'}}\n",
    "the type of a Secret": f"{_SECRET}type: '{_SEALED}'\n",
    "an annotation": _SECRET.replace("{name: s", f"{{annotations: {{a: '{_SEALED}'}}, name: s"),
    "a label": _SECRET.replace("{name: s", f"{{labels: {{a: '{_SEALED}'}}, name: s"),
    "an owner": _SECRET.replace("{name: s", f"{{ownerReferences: [{{uid: '{_SEALED}'}}], name: s"),
}


@pytest.mark.parametrize("what", ENCRYPTED)
def test_nothing_but_values_of_secrets_is_encrypted(repository: Repository, what: str) -> None:
    repository.write({"kaigen.yaml": PLAIN, "specs/l.yaml": ENCRYPTED[what] + _SOPS})
    done = repository.kaigen("validate")
    assert (done.code, "KG0553" in done.err) == (2, True), done.text


def test_values_of_a_secret_may_be_encrypted(repository: Repository) -> None:
    repository.write({"kaigen.yaml": PLAIN, "specs/l.yaml": _SECRET + _SOPS})
    assert "KG0553" not in repository.kaigen("validate").text


@pytest.mark.parametrize("text", ["apiVersion: v1\nkind: List\nitems:\n", "apiVersion: v1\nkind: PodList\nitems:\n"])
def test_a_list_without_a_name_is_reported_as_a_list(repository: Repository, text: str) -> None:
    repository.write({"kaigen.yaml": PLAIN, "specs/list.yaml": text + EVIL})
    done = repository.kaigen("validate")
    assert "specs/list.yaml:4:1: error[KG0553]: kaigen reads no lists of objects" in done.err, done.text
    assert "write each object as a document of its own" in done.err
    assert "metadata.name" not in done.err
