"""The kind Notebook: one pod, a volume that stays, weights behind their gates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.pipeline.run import render
from kaigen.pipeline.validate import validate
from tests import plain_yaml

HEAD = "apiVersion: kaigen.dev/v1alpha1\nkind: Notebook\nmetadata: {name: lab}\n"
MODEL = """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {name: qwen}
spec:
  source: {huggingFace: {repo: acme/qwen, revision: 16d0fe4d4a8824a9ca0fdb6d28a9b6ca2a6ad5cd}}
  store: {volume: {size: 20Gi}}
"""


DATASET = """\
---
apiVersion: kaigen.dev/v1alpha1
kind: Dataset
metadata: {name: talks}
spec:
  source: {huggingFace: {repo: acme/talks, revision: 16d0fe4d4a8824a9ca0fdb6d28a9b6ca2a6ad5cd}}
  store: {volume: {size: 20Gi}}
"""


def objects(root: Path, spec: str, more: str = "") -> dict[str, dict[str, Any]]:
    """Return the objects of the notebook `lab` by kind."""
    (root / "specs.yaml").write_text(f"{HEAD}{spec}{more}", encoding="utf-8")
    files = render([str(root / "specs.yaml")], Config(root=root))
    texts = [bytes(data).decode() for path, data in files.items() if "/lab/" in path]
    bodies = [body for text in texts for body in plain_yaml.load_all(text)]
    return {body["kind"]: body for body in bodies if body["kind"] != "Kustomization"}


def problems(root: Path, spec: str, more: str = "") -> list[str]:
    (root / "specs.yaml").write_text(f"{HEAD}{spec}{more}", encoding="utf-8")
    found, _ = validate([str(root / "specs.yaml")], Config(root=root), use_cache=False)
    return [f"{item.code} {item.mark.line if item.mark else 0} {item.message}" for item in found]


def test_a_notebook_without_a_spec_is_one_hardened_pod_with_a_token(tmp_path: Path) -> None:
    found = objects(tmp_path, "")
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert found["StatefulSet"]["spec"]["replicas"] == 1
    assert container["image"].startswith("ghcr.io/kaigen-dev/notebook:")
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    (token,) = [each["secret"] for each in pod["volumes"] if "secret" in each]
    assert token == {"secretName": "lab-token", "items": [{"key": "token", "path": "token"}]}
    assert {"name": "JUPYTER_TOKEN_FILE", "value": "/etc/kaigen-token/token"} in container["env"]


def test_suspending_changes_only_the_number_of_pods(tmp_path: Path) -> None:
    running, suspended = objects(tmp_path, ""), objects(tmp_path, "spec: {suspend: true}")
    assert suspended["StatefulSet"]["spec"].pop("replicas") == 0
    assert running["StatefulSet"]["spec"].pop("replicas") == 1
    assert suspended == running


def test_no_pod_may_connect_unless_the_spec_allows_it(tmp_path: Path) -> None:
    assert "ingress" not in objects(tmp_path, "")["NetworkPolicy"]["spec"]
    peer = "{podSelector: {matchLabels: {app: hub}}}"
    (rule,) = objects(tmp_path, f"spec: {{service: {{allowFrom: [{peer}]}}}}")["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {
        "ports": [{"port": 8888, "protocol": "TCP"}],
        "from": [{"podSelector": {"matchLabels": {"app": "hub"}}}],
    }


ROUTE = "spec:\n  route:\n    host: lab.example.com\n    gateway: {name: public}\n    oidc: "
OIDC = "{issuer: https://login.example.com, clientId: lab"


def test_a_route_leads_to_a_proxy_and_not_to_jupyter(tmp_path: Path) -> None:
    found = objects(tmp_path, f"{ROUTE}{OIDC}, allowedGroups: [a, b]}}\n")
    notebook, proxy = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    (rule,) = found["NetworkPolicy"]["spec"]["ingress"]
    assert rule == {"ports": [{"port": 4180, "protocol": "TCP"}]}
    assert [each["targetPort"] for each in found["Service"]["spec"]["ports"]] == ["proxy"]
    assert proxy["ports"] == [{"name": "proxy", "containerPort": 4180, "protocol": "TCP"}]
    assert {"--allowed-group=a", "--allowed-group=b", "--email-domain=*"} <= set(proxy["args"])
    assert "--redirect-url=https://lab.example.com/oauth2/callback" in proxy["args"]
    assert proxy["securityContext"]["readOnlyRootFilesystem"] is True
    secrets = [each["mountPath"] for each in notebook["volumeMounts"]]
    assert not any("oauth2" in path for path in secrets), "a cell must not read the secret of the client"
    (backend,) = found["HTTPRoute"]["spec"]["rules"][0]["backendRefs"]
    assert (backend["kind"], backend["name"], backend["port"]) == ("Service", "lab", 8888)


def test_an_address_or_a_domain_replaces_any_address(tmp_path: Path) -> None:
    found = objects(tmp_path, f"{ROUTE}{OIDC}, allowedEmails: [ada@example.com], allowedDomains: [b.example]}}\n")
    _, proxy = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    limits = [each for each in proxy["args"] if "email" in each]
    assert limits == ["--email-domain=b.example", "--authenticated-emails-file=/etc/oauth2-proxy/emails/emails"]
    assert found["ConfigMap"]["data"] == {"emails": "ada@example.com\n"}


def test_the_proxy_is_not_root_where_the_notebook_is(tmp_path: Path) -> None:
    spec = f"{ROUTE}{OIDC}, allowedGroups: [a]}}\n  security: {{podSecurity: baseline, runAsUser: 0}}\n"
    _, proxy = objects(tmp_path, spec)["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    assert (proxy["securityContext"]["runAsUser"], proxy["securityContext"]["runAsNonRoot"]) == (65532, True)


def test_models_and_datasets_are_mounted_read_only_after_their_gates(tmp_path: Path) -> None:
    found = objects(tmp_path, "spec: {models: [qwen], datasets: [talks]}\n", MODEL + DATASET)
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    mounts = {each["name"]: each for each in pod["containers"][0]["volumeMounts"]}
    for gate, volume, folder in zip(
        pod["initContainers"], ("model-qwen", "dataset-talks"), ("/models/qwen", "/datasets/talks"), strict=True
    ):
        mount = mounts[volume]
        assert (mount["readOnly"], mount["mountPath"]) == (True, folder)
        assert gate["args"][1] == f"--dest={folder}/{mount['subPath']}"


def test_the_volume_outlives_the_spec_unless_it_says_no(tmp_path: Path) -> None:
    keep = "kustomize.toolkit.fluxcd.io/prune"
    assert keep in objects(tmp_path, "")["PersistentVolumeClaim"]["metadata"]["annotations"]
    given = objects(tmp_path, "spec: {storage: {retain: false}}")["PersistentVolumeClaim"]
    assert keep not in given["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("spec: {models: [qwe]}\n", "KG0301 4 unknown Model `qwe` in namespace `default`"),
        ("spec: {datasets: [qwen]}\n", "KG0301 4 unknown Dataset `qwen` in namespace `default`"),
        ("spec: {models: [qwen, qwen]}\n", "KG0314 4 `models` names `qwen` twice"),
        (
            "spec:\n  models:\n    - {name: qwen, mountPath: /home/notebook}\n",
            "KG0314 6 two volumes are mounted at `/home/notebook`: home and model-qwen",
        ),
        ("spec: {storage: {mountPath: /tmp}}\n", "KG0314 4 two volumes are mounted at `/tmp`: home and scratch"),
        (f"{ROUTE}{OIDC}}}\n", "KG0352 8 every user of https://login.example.com may run code in the notebook"),
        (
            f"{ROUTE}{OIDC}, allowedGroups: [a]}}\n    tls: {{secret: {{name: lab-tls}}}}\n",
            "KG0340 9 `tls` has no effect on the Gateway `public`",
        ),
        ("spec: {env: {JUPYTER_TOKEN_FILE: /x}}\n", "KG0313 4 `JUPYTER_TOKEN_FILE` is set by kaigen for a Notebook"),
    ],
)
def test_contradictions_are_reported_at_their_line(tmp_path: Path, spec: str, problem: str) -> None:
    assert problem in problems(tmp_path, spec, MODEL)


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ("spec: {resources: {gpus: 1}}\n", True),
        ("spec: {resources: {gpuType: L4}}\n", True),
        ("spec: {}\n", False),
        ("spec: {resources: {gpus: 1}, image: registry.example.com/torch:1}\n", False),
    ],
)
def test_a_gpu_without_pytorch_in_the_image_is_a_warning(tmp_path: Path, spec: str, warned: bool) -> None:
    found = [each.partition(" ")[0] for each in problems(tmp_path, spec)]
    assert found == (["KG0334"] if warned else [])


def test_an_image_of_kaigen_yaml_may_have_pytorch(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/lab.yaml").write_text(f"{HEAD}spec: {{resources: {{gpus: 1}}}}\n", encoding="utf-8")
    for image, warned in (("", True), ("registry.example.com/notebook:torch", False)):
        text = f"images: {{notebook: '{image}'}}\n" if image else "namespace: ml\n"
        (tmp_path / "kaigen.yaml").write_text(text, encoding="utf-8")
        found, _ = validate((), load_config(tmp_path), use_cache=False)
        assert ("KG0334" in {item.code for item in found}) is warned


HOURS = "{start: 0 8 * * MON-FRI, end: 0 19 * * MON-FRI, timeZone: Europe/Berlin}"


def test_an_idle_notebook_is_stopped_by_a_container_that_may_do_nothing_else(tmp_path: Path) -> None:
    found = objects(tmp_path, "spec: {idle: {after: 2h}}")
    assert "replicas" not in found["StatefulSet"]["spec"]
    assert found["StatefulSet"]["metadata"]["annotations"]["kaigen.dev/scaled-by"] == "idle"
    rules = [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in found["Role"]["rules"]]
    assert rules == [(["statefulsets/scale"], ["lab"], ["patch"]), (["configmaps"], ["lab-state"], ["patch"])]
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == found["RoleBinding"]["subjects"][0]["name"]
    notebook, idle = pod["containers"]
    assert idle["args"] == [
        "idle",
        "--name=lab",
        "--state=lab-state",
        "--after=7200s",
        "--port=8888",
        "--token-file=/etc/kaigen-token/token",
    ]
    mounts = [{mount["name"] for mount in container["volumeMounts"]} for container in (notebook, idle)]
    assert ["gate-token" in each for each in mounts] == [False, True]
    assert mounts[1] == {"gate-token", "notebook-token"}


def test_a_notebook_that_is_suspended_in_git_stays_so(tmp_path: Path) -> None:
    found = objects(tmp_path, f"spec: {{suspend: true, idle: {{after: 2h}}, hours: [{HOURS}]}}")
    assert found["StatefulSet"]["spec"]["replicas"] == 0
    assert "kaigen.dev/scaled-by" not in found["StatefulSet"]["metadata"].get("annotations", {})
    assert found["CronJob"]["spec"]["suspend"] is True


TARGET = ("--name=lab", "--state=lab-state")


def cron_jobs(root: Path, spec: str) -> dict[str, Any]:
    """Return time, zone and replicas of each CronJob of the notebook."""
    (root / "specs.yaml").write_text(f"{HEAD}{spec}", encoding="utf-8")
    files = render([str(root / "specs.yaml")], Config(root=root))
    found = {}
    for path, data in files.items():
        for body in plain_yaml.load_all(bytes(data).decode()) if path.rpartition("/")[2].startswith("cronjob") else []:
            (container,) = body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
            spec_ = body["spec"]
            found[body["metadata"]["name"]] = (spec_["schedule"], spec_["timeZone"], container["args"])
    return found


def test_hours_are_two_cron_jobs_each(tmp_path: Path) -> None:
    more = "{start: 0 9 * * SAT, end: 0 12 * * SAT}"
    assert cron_jobs(tmp_path, f"spec: {{hours: [{HOURS}, {more}]}}") == {
        "lab-start": ("0 8 * * MON-FRI", "Europe/Berlin", ["scale", *TARGET, "--replicas=1"]),
        "lab-stop": ("0 19 * * MON-FRI", "Europe/Berlin", ["scale", *TARGET, "--replicas=0"]),
        "lab-start-2": ("0 9 * * SAT", "Etc/UTC", ["scale", *TARGET, "--replicas=1"]),
        "lab-stop-2": ("0 12 * * SAT", "Etc/UTC", ["scale", *TARGET, "--replicas=0"]),
    }
    found = objects(tmp_path, f"spec: {{hours: [{HOURS}]}}")
    assert "replicas" not in found["StatefulSet"]["spec"]
    assert found["StatefulSet"]["metadata"]["annotations"]["kaigen.dev/scaled-by"] == "hours"
    assert len(found["StatefulSet"]["spec"]["template"]["spec"]["containers"]) == 1


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ("{start: 0 8 * * *, end: 0 8 * * *}", "KG0450 4 `start` and `end` are the same time"),
        (
            "{start: 0 8 * * MON-FRI, end: 0 19 * * MON-FRI}, {start: 0 18 * * FRI, end: 0 22 * * FRI}",
            "KG0450 4 from `0 18 * * FRI` to `0 22 * * FRI` overlaps `0 8 * * MON-FRI` to `0 19 * * MON-FRI`",
        ),
        (
            "{start: 0 8 * * *, end: 0 9 * * *, timeZone: Europe/Berln}",
            "KG0507 4 CronJob: unknown time zone `Europe/Berln`",
        ),
    ],
)
def test_hours_that_contradict_each_other_are_reported(tmp_path: Path, hours: str, expected: str) -> None:
    assert expected in problems(tmp_path, f"spec: {{hours: [{hours}]}}")


@pytest.mark.parametrize(
    "hours",
    [
        "{start: 0 8 * * *, end: 0 12 * * *}, {start: 0 12 * * *, end: 0 18 * * *}",
        "{start: 0 8 * * MON, end: 0 12 * * MON}, {start: 0 8 * * TUE, end: 0 12 * * TUE}",
        "{start: 0 8 1 * *, end: 0 12 1 * *}, {start: 0 8 1 * *, end: 0 12 1 * *}",
    ],
)
def test_hours_next_to_each_other_are_fine(tmp_path: Path, hours: str) -> None:
    assert problems(tmp_path, f"spec: {{hours: [{hours}]}}") == []


def test_scratch_space_has_a_limit_that_the_spec_may_change(tmp_path: Path) -> None:
    def limit(spec: str) -> str:
        volumes = objects(tmp_path, spec)["StatefulSet"]["spec"]["template"]["spec"]["volumes"]
        return str(next(each["emptyDir"]["sizeLimit"] for each in volumes if each["name"] == "scratch"))

    assert limit("") == "10Gi"
    assert limit("spec: {resources: {ephemeralStorage: 40Gi}}") == "40Gi"


@pytest.mark.parametrize(
    ("spec", "left"), [("idle: {after: 2h}", True), (f"hours: [{HOURS}]", True), ("suspend: true", False)]
)
def test_a_syncer_leaves_replicas_that_the_cluster_sets(tmp_path: Path, spec: str, left: bool) -> None:
    settings = (
        "namespace: ml\nformat: chart\ngitops: {repository: https://git.example.com/a.git, argocd: {}, flux: {}}\n"
    )
    (tmp_path / "kaigen.yaml").write_text(settings, encoding="utf-8")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "lab.yaml").write_text(f"{HEAD}spec:\n  {spec}\n", encoding="utf-8")
    texts = [bytes(data).decode() for path, data in render([], load_config(tmp_path)).items() if path.startswith("_")]
    bodies = [body for text in texts if text[:1] in "#-" for body in plain_yaml.load_all(text) if body]
    (application,) = [each for each in bodies if each["kind"] == "Application" and each["metadata"]["name"] == "ml.lab"]
    (release,) = [each for each in bodies if each["kind"] == "HelmRelease"]
    ignored = application["spec"].get("ignoreDifferences", [])
    assert [(each["kind"], each["jsonPointers"]) for each in ignored] == [("StatefulSet", ["/spec/replicas"])] * left
    assert [each["paths"] for each in release["spec"]["driftDetection"].get("ignore", [])] == [
        ["/spec/replicas"]
    ] * left


def test_hours_do_not_rename_a_notebook(tmp_path: Path) -> None:
    more = "{start: 0 9 * * SAT, end: 0 12 * * SAT}"

    def codes(length: int, hours: str) -> list[str]:
        head = HEAD.replace("name: lab", f"name: {'a' * length}")
        (tmp_path / "specs.yaml").write_text(f"{head}spec: {{hours: [{hours}]}}", encoding="utf-8")
        found, _ = validate([str(tmp_path / "specs.yaml")], Config(root=tmp_path), use_cache=False)
        return [item.code for item in found]

    assert [codes(length, HOURS) for length in (46, 47)] == [[], ["KG0452"]]
    assert [codes(length, f"{HOURS}, {more}") for length in (44, 45)] == [[], ["KG0452"]]
