"""What a spec reaches outside its own namespace is an error, unless kaigen.yaml allows it."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.unit.security.hostile import CONFIG, JOB, Repository

MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source:
    huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae557604adf67be50417f59c2c2f167def9a775}
  store:
    bucket:
      uri: s3://team-a/qwen
      endpoint: https://minio.example.com
      credentials: {secret: {name: keys}}
      mount: MOUNT
"""
STOLEN = "{secret: {name: vault, namespace: team-b}}"
NFS = "{driverName: nfs.csi.k8s.io, attributes: {server: 10.0.0.1, share: /}}"


@pytest.mark.parametrize(
    ("mount", "what"),
    [
        (STOLEN, "team-b/vault"),
        (NFS, "nfs.csi.k8s.io"),
        ("{attributes: {options: '--uid=0'}}", "options"),
        ("{options: ['-o allow_root']}", "-o allow_root"),
    ],
)
def test_what_a_driver_reaches_must_be_allowed(repository: Repository, mount: str, what: str) -> None:
    repository.write({"specs/qwen.yaml": MODEL.replace("MOUNT", mount)})
    done = repository.kaigen("validate")
    assert (done.code, "KG0581" in done.err, what in done.err) == (2, True, True), done.text
    granted = {
        "drivers": ["nfs.csi.k8s.io"],
        "secrets": ["team-b/vault", "kube-system/*"],
        "attributes": ["*"],
        "options": ["*"],
    }
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"allow": {"volumes": [granted]}})})
    assert repository.kaigen("validate").code == 0


@pytest.mark.parametrize(
    ("grant", "code"),
    [
        ({"uris": ["s3://team-a/*"]}, 0),
        ({"uris": ["s3://team-b/*"]}, 2),
        ({"namespaces": ["team-a"]}, 2),
        ({"namespaces": ["ml"], "uris": ["s3://*"]}, 0),
    ],
)
def test_buckets_are_limited_by_namespace_and_prefix(
    repository: Repository, grant: dict[str, list[str]], code: int
) -> None:
    entry = {"secrets": ["kube-system/csi-s3-secret"], **grant}
    repository.write(
        {
            "kaigen.yaml": CONFIG + yaml.safe_dump({"allow": {"volumes": [entry]}}),
            "specs/qwen.yaml": MODEL.replace("MOUNT", "{}"),
        }
    )
    assert repository.kaigen("validate").code == code


@pytest.mark.parametrize(("uris", "is_allowed"), [("gs://team-a/*", True), ("s3://team-a/*", False)])
def test_a_bucket_of_google_is_allowed_by_its_uri(repository: Repository, uris: str, is_allowed: bool) -> None:
    grant = yaml.safe_dump({"allow": {"volumes": [{"uris": [uris]}]}})
    model = MODEL.replace("s3://", "gs://").replace("      endpoint: https://minio.example.com\n", "")
    topology = MODEL.partition("spec:")[0].replace("Model", "Topology").replace("qwen", "chat")
    serves = f"{topology}spec: {{model: qwen, resources: {{gpuType: L4}}}}\n"
    repository.write({"kaigen.yaml": CONFIG + grant})
    repository.write({"specs/qwen.yaml": f"{model.replace('MOUNT', '{}')}---\n{serves}"})
    done = repository.kaigen("validate")
    assert ("KG0581" not in done.err, done.code == 0) == (is_allowed, is_allowed), done.text
    if not is_allowed:
        assert "specs/qwen.yaml:9:7: error[KG0581]" in done.err, done.text


