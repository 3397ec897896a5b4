"""A folder of specs reaches only the namespaces of its tenant, and what kaigen.yaml grants this tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.dialects.kaito import ragengine, tuning_script
from kaigen.pipeline.run import Run
from tests.tenancy.objects import ingress, pod
from tests.tenancy.rows.storage import GATED, restored_claim
from tests.tenancy.table import ALLOWED
from tests.tenancy.table import DENIED as DENIED_EVERYWHERE
from tests.tenancy.tenants import OTHER, TENANT, Body
from tests.unit.security.hostile import CONFIG, JOB, Repository

DENIED = {**DENIED_EVERYWHERE, **GATED}


def config(**changes: object) -> str:
    tenants: Body = {"tenants": {"a": {**TENANT, **changes}, "b": OTHER}}
    return CONFIG.replace("namespace: ml", "namespace: team-a") + "passthrough: true\n" + yaml.safe_dump(tenants)


@pytest.fixture
def team(repository: Repository) -> Repository:
    """A repository with two tenants and no spec."""
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"kaigen.yaml": config()})
    return repository


def file_name(case: str) -> str:
    return f"specs/a/{[*DENIED, *ALLOWED].index(case)}.yaml"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What kaigen reports of each file of denied objects."""
    root = tmp_path_factory.mktemp("tenants")
    (root / "specs/a").mkdir(parents=True)
    (root / "kaigen.yaml").write_text(config(), encoding="utf-8")
    for case, (body, _) in DENIED.items():
        (root / file_name(case)).write_text(yaml.safe_dump(body), encoding="utf-8")
    reports: dict[str, str] = {}
    for each in Run.load((), load_config(root)).diagnostics:
        if each.code == "KG0582" and each.mark is not None:
            path = Path(each.mark.file).relative_to(root).as_posix()
            reports[path] = reports.get(path, "") + each.message
    return reports


@pytest.mark.parametrize("case", DENIED)
def test_what_a_tenant_reaches_must_be_granted(found: dict[str, str], case: str) -> None:
    assert DENIED[case][1] in found[file_name(case)]


@pytest.mark.parametrize(("namespace", "granted"), [("team-a", True), ("team-b", False)])
def test_a_claim_has_data_of_its_own_namespace(team: Repository, namespace: str, granted: bool) -> None:
    team.write({"specs/a/claim.yaml": yaml.safe_dump(restored_claim(namespace))})
    assert ("the data of `team-b/x`" not in team.kaigen("validate").err) is granted


def test_what_is_granted_is_allowed(team: Repository) -> None:
    team.write({file_name(case): yaml.safe_dump(body) for case, body in ALLOWED.items()})
    done = team.kaigen("validate")
    assert "KG0582" not in done.err, done.text


def test_all_findings_of_a_spec_are_reported_at_its_lines(team: Repository) -> None:
    spec = JOB.replace("example.com", "example.org") + "  placement: {priorityClassName: gold}\n"
    team.write({"specs/a/evaluate.yaml": spec})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    for place, grant in (("5:10", "images"), ("8:34", "priorityClasses")):
        assert f"specs/a/evaluate.yaml:{place}: error[KG0582]" in done.err, done.text
        assert f"`tenants.a.{grant}`" in done.err, done.text


def test_namespaces_of_a_tenant_are_checked_in_every_folder(team: Repository) -> None:
    team.write({"specs/evaluate.yaml": JOB.replace("example.com", "example.org")})
    done = team.kaigen("validate")
    assert (done.code, "KG0582" in done.err) == (2, True), done.text
    team.write({"specs/evaluate.yaml": JOB.replace("evaluate}", "evaluate, namespace: free}")})
    assert "KG0582" not in team.kaigen("validate").err


def test_two_tenants_cannot_share_a_namespace_or_a_folder(team: Repository) -> None:
    team.write({"kaigen.yaml": config(namespaces=["team-b"], folders=["specs"])})
    done = team.kaigen("validate")
    assert (done.code, done.err.count("KG0742")) == (2, 2), done.text


