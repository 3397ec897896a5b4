"""A folder of specs reaches only the namespaces of its tenant, and what kaigen.yaml grants this tenant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.pipeline.run import start_run
from tests.tenants import ALLOWED, DENIED, OTHER, TENANT, ingress, restored_claim
from tests.unit.security.hostile import CONFIG, JOB, Repository


def config(**changes: object) -> str:
    tenants = {"tenants": {"a": {**TENANT, **changes}, "b": OTHER}}
    return (
        CONFIG.replace("namespace: ml", "namespace: team-a") + "passthrough: true\n" + yaml.safe_dump(tenants)
    )


@pytest.fixture
def team(repository: Repository) -> Repository:
    """A repository with two tenants and no spec."""
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"kaigen.yaml": config()})
    return repository


def file_name(case: str) -> str:
    return "specs/a/" + case.lower().replace(" ", "-").replace(":", "") + ".yaml"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What kaigen reports of each file of denied objects."""
    root = tmp_path_factory.mktemp("tenants")
    (root / "specs/a").mkdir(parents=True)
    (root / "kaigen.yaml").write_text(config(), encoding="utf-8")
    for case, (body, _) in DENIED.items():
        (root / file_name(case)).write_text(yaml.safe_dump(body), encoding="utf-8")
    reports: dict[str, str] = {}
    for each in start_run((), load_config(root)).diagnostics:
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
    tls: {secretName: chat-tls, clusterIssuer: public}
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
    spec = (
        ROUTE.replace("  model: qwen\n", f"  model: qwen\n{SCALED}")
        .replace("CLASS", "gce")
        .replace("NOTES", "")
    )
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


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"hosts": ["*.a.example.com", "*"]}, "hosts * as tenant a"),
        ({"gpus": 8}, "8 GPUs as tenant a"),
        ({"namespaces": ["team-a", "c"]}, "namespaces c as tenant a"),
        ({"folders": ["specs/c"]}, "everything in folder specs/a"),
        ({"annotations": [*TENANT["annotations"], "*"]}, "annotations * as tenant a"),
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