@pytest.mark.parametrize(
    ("uris", "is_allowed"),
    [
        ("az://teama/models/*", True),
        ("az://teama/model", False),
        ("az://other/models/*", False),
        ("https://teama.blob.core.windows.net/models/*", False),
    ],
)
def test_a_container_of_azure_is_allowed_by_its_uri(repository: Repository, uris: str, is_allowed: bool) -> None:
    grant = yaml.safe_dump({"allow": {"volumes": [{"uris": [uris]}]}})
    model = MODEL.replace("s3://team-a/", "az://teama/models/").replace("MOUNT", "{}")
    model = model.replace("      endpoint: https://minio.example.com\n", "")
    repository.write({"kaigen.yaml": CONFIG + grant, "specs/qwen.yaml": model})
    done = repository.kaigen("validate")
    assert ("KG0581" not in done.err, done.code == 0) == (is_allowed, is_allowed), done.text


def test_listing_buckets_withdraws_the_shared_secret(repository: Repository) -> None:
    entry = {"uris": ["s3://team-a/*"]}
    repository.write(
        {
            "kaigen.yaml": CONFIG + yaml.safe_dump({"allow": {"volumes": [entry]}}),
            "specs/qwen.yaml": MODEL.replace("MOUNT", "{}"),
        }
    )
    done = repository.kaigen("validate")
    assert (done.code, "kube-system/csi-s3-secret" in done.err) == (2, True), done.text


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "argocd", "flux-system", "openshift-config"])
def test_a_system_namespace_must_be_allowed(repository: Repository, namespace: str) -> None:
    tenancy = "gitops: {repository: https://git.example.com/a.git, argocd: {}, tenancy: {}}\n"
    spec = JOB.replace("{name: evaluate}", f"{{name: evaluate, namespace: {namespace}}}")
    repository.write({"kaigen.yaml": CONFIG + tenancy, "specs/evaluate.yaml": spec})
    done = repository.kaigen("render")
    assert (done.code, "KG0580" in done.err) == (2, True), done.text
    assert not (repository.folder / "rendered").exists()
    repository.write({"kaigen.yaml": CONFIG + tenancy + f"allow: {{namespaces: [{namespace}]}}\n"})
    assert repository.kaigen("render").code == 0


@pytest.mark.parametrize("namespace", ["kube-system", "ml"])
@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace"])
def test_plain_objects_are_no_way_around(repository: Repository, namespace: str, kind: str) -> None:
    metadata = {"name": namespace} if kind == "Namespace" else {"name": "c", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": kind, "metadata": metadata}
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n", "specs/c.yaml": yaml.safe_dump(body)})
    assert repository.kaigen("validate").code == (2 if namespace == "kube-system" else 0)


@pytest.mark.parametrize(
    "source",
    [
        {"hostPath": {"path": "/"}},
        {"local": {"path": "/etc"}},
        {"csi": {"driver": "nfs.csi.k8s.io", "volumeHandle": "x"}},
        {
            "csi": {
                "driver": "ru.yandex.s3.csi",
                "volumeHandle": "x",
                "nodePublishSecretRef": {"name": "vault", "namespace": "team-b"},
            }
        },
        {"csi": {"driver": "s3.csi.aws.com", "volumeHandle": "x", "volumeAttributes": {"server": "x"}}},
        {"csi": {"driver": "s3.csi.aws.com", "volumeHandle": "x"}, "mountOptions": ["cache /etc"]},
    ],
)
def test_plain_volumes_are_no_way_around(repository: Repository, source: dict[str, object]) -> None:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], **source}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n", "specs/v.yaml": yaml.safe_dump(body)})
    done = repository.kaigen("validate")
    assert (done.code, "KG0581" in done.err) == (2, True), done.text


@pytest.mark.parametrize(
    ("change", "danger"),
    [
        ("passthrough: true\n", "plain objects, with `passthrough`"),
        ("images: {downloader: evil.example/x:1}\n", "image evil.example/x:1"),
        ("environments: {dev: {}, prod: {images: {downloader: evil.example/x:1}}}\n", "image evil.example/x:1"),
    ],
)
def test_plain_objects_and_replaced_images_are_dangers_in_the_diff(
    repository: Repository, change: str, danger: str
) -> None:
    start = "environments: {dev: {}, prod: {}}\n" if "environments" in change else ""
    repository.write({"kaigen.yaml": CONFIG + start})
    repository.rendered()
    repository.write({"kaigen.yaml": CONFIG + change})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert danger in done.out, done.text
    repository.commit()
    assert danger not in repository.kaigen("diff", "--base", "HEAD").out