@pytest.mark.parametrize("granted", [False, True])
def test_one_host_in_two_namespaces_is_reported(team: Repository, granted: bool) -> None:
    hosts = {"hosts": ["x.example.com"]} if granted else {"hosts": ["*"]}
    two = {"tenants": {"a": {**TENANT, **hosts}, "b": {**OTHER, **hosts}}}
    plain = CONFIG + "passthrough: true\n"
    team.write({"kaigen.yaml": plain + (yaml.safe_dump(two) if granted else "")})
    for place in ("team-a", "team-b"):
        body = ingress("x.example.com")
        body["metadata"] = {"name": "i", "namespace": place}
        team.write({f"specs/{place}.yaml": yaml.safe_dump(body)})
    done = team.kaigen("validate")
    assert ("KG0384" in done.err, done.code) == (not granted, 0), done.text


def test_a_host_that_an_annotation_names_is_compared_too(team: Repository) -> None:
    team.write({"kaigen.yaml": CONFIG + "passthrough: true\n"})
    key = "nginx.ingress.kubernetes.io/server-alias"
    for place, host, alias in (("team-a", "x.example.com", ""), ("team-b", "y.example.com", "x.example.com")):
        body = ingress(host)
        body["metadata"] = {"name": "i", "namespace": place, "annotations": {key: alias}}
        team.write({f"specs/{place}.yaml": yaml.safe_dump(body)})
    done = team.kaigen("validate")
    assert "the host `x.example.com` is also that of app" in done.err, done.text


ROUTE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  model: qwen
  resources: {gpuType: L4}
  route:
    host: x.a.example.com
    tls: {secret: {name: chat-tls}, clusterIssuer: public}
    ingress:
      className: CLASS
      annotations: {NOTES}
---
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source:
    huggingFace: {repo: Qwen/Qwen2.5-0.5B-Instruct, revision: 7ae557604adf67be50417f59c2c2f167def9a775}
  store:
    volume: {size: 5Gi, storageClassName: standard}
"""


@pytest.mark.parametrize("name", ["nginx", "alb", "azure-application-gateway", "gce"])
def test_annotations_that_kaigen_sets_need_no_grant(team: Repository, name: str) -> None:
    spec = ROUTE.replace("CLASS", name).replace("NOTES", "")
    team.write({"specs/a/chat.yaml": spec})
    done = team.kaigen("validate")
    assert done.code == 0, done.text


def test_an_annotation_of_a_controller_is_reported_at_its_line(team: Repository) -> None:
    notes = "nginx.ingress.kubernetes.io/server-alias: victim.b.example.com"
    team.write({"specs/a/chat.yaml": ROUTE.replace("CLASS", "nginx").replace("NOTES", notes)})
    done = team.kaigen("validate")
    assert done.code == 2, done.text
    assert "specs/a/chat.yaml:12:" in done.err, done.text
    assert "not granted the host `victim.b.example.com`" in done.err, done.text


SCALED = """\
  monitoring: {}
  autoscale:
    min: 1
    max: 2
    metric: waiting
    prometheus: {address: "ADDRESS"}
"""
BUCKET = """\
  store:
    bucket:
      uri: s3://shared/a
      mount: {driver: mountpoint-s3}
"""
BUILD = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  build:
    git: {url: https://git.example.com/a.git, commit: 7ae557604adf67be50417f59c2c2f167def9a775}
    repository: example.com/train
    cache: CACHE
  command: [train]
  resources: {cpu: 1, memory: 1Gi}
"""


def test_an_autoscaler_asks_only_servers_that_are_granted(team: Repository) -> None:
    spec = ROUTE.replace("  model: qwen\n", f"  model: qwen\n{SCALED}").replace("CLASS", "gce").replace("NOTES", "")
    team.write({"specs/a/chat.yaml": spec.replace("ADDRESS", "http://prometheus.team-b.svc:9090")})
    done = team.kaigen("validate")
    assert "specs/a/chat.yaml:11:27: error[KG0582]" in done.err, done.text
    team.write({"specs/a/chat.yaml": spec.replace("ADDRESS", "http://prometheus.monitoring:9090")})
    assert "KG0582" not in team.kaigen("validate").err


