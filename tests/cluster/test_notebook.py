"""The notebook image, built from its Dockerfile, behind what kaigen renders: token, kernel, suspension, idle stop."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

import pytest
import yaml
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.cluster.apps import CLAIM, POD, compiled, spec
from tests.cluster.argocd import ArgoCD
from tests.cluster.browser import browser
from tests.cluster.client import Object, is_true
from tests.cluster.images import runtime_image
from tests.cluster.live import call, start
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.syncers import ArgoSyncer
from tests.cluster.test_node_rollout import apply

pytestmark = pytest.mark.engine

NAME = "lab"
TOKEN = "s3cret-of-the-lab"
HOME = "/home/notebook"
IDLE = "40s"
LIMIT_OF_IDLE_CHECKS = 150
STATEFUL_SET = "apps/v1/StatefulSet"

INSIDE = r"""
import asyncio, json, os, urllib.error, urllib.request, uuid
from pathlib import Path
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect
TOKEN = {"Authorization": f"token {Path(os.environ['JUPYTER_TOKEN_FILE']).read_text().strip()}"}
CELL = '''
import os
open("kept.txt", "w").write("of a cell")
print(os.getuid(), os.environ["PARAM_EPOCHS"], os.getcwd())
'''

def ask(path, headers={}, method="GET"):
    request = urllib.request.Request(f"http://127.0.0.1:8888/api/{path}", headers=headers, method=method)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read() or "null")
    except urllib.error.HTTPError as error:
        return error.code, None