@pytest.mark.parametrize(
    ("dev", "pinned", "is_danger"),
    [
        ("", "evil.example/x:1", True),
        ("ours.example/x:2", "evil.example/x:1", True),
        ("ours.example/x:2", "ours.example/x:2", False),
        ("ours.example/x:1", "ours.example/x:1", False),
    ],
)
def test_a_pinned_image_is_a_danger_unless_another_environment_has_it(
    repository: Repository, dev: str, pinned: str, is_danger: bool
) -> None:
    images = f"images: {{downloader: {dev}}}" if dev else ""
    environments = f"environments: {{dev: {{{images}}}, prod: {{}}}}\npromotion: [dev, prod]\n"
    repository.write({"kaigen.yaml": CONFIG + environments})
    repository.rendered()
    pins = f"apiVersion: kaigen.dev/v1alpha1\nkind: Pins\nimages: {{downloader: {pinned}}}\n"
    repository.write({"pins/prod.yaml": pins})
    done = repository.kaigen("diff", "--base", "HEAD")
    assert (f"image {pinned} as kaigen's own" in done.out) == is_danger, done.text


@pytest.mark.parametrize(("bucket", "uri"), [("theirs", "s3://ours/*"), ("ours", "s3://ours*minio.example.com")])
def test_the_bucket_of_a_plain_volume_is_limited(repository: Repository, bucket: str, uri: str) -> None:
    source = {"driver": "s3.csi.aws.com", "volumeHandle": "x", "volumeAttributes": {"bucketName": bucket}}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany"], "csi": source}
    body = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    allow = {"passthrough": True, "allow": {"volumes": [{"uris": [uri]}]}}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump(allow), "specs/v.yaml": yaml.safe_dump(body)})
    done = repository.kaigen("validate")
    assert (done.code, f"the bucket s3://{bucket}" in done.err) == (2, True), done.text


def test_a_csi_volume_of_a_pod_must_be_allowed(repository: Repository) -> None:
    csi = "{csi: {driver: nfs.csi.k8s.io, volumeAttributes: {server: 10.0.0.1, share: /}}, mountPath: /v}"
    repository.write({"specs/evaluate.yaml": JOB + f"  volumes: {{v: {csi}}}\n"})
    done = repository.kaigen("validate")
    assert (done.code, "KG0581" in done.err, "nfs.csi.k8s.io" in done.err) == (2, True, True), done.text
    granted = {"drivers": ["nfs.csi.k8s.io"], "attributes": ["server", "share"]}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"allow": {"volumes": [granted]}})})
    assert repository.kaigen("validate").code == 0


def test_a_setting_that_protects_is_a_danger_when_it_goes(repository: Repository) -> None:
    gitops = {"repository": "https://git.example.com/x.git", "argocd": {"signatureKeys": ["4AEE18F83AFDEB23"]}}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"gitops": gitops})})
    repository.rendered()
    gitops["argocd"] = {}
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"gitops": gitops})})
    done = repository.kaigen("diff", "--output", "json")
    effects = json.loads(done.out)["apps"][0]["effects"]
    assert effects == [
        {
            "level": "danger",
            "rule": "setting",
            "text": 'gitops.argocd.signatureKeys is not set instead of ["4AEE18F83AFDEB23"]',
        }
    ]


def test_everything_is_new_if_the_settings_of_the_base_cannot_be_read(repository: Repository) -> None:
    repository.rendered()
    repository.write({"kaigen.yaml": CONFIG + "tenants: 1\n"})
    repository.commit()
    repository.write({"kaigen.yaml": CONFIG + yaml.safe_dump({"annotations": {"a": "b"}})})
    assert "annotations.a is b instead of not set" in repository.kaigen("diff").out