def test_a_build_uses_only_a_cache_in_registries_that_are_granted(team: Repository) -> None:
    team.write({"specs/a/train.yaml": BUILD.replace("CACHE", "registry.corp/team-b/cache")})
    done = team.kaigen("validate")
    assert "not granted the image `registry.corp/team-b/cache:buildcache`" in done.err, done.text
    team.write({"specs/a/train.yaml": BUILD.replace("CACHE", "example.com/cache")})
    assert "not granted the image" not in team.kaigen("validate").err


def test_a_bucket_of_the_tenant_is_a_volume_of_its_namespace(team: Repository) -> None:
    volume = "  store:\n    volume: {size: 5Gi, storageClassName: standard}\n"
    spec = ROUTE.replace(volume, BUCKET).replace("CLASS", "gce").replace("NOTES", "")
    team.write({"specs/a/chat.yaml": spec})
    done = team.kaigen("validate")
    assert done.code == 0, done.text


def test_a_role_of_a_cloud_needs_a_grant(team: Repository) -> None:
    account = "  serviceAccount: {create: {annotations: {eks.amazonaws.com/role-arn: ROLE}}}\n"
    role = "arn:aws:iam::111122223333:role/"
    team.write({"specs/a/x.yaml": JOB + account.replace("ROLE", f"'{role}b-reader'")})
    done = team.kaigen("validate")
    assert "specs/a/x.yaml:8:71: error[KG0582]" in done.err, done.text
    team.write({"specs/a/x.yaml": JOB + account.replace("ROLE", f"'{role}a-reader'")})
    assert "KG0582" not in team.kaigen("validate").err


def test_labels_and_annotations_of_kaigen_yaml_need_no_grant(team: Repository) -> None:
    common = "labels: {istio.io/rev: stable}\nannotations: {sidecar.istio.io/proxyCPU: '1'}\n"
    team.write({"kaigen.yaml": config() + common, "specs/a/x.yaml": JOB})
    assert "KG0582" not in team.kaigen("validate").err
    job = JOB.replace("{name: evaluate}", "{name: evaluate, annotations: {sidecar.istio.io/proxyCPU: '9'}}")
    team.write({"specs/a/x.yaml": job})
    assert "KG0582" in team.kaigen("validate").err


def test_gpus_of_all_apps_of_a_tenant_are_counted(team: Repository) -> None:
    team.write({"kaigen.yaml": config(gpus=3)})
    for name in ("x", "y"):
        spec = JOB.replace("evaluate}", f"{name}}}").replace("cpu: 1", "cpu: 1, gpus: 2, gpuType: L4")
        team.write({f"specs/a/{name}.yaml": spec})
    done = team.kaigen("validate")
    assert (done.code, "request 4 GPUs, and it has 3" in done.err) == (2, True), done.text
    team.write({"kaigen.yaml": config(gpus=4)})
    assert team.kaigen("validate").code == 0


GPU_LIMIT = "cannot limit them"


def with_gpus(kind: str, resource: str = "nvidia.com/gpu", count: int = 2, **spec: object) -> Body:
    """Return a workload with one pod template, whose container requests GPUs."""
    container = {"name": "x", "image": "example.com/x:1", "resources": {"limits": {resource: count}}}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {**pod()["spec"], "containers": [container]}}
    container["securityContext"] = pod()["spec"]["containers"][0]["securityContext"]
    made = {"selector": {"matchLabels": {"app": "x"}}, "template": template, **spec}
    if kind == "Deployment":
        made.setdefault("strategy", {"type": "Recreate"})
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x"}, "spec": made}


def scaler(kind: str, api: str, annotations: Body | None = None, **spec: object) -> Body:
    """Return an autoscaler of that workload."""
    target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}
    metadata = {"name": "x", "annotations": annotations or {}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {**target, **spec}}