async def run_cell(kernel):
    address = f"ws://127.0.0.1:8888/api/kernels/{kernel}/channels"
    socket = await websocket_connect(HTTPRequest(address, headers=TOKEN))
    header = {"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
    header |= {"username": "", "session": "a"}
    content = {"code": CELL, "silent": False, "store_history": True, "user_expressions": {}, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    message |= {"channel": "shell", "buffers": []}
    await socket.write_message(json.dumps(message))
    printed = ""
    while True:
        answer = json.loads(await asyncio.wait_for(socket.read_message(), 60))
        if answer["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        if answer["msg_type"] == "stream":
            printed += answer["content"]["text"]
        if answer["msg_type"] == "error":
            return answer["content"]["evalue"]
        if answer["msg_type"] == "status" and answer["content"]["execution_state"] == "idle":
            return printed

def writes(folder):
    try:
        Path(folder, "file").write_text("")
    except OSError as error:
        return error.strerror
    return True

_, kernel = ask("kernels", TOKEN, "POST")
print(json.dumps({
    "version": ask("")[0],
    "without a token": ask("contents")[0],
    "with another token": ask("contents", {"Authorization": "token wrong"})[0],
    "with the token": ask("contents", TOKEN)[0],
    "cell": asyncio.run(run_cell(kernel["id"])),
    "writes": {folder: writes(folder) for folder in ("/", "/opt/kaigen", "/tmp")},
    "token in the arguments": TOKEN["Authorization"].split()[1].encode() in Path("/proc/1/cmdline").read_bytes(),
}))
"""


def notebook(name: str = NAME, **fields: object) -> Object:
    return spec(
        "Notebook",
        name,
        params={"epochs": 3},
        storage={"size": "1Gi", "retain": False},
        resources={"cpu": "100m", "memory": "1Gi"},
        **fields,
    )


RIGHTS = [
    {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "list", "patch"]},
    {"apiGroups": [""], "resources": ["pods", "persistentvolumeclaims"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["list"]},
]
"""The rights that docs/notebooks.md lists for `open NAME`, `sync`, `list`, `suspend` and `resume`."""


def user_of(node: Node, namespace: str) -> Path:
    """Return the kubeconfig of a user with these rights and no others."""
    rbac = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": "user"}, "rules": RIGHTS}
    binding = {
        "apiVersion": f"{rbac}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "user"},
        "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "user"},
        "subjects": [{"kind": "ServiceAccount", "name": "user", "namespace": namespace}],
    }
    for body in ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "user"}}, role, binding):
        node.client.create(body, namespace)
    return node.kubeconfig_of(node.as_service_account(namespace, "user"), f"user-{namespace}", namespace)


def trial() -> str:
    """Return a notebook with one cell."""
    code = "print(open('data.txt').read() + str(6 * 7)); open('made.txt', 'w').write('by a cell')"
    cell: Object = {
        "cell_type": "code",
        "id": "a",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": code,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps({"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5})


def output_of_the_cell(node: Node, address: str) -> str:
    """Run the cell of trial.ipynb in a browser, and return what the page then shows."""
    with node.network.entered(), browser() as chrome:
        chrome.get(address.replace("/lab?", "/lab/tree/trial.ipynb?"))
        # The page replaces its elements while it starts.
        wait = WebDriverWait(chrome, 120, ignored_exceptions=[WebDriverException])
        wait.until(lambda page: "Idle" in page.find_element(By.CSS_SELECTOR, "#jp-main-statusbar").text)
        wait.until(_run_cell)
        return wait.until(_output)


def _run_cell(page: Chrome) -> bool:
    editor = page.find_element(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell .cm-content")
    editor.click()
    editor.send_keys(Keys.SHIFT, Keys.ENTER)
    return True


def _output(page: Chrome) -> str:
    return page.find_element(By.CSS_SELECTOR, ".jp-Notebook .jp-OutputArea-output").text


def mark(node: Node, namespace: str, tracking: str | None) -> None:
    """Mark the notebook as Argo CD does; remove the mark with None."""
    annotations = {"argocd.argoproj.io/tracking-id": tracking}
    node.client.patch(STATEFUL_SET, NAME, namespace, {"metadata": {"annotations": annotations}})


def inside(node: Node, namespace: str, *command: str) -> str:
    return node.run("kubectl", "exec", "--namespace", namespace, f"{NAME}-0", "--", *command).stdout


def wait_until_ready(node: Node, namespace: str) -> Object:
    return node.client.wait(POD, f"{NAME}-0", namespace, lambda pod: is_true(pod, "Ready"), "ready")


@pytest.mark.promise("Substratus", "A Notebook serves HTTP on port 8888")
@pytest.mark.ran("StatefulSet", "PersistentVolumeClaim", "Service", "ConfigMap", by="node")
def test_a_notebook_keeps_its_files_while_it_is_suspended(node: Node, node_namespace: str, tmp_path: Path) -> None:
    node.import_image(runtime_image("notebook"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-token"}}
    node.client.create({**secret, "stringData": {"token": f"{TOKEN}\n"}}, node_namespace)
    apply(node, tmp_path, node_namespace, notebook())
    wait_until_ready(node, node_namespace)
    assert json.loads(inside(node, node_namespace, "python", "-c", INSIDE)) == {
        "version": 200,
        "without a token": 403,
        "with another token": 403,
        "with the token": 200,
        "cell": f"65532 3 {HOME}\n",
        "writes": {"/": "Read-only file system", "/opt/kaigen": "Read-only file system", "/tmp": True},
        "token in the arguments": False,
    }

    apply(node, tmp_path, node_namespace, notebook(suspend=True))
    node.client.wait_gone(POD, f"{NAME}-0", node_namespace)
    assert node.client.get(CLAIM, f"{NAME}-home", node_namespace)["status"]["phase"] == "Bound"

    apply(node, tmp_path, node_namespace, notebook())
    wait_until_ready(node, node_namespace)
    assert inside(node, node_namespace, "cat", f"{HOME}/kept.txt") == "of a cell"


@pytest.mark.ran("StatefulSet", "PersistentVolumeClaim", "Role", "RoleBinding", by=("node", "argocd"))
def test_an_idle_notebook_frees_its_node_under_argo_cd_until_it_is_opened(
    node: Node, node_argocd: ArgoCD, node_namespace: str, tmp_path: Path
) -> None:
    node.import_image(runtime_image("notebook"))
    node.import_image(runtime_image("reaper"))
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-token"}}
    node.client.create({**secret, "stringData": {"token": f"{TOKEN}\n"}}, node_namespace)
    syncer = ArgoSyncer(node, node_namespace, node_argocd, tmp_path)
    apps = compiled(tmp_path / "specs", [notebook(idle={"after": IDLE})], node_namespace)
    syncer.publish(apps)
    wait_until_ready(node, node_namespace)
    assert json.loads(inside(node, node_namespace, "python", "-c", INSIDE))["cell"] == f"65532 3 {HOME}\n"

    node.client.wait_gone(POD, f"{NAME}-0", node_namespace, timeout=LIMIT_OF_IDLE_CHECKS)
    assert node.client.get(STATEFUL_SET, NAME, node_namespace)["spec"]["replicas"] == 0
    assert node.client.get("v1/ConfigMap", f"{NAME}-state", node_namespace)["data"]["stopped"] == "idle"
    mark = node.audit.mark()
    syncer.let_pass(apps, 3)
    assert syncer.writes(mark) == []
    assert node.client.get(STATEFUL_SET, NAME, node_namespace)["spec"]["replicas"] == 0

    user = ("--kubeconfig", str(user_of(node, node_namespace)))
    with start(node, "kaigen", "notebook", "open", NAME, "--no-browser", *user) as process:
        assert process.stdout is not None
        while "/lab?token=" not in (line := process.stdout.readline()):
            assert line
        assert inside(node, node_namespace, "cat", f"{HOME}/kept.txt") == "of a cell"
        process.send_signal(signal.SIGINT)
        assert "keeps running until it is idle" in process.communicate(timeout=60)[0]
    syncer.remove(NAME)


@pytest.mark.promise("Substratus", "`kubectl open notebook -f`")
@pytest.mark.promise("Substratus", "`container.local: true`: the notebook has the contents of the local directory")
@pytest.mark.promise("Substratus", "At the end, files are synced from the Notebook back to the local directory")
@pytest.mark.ran("StatefulSet", "Service", by="node")
def test_the_command_opens_synchronizes_suspends_and_promotes_a_notebook(
    node: Node, node_namespace: str, tmp_path: Path
) -> None:
    node.import_image(runtime_image("notebook"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "trial.ipynb").write_text(trial())
    (work / "data.txt").write_text("the answer: ")
    (work / "large.bin").write_bytes(large := os.urandom(9 * 1024 * 1024))
    apply(node, tmp_path, node_namespace, notebook(suspend=True))
    user = ("--kubeconfig", str(user_of(node, node_namespace)))
    with start(node, "kaigen", "notebook", "open", NAME, "--folder", str(work), "--no-browser", *user) as process:
        assert process.stdout is not None
        printed = ""
        while "/lab?token=" not in printed.rpartition("\n")[2]:
            line = process.stdout.readline()
            assert line, printed
            printed += f"\n{line.rstrip()}"
        assert output_of_the_cell(node, printed.rpartition("\n")[2]) == "the answer: 42"
        wait_until(lambda: (work / "made.txt").exists(), "the file of the cell is here")
        assert (work / "made.txt").read_text() == "by a cell"
        found = inside(node, node_namespace, "sha256sum", f"{HOME}/large.bin")
        assert found.split()[0] == hashlib.sha256(large).hexdigest()
        (work / "data.txt").write_text("changed here")
        wait_until(lambda: inside(node, node_namespace, "cat", f"{HOME}/data.txt") == "changed here", "it is there")
        inside(node, node_namespace, "sh", "-c", f"mkdir {HOME}/deep && echo there > {HOME}/deep/new.txt")
        wait_until(lambda: (work / "deep" / "new.txt").exists(), "the file of the notebook is here")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    node.client.wait_gone(POD, f"{NAME}-0", node_namespace)
    assert "Suspended" in call(node, "kaigen", "notebook", "list", *user)

    repository = tmp_path / "repository"
    (repository / "specs").mkdir(parents=True)
    (repository / "kaigen.yaml").write_text("profile: k3s\n")
    (repository / "specs" / "lab.yaml").write_text(yaml.safe_dump(notebook()))
    where = ("-n", node_namespace)
    opening = ("kubectl-open", "notebook", "-f", "specs/lab.yaml", "--no-browser", "--keep-running", *where)
    with start(node, *opening, folder=repository) as process:
        assert process.stdout is not None
        while "/lab?token=" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert inside(node, node_namespace, "cat", f"{HOME}/made.txt") == "by a cell"
    inside(node, node_namespace, "sh", "-c", f"printf theirs > {HOME}/data.txt")
    (work / "data.txt").write_text("ours")
    call(node, "kaigen", "notebook", "sync", NAME, str(work), *user)
    (copy,) = work.glob("data.notebook-*.txt")
    assert ((work / "data.txt").read_text(), copy.read_text()) == ("ours", "theirs")
    both = inside(node, node_namespace, "cat", f"{HOME}/data.txt", f"{HOME}/{copy.name}")
    assert both == "ourstheirs"

    broken = notebook("broken", image={"ref": "registry.example/missing:1", "pullPolicy": "Never"})
    (repository / "broken.yaml").write_text(yaml.safe_dump(broken))
    failing = ("open", "-f", "broken.yaml", "--no-browser", *where)
    failed = call(node, "kaigen", "notebook", *failing, folder=repository, code=3)
    assert "error: Notebook broken does not start: ErrImageNeverPull" in failed
    assert "Notebook broken suspended" in failed

    promoting = ("promote", NAME, "--image", "registry.example/train:1", "--command", "python train.py")
    promoted = call(node, "kaigen", "notebook", *promoting, "--label", "one", folder=repository)
    assert promoted.splitlines()[0] == "specs/model-one.yaml"
    call(node, "kaigen", "validate", folder=repository)

    mark(node, node_namespace, "lab")
    assert "managed by Argo CD" in call(node, "kaigen", "notebook", "suspend", NAME, *user, code=1)
    assert "managed by Argo CD" in call(node, "kaigen", "notebook", "delete", NAME, *where, code=1)
    with start(node, "kaigen", "notebook", "open", NAME, "--no-browser", *user) as process:
        assert process.stdout is not None
        while "/lab?token=" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert "keeps running: Argo CD manages it" in process.communicate(timeout=60)[0]
    assert is_true(node.client.get(POD, f"{NAME}-0", node_namespace), "Ready")
    mark(node, node_namespace, None)
    for name in (NAME, "broken"):
        call(node, "kaigen", "notebook", "delete", name, "--delete-volume", *where)
    assert "No Notebooks found" in call(node, "kaigen", "notebook", "list", *where)
    assert node.client.objects("v1/Secret", node_namespace) == []
    node.client.wait_gone(CLAIM, f"{NAME}-home", node_namespace)
