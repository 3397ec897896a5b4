"""The plane that is started by hand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runtimes.downloader.tests.hub import COMMIT, REPO
from tests.cluster.images import archives, builder_environment, load_image
from tests.cluster.tools.parts import locate

pytestmark = pytest.mark.engine

_ROOT = Path(__file__).parents[2]


def test_a_plane_goes_on_between_up_and_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def by_hand(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.cluster", *arguments]
        return subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)

    try:
        export = by_hand("up").stdout.strip()
        assert by_hand("up").stdout.strip() == export
        name, _, kubeconfig = export.removeprefix("export ").partition("=")
        answer = subprocess.run(
            [locate()["kubectl"], "get", "--raw", "/readyz"],
            env=os.environ | {name: kubeconfig},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (name, answer.stdout) == ("KUBECONFIG", "ok")
    finally:
        down = by_hand("down")
    assert down.stderr == "the plane is down\n"
    assert by_hand("down").stderr == "no plane is up\n"
    assert not Path(kubeconfig).exists()


SPEC = f"""
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: tiny}}
spec:
  source: {{huggingFace: {{repo: {REPO}, revision: {COMMIT}, endpoint: "$HUB"}}}}
  store: {{volume: {{size: 1Gi}}}}
"""
BUCKETS = """
import boto3, os
client = boto3.client("s3", endpoint_url=os.environ["S3"], region_name="us-east-1")
print(*(bucket["Name"] for bucket in client.list_buckets()["Buckets"]))
"""
PULLED = """
apiVersion: v1
kind: Pod
metadata: {name: pulled}
spec: {restartPolicy: Never, containers: [{name: main, image: "$REGISTRY/kubectl:1", args: [version, --client]}]}
"""
SESSION = """
set -e
eval "$($PYTHON -m tests.cluster up --node --argocd)"
cd "$FOLDER"
kubectl get nodes --output=name
kubectl get appprojects --namespace argocd --output=name
for file in *.yaml; do sed -i -e "s,[$]HUB,$HUB," -e "s,[$]REGISTRY,$REGISTRY," $file; done
$PYTHON -m kaigen render tiny.yaml --format both --output rendered >&2
kubectl apply --kustomize rendered/default/tiny/manifests >&2
kubectl wait job --all --for=condition=Complete --timeout=120s >&2
kubectl logs --selector app.kubernetes.io/name=tiny --container download | tail -n 1 >&2
helm package rendered/default/tiny/chart >&2
helm push --plain-http tiny-*.tgz "oci://$REGISTRY/charts" >&2
helm show chart --plain-http "oci://$REGISTRY/charts/tiny" | grep ^name:
in_cluster $PYTHON -c "$BUCKETS"
in_cluster buildah push --tls-verify=false "$IMAGE" "docker://$REGISTRY/kubectl:1" >&2
kubectl apply --filename pulled.yaml >&2
kubectl wait pod pulled --for=jsonpath={.status.phase}=Succeeded --timeout=120s >&2
kubectl logs pulled | grep --only-matching "Client Version"
"""


def test_a_person_uses_a_node_with_a_hub_a_bucket_and_a_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    work = tmp_path / "work"
    work.mkdir()
    (work / "tiny.yaml").write_text(SPEC)
    (work / "pulled.yaml").write_text(PULLED)
    given = {
        "PYTHON": sys.executable,
        "PYTHONPATH": str(_ROOT),
        "FOLDER": str(work),
        "BUCKETS": BUCKETS,
        "IMAGE": load_image(archives()[2]),
    }
    try:
        done = subprocess.run(
            ["sh", "-c", SESSION],
            cwd=_ROOT,
            env={**builder_environment(), **given},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = ["node/node", "appproject.argoproj.io/default", "name: tiny", "models", "Client Version"]
        assert done.stdout.splitlines() == lines
    finally:
        subprocess.run([sys.executable, "-m", "tests.cluster", "down"], cwd=_ROOT, check=True)