@pytest.mark.parametrize(
    "resource",
    [
        "nvidia.com/gpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-1g.10gb",
        "nvidia.com/mig-1g.10gb.shared",
        "amd.com/gpu",
        "amd.com/cpx_nps4",
        "gpu.intel.com/i915",
        "gpu.intel.com/xe",
        "habana.ai/gaudi",
        "google.com/tpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "huawei.com/Ascend910B",
        "cambricon.com/mlu370",
    ],
)
def test_accelerators_of_every_vendor_count_as_gpus(team: Repository, resource: str) -> None:
    team.write({"kaigen.yaml": config(gpus=4)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(with_gpus("Deployment", resource, 8))})
    done = team.kaigen("validate")
    assert (done.code, "request 8 GPUs, and it has 4" in done.err) == (2, True), done.text


@pytest.mark.parametrize(
    "resource", ["nvidia.com/gpumem", "nvidia.com/gpucores", "volcano.sh/vgpu-memory", "huawei.com/Ascend910B-memory"]
)
def test_a_share_counts_as_one_gpu(team: Repository, resource: str) -> None:
    team.write({"kaigen.yaml": config(gpus=0)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(with_gpus("Deployment", resource, 8))})
    assert "request 1 GPUs, and it has 0" in team.kaigen("validate").err


@pytest.mark.parametrize("resource", ["cpu", "rdma/hca", "example.com/gpumem"])
def test_other_resources_do_not_count_as_gpus(team: Repository, resource: str) -> None:
    team.write({"kaigen.yaml": config(gpus=0)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(with_gpus("Deployment", resource, 8))})
    assert "KG0385" not in team.kaigen("validate").err


def test_gpus_of_the_repositorys_own_catalogue_count(team: Repository) -> None:
    row = "{name: X1, vendor: nvidia, memoryGiB: 24, usableGiB: 22, resource: example.com/x1, labels: {}}"
    head = "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\n"
    team.write({"catalog/gpus.yaml": f"{head}gpus: [{row}]\n"})
    team.write({"kaigen.yaml": config(gpus=1)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(with_gpus("Deployment", "example.com/x1"))})
    done = team.kaigen("validate")
    assert "request 2 GPUs, and it has 1" in done.err, done.text


def test_gpus_of_a_whole_pod_count(team: Repository) -> None:
    body = with_gpus("Deployment", "cpu", 1)
    body["spec"]["template"]["spec"]["resources"] = {"limits": {"nvidia.com/gpu": 3}}
    team.write({"kaigen.yaml": config(gpus=2), "specs/a/x.yaml": yaml.safe_dump(body)})
    done = team.kaigen("validate")
    assert "request 3 GPUs, and it has 2" in done.err, done.text


@pytest.mark.parametrize(
    ("body", "most"),
    [
        (scaler("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=5), 10),
        (scaler("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=1), 4),
        (scaler("ScaledObject", "keda.sh/v1alpha1", maxReplicaCount=6, triggers=[]), 12),
        (scaler("ScaledObject", "keda.sh/v1alpha1", triggers=[]), 200),
        (
            scaler(
                "ScaledObject",
                "keda.sh/v1alpha1",
                {"autoscaling.keda.sh/paused-replicas": "30"},
                maxReplicaCount=6,
                triggers=[],
            ),
            60,
        ),
    ],
)
def test_an_autoscaler_in_another_file_counts_at_its_maximum(team: Repository, body: Body, most: int) -> None:
    team.write({"kaigen.yaml": config(gpus=3), "specs/a/scaler.yaml": yaml.safe_dump(body)})
    team.write({"specs/a/x.yaml": yaml.safe_dump(with_gpus("Deployment", replicas=2))})
    for _ in range(2):  # The second run reads what the first one stored.
        done = team.kaigen("validate")
        assert f"request {most} GPUs, and it has 3" in done.err, done.text
    other = {**body, "metadata": {**body["metadata"], "namespace": "team-b"}}
    team.write({"specs/a/scaler.yaml": "", "specs/b/scaler.yaml": yaml.safe_dump(other)})
    done = team.kaigen("validate")
    assert "request 4 GPUs, and it has 3" in done.err, done.text


@pytest.mark.parametrize(
    ("strategy", "most"),
    [
        ({}, 14),
        ({"rollingUpdate": {"maxSurge": 2}}, 14),
        ({"rollingUpdate": {"maxSurge": "100%"}}, 20),
        ({"rollingUpdate": {"maxSurge": 0}}, 10),
        ({"type": "Recreate"}, 10),
    ],
)
def test_the_replicas_that_a_rollout_adds_count(team: Repository, strategy: Body, most: int) -> None:
    deployment = yaml.safe_dump(with_gpus("Deployment", replicas=5, strategy=strategy))
    team.write({"kaigen.yaml": config(gpus=3), "specs/a/x.yaml": deployment})
    assert f"request {most} GPUs, and it has 3" in team.kaigen("validate").err
    body = scaler("HorizontalPodAutoscaler", "autoscaling/v2", maxReplicas=5)
    team.write({"specs/a/x.yaml": deployment.replace("replicas: 5", "replicas: 1")})
    team.write({"specs/a/scaler.yaml": yaml.safe_dump(body)})
    for _ in range(2):  # The second run reads what the first one stored.
        done = team.kaigen("validate")
        assert f"request {most} GPUs, and it has 3" in done.err, done.text


CRON = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": with_gpus("Job")["spec"]["template"]}}}
RAY: Body = {
    "headGroupSpec": {"template": {"spec": pod()["spec"]}},
    "workerGroupSpecs": [{"groupName": "w", "template": with_gpus("Deployment")["spec"]["template"]}],
}


@pytest.mark.parametrize(
    ("body", "limited"),
    [
        (with_gpus("DaemonSet"), False),
        (with_gpus("DaemonSet", "cpu"), True),
        ({"apiVersion": "batch/v1", "kind": "CronJob", "spec": CRON}, False),
        ({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {**CRON, "concurrencyPolicy": "Forbid"}}, True),
        ({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": {**RAY, "enableInTreeAutoscaling": True}}, False),
        ({"apiVersion": "ray.io/v1", "kind": "RayCluster", "spec": RAY}, True),
    ],
)
def test_an_object_with_gpus_and_any_number_of_pods_is_refused(team: Repository, body: Body, limited: bool) -> None:
    file = {"specs/a/x.yaml": yaml.safe_dump({**body, "metadata": {"name": "x"}})}
    team.write({"kaigen.yaml": config(gpus=8), **file})
    done = team.kaigen("validate")
    assert (GPU_LIMIT in done.err) is not limited, done.text
    team.write({"kaigen.yaml": config()})
    assert "KG0385" not in team.kaigen("validate").err


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"hosts": ["*.a.example.com", "*"]}, "hosts * as tenant a"),
        ({"gpus": 8}, "8 GPUs as tenant a"),
        ({"namespaces": ["team-a", "c"]}, "namespaces c as tenant a"),
        ({"folders": ["specs/c"]}, "everything in folder specs/a"),
        ({"annotations": [*TENANT["annotations"], "*"]}, "annotations * as tenant a"),
        ({"podSecurity": "baseline"}, "Pod Security baseline as tenant a"),
        ({"nodes": ["*"]}, "nodes * as tenant a"),
        ({"images": []}, ""),
    ],
)
def test_diff_shows_wider_grants_as_dangers(team: Repository, change: dict[str, Any], what: str) -> None:
    team.write({"kaigen.yaml": config(gpus=4), "specs/b/x.yaml": JOB.replace("e}", "e, namespace: team-b}")})
    assert team.kaigen("render").code == 0
    team.commit()
    team.write({"kaigen.yaml": config(**{"gpus": 4, **change})})
    done = team.kaigen("diff", "--base", "HEAD")
    assert what in done.out, done.text
    assert ("danger" in done.out) is bool(what), done.text


def test_diff_shows_the_pod_security_of_a_new_tenant_as_a_danger(team: Repository) -> None:
    team.write({"kaigen.yaml": CONFIG})
    team.commit()
    team.write({"kaigen.yaml": config(podSecurity="privileged"), "specs/a/x.yaml": JOB})
    done = team.kaigen("diff", "--base", "HEAD")
    assert "Pod Security privileged as tenant a" in " ".join(done.out.split()), done.text


@pytest.mark.parametrize(
    ("level", "security"),
    [
        ("privileged", "{podSecurity: privileged, runAsUser: 0, capabilities: [SYS_ADMIN]}"),
        ("baseline", "{podSecurity: baseline, runAsUser: 0}"),
        ("baseline", "{podSecurity: baseline, runAsUser: 1000}"),
    ],
)
def test_a_looser_pod_security_level_than_granted_is_refused_where_it_is_set(
    team: Repository, level: str, security: str
) -> None:
    team.write({"specs/a/x.yaml": f"{JOB}  security: {security}\n"})
    done = team.kaigen("validate")
    assert (done.code, done.err.count("KG0582")) == (2, 1), done.text
    assert "specs/a/x.yaml:8:27: error[KG0582]" in done.err
    assert f"`tenants.a.podSecurity: {level}`" in done.err
    team.write({"kaigen.yaml": config(podSecurity=level)})
    assert team.kaigen("validate").code == 0


@pytest.mark.parametrize("kind", ["Model", "Notebook", "Topology"])
def test_every_kind_with_pods_is_limited_to_the_level_of_its_tenant(team: Repository, kind: str) -> None:
    body = {
        "Model": f"  source: {{huggingFace: {{repo: owner/name, revision: {'a' * 40}}}}}\n"
        "  store: {volume: {size: 1Gi}}\n",
        "Notebook": "  image: example.com/notebook:1.0\n",
        "Topology": "  engine: container\n  image: example.com/serve:1.0\n",
    }[kind]
    head = f"apiVersion: kaigen.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\nspec:\n"
    team.write({"specs/a/x.yaml": f"{head}{body}  security: {{podSecurity: baseline}}\n"})
    done = team.kaigen("validate")
    assert "its spec needs Pod Security `baseline`" in done.err, done.text


IMAGE_BUILD = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: built}
spec:
  build: {repository: example.com/built, git: {url: https://git.example.com/x.git, commit: %s}}
  resources: {cpu: 1, memory: 1Gi}
""" % ("a" * 40)


def test_a_tenant_that_builds_images_needs_the_level_of_builds(team: Repository) -> None:
    team.write({"specs/a/x.yaml": IMAGE_BUILD})
    done = team.kaigen("validate")
    assert (done.code, done.err.count("KG0582")) == (2, 1), done.text
    assert "specs/a/x.yaml:5:10: error[KG0582]" in done.err
    assert "set `tenants.a.podSecurity: privileged` in kaigen.yaml" in done.err
    team.write({"kaigen.yaml": config(podSecurity="privileged")})
    assert team.kaigen("validate").code == 0


def test_privileged_containers_are_denied_at_every_level(team: Repository) -> None:
    team.write({"kaigen.yaml": config(podSecurity="privileged", nodes=["*"])})
    cases = ("privileged", "host network", "host path", "Git as a volume")
    team.write({file_name(case): yaml.safe_dump(DENIED[case][0]) for case in cases})
    done = team.kaigen("validate")
    for case in cases:
        assert DENIED[case][1] in done.err, done.text


def test_placement_on_a_node_or_the_control_plane_must_be_granted(team: Repository) -> None:
    placement = (
        "  placement:\n"
        "    nodeSelector: {pool: gpu, kubernetes.io/hostname: gpu-1}\n"
        "    tolerations:\n"
        "    - {key: node-role.kubernetes.io/control-plane, operator: Exists}\n"
        "    - {key: gpu, operator: Exists}\n"
    )
    team.write({"specs/a/x.yaml": JOB + placement})
    done = team.kaigen("validate")
    assert (done.code, done.err.count("KG0582")) == (2, 2), done.text
    for place in ("9:55", "11:7"):
        assert f"specs/a/x.yaml:{place}: error[KG0582]" in done.err, done.text
    grants = ["kubernetes.io/hostname", "node-role.kubernetes.io/control-plane"]
    team.write({"kaigen.yaml": config(nodes=grants)})
    assert team.kaigen("validate").code == 0


FORBIDDEN = JOB.replace("example.com", "example.org")


@pytest.mark.parametrize("folder", ["specs//a", "specs/./a", "./specs/a/", "."])
def test_any_spelling_of_a_folder_has_the_rules_of_its_tenant(team: Repository, folder: str) -> None:
    tenants = {"tenants": {"a": {**TENANT, "folders": [folder]}}}
    team.write({"kaigen.yaml": f"{CONFIG}{yaml.safe_dump(tenants)}", "specs/a/x.yaml": FORBIDDEN})
    done = team.kaigen("validate")
    assert (done.code, "KG0582" in done.err) == (2, True), done.text


@pytest.mark.parametrize("folder", ["specs/a*", "specs/?", "specs/[a]"])
def test_a_folder_with_a_wildcard_is_refused(team: Repository, folder: str) -> None:
    team.write({"kaigen.yaml": config(folders=[folder]), "specs/a/x.yaml": FORBIDDEN})
    done = team.kaigen("validate")
    assert (done.code, "KG0743" in done.err) == (2, True), done.text


def test_a_folder_without_files_is_a_warning(team: Repository) -> None:
    team.write({"kaigen.yaml": config(folders=["specs/a", "specs/aa"]), "specs/a/x.yaml": JOB})
    team.write({"specs/b/x.yaml": JOB.replace("e}", "e, namespace: team-b}")})
    done = team.kaigen("validate")
    assert (done.code, done.err.count("KG0743")) == (0, 1), done.text
    assert "`specs/aa`" in done.err


def test_diff_shows_a_new_spec_in_no_folder_of_a_tenant_as_a_danger(team: Repository) -> None:
    team.write({"specs/b/x.yaml": JOB.replace("e}", "e, namespace: team-b}")})
    team.write({"specs/c/old.yaml": JOB.replace("e}", "e, namespace: old}")})
    assert team.kaigen("render").code == 0
    team.commit()
    team.write({"specs/c/new.yaml": JOB.replace("e}", "e, namespace: new}")})
    done = team.kaigen("diff", "--base", "HEAD")
    assert "specs/c/new.yaml, a new file in no tenant's folder" in " ".join(done.out.split()), done.text
    assert "specs/c/old.yaml" not in done.out
    team.commit()
    assert "danger" not in team.kaigen("diff", "--base", "HEAD").out


POSTGRESQL: Body = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "x"},
    "spec": {
        "scaleTargetRef": {"name": "x"},
        "triggers": [
            {
                "type": "postgresql",
                "metadata": {"host": "db.team-a.svc", "port": "5432", "userName": "x", "dbName": "x", "query": "x"},
            }
        ],
    },
}


def test_the_trigger_postgresql_needs_a_grant(team: Repository) -> None:
    team.write({"kaigen.yaml": config(triggers=[]), "specs/a/x.yaml": yaml.safe_dump(POSTGRESQL)})
    assert "a trigger of type `postgresql`" in team.kaigen("validate").err
    team.write({"kaigen.yaml": config(triggers=["postgresql"])})
    assert "KG0582" not in team.kaigen("validate").err


@pytest.mark.parametrize(
    ("server", "name"),
    [
        ("http://prometheus.monitoring-of-all:9090", "prometheus"),
        ("loki:3100", "loki"),
        ("p.team-b.svc/x", "p"),
        ("10.0.0.1:80", "prom"),
        ("", "prom"),
        ("https://user:pw@x", "user"),
    ],
)
def test_the_hint_names_a_server_in_the_namespace_of_the_tenant(team: Repository, server: str, name: str) -> None:
    trigger = {"type": "prometheus", "metadata": {"serverAddress": server, "query": "x", "threshold": "1"}}
    body = {**POSTGRESQL, "spec": {"scaleTargetRef": {"name": "x"}, "triggers": [trigger]}}
    team.write({"specs/a/x.yaml": yaml.safe_dump(body)})
    done = team.kaigen("validate")
    assert (done.code, f"such as `{name}.team-a.svc`" in " ".join(done.err.split())) == (2, True), done.text


def test_the_docs_name_the_images_that_kaito_needs() -> None:
    text = (Path(__file__).parents[3] / "docs/tenants.md").read_text(encoding="utf-8")
    for image in (ragengine.IMAGE, tuning_script.IMAGE, tuning_script.PUSHER):
        assert f"`{image.rpartition(':')[0]}:*`" in text
