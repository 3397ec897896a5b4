"""`make try`: the first deployment of docs/first-deployment.md on a real node of this machine.

The images are built, pushed to a registry, and pulled by the node; Argo CD syncs a Git repository that `kaigen render`
wrote. The model on the Hub of this machine has random weights, because the node has no way out: its answers make no
sense.
"""

from __future__ import annotations

import http.client
import json
import re
import secrets
import shlex
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import yaml

from kaigen.scaffold.changes import write_changes
from kaigen.scaffold.image_settings import with_images
from runtimes.downloader.tests.hub import Hub
from tests.cases import EXAMPLES
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.git import Repository
from tests.cluster.live import start
from tests.cluster.node import Node
from tests.cluster.pushed import push_images, served_to
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import start_hub

PARTS = {"serve": ("downloader", "chat"), "tune": ("train",), "notebook": ("notebook",)}
"""The specs of examples/first, with the images that each one adds."""

_EXAMPLE = EXAMPLES / "first"
NAMESPACE = "first"
_QUESTION = "Where is my parcel?"
_PATIENCE_S = 1200
_SHOWN = 3000
"""Characters of a failed command's output that are shown."""
_SPEC = "specs/{}.yaml"


_PULLED = re.compile(r'Successfully pulled image "[^"]*/([^":]+):.*?" in (\S+)')


class TrialFailed(Exception):
    """A step did not end as it must. The text says what was there."""


class Trial:
    """The steps, in a folder of their own."""

    def __init__(self, parts: Sequence[str], folder: Path) -> None:
        """Prepare them.

        Args:
            parts: which of `PARTS` run; `serve` always does.
            folder: for the repository.
        """
        self.parts = [part for part in PARTS if part in ("serve", *parts)]
        self._work = folder / "first"
        self._remote = Repository(folder / "remote")
        self._token = secrets.token_urlsafe()
        self._started = time.monotonic()
        self._steps = 0

    def step(self, title: str, look: str = "") -> None:
        """Print a step, and what to look at."""
        self._steps += 1
        print(f"\n{self._steps}. {title}  [{time.monotonic() - self._started:.0f} s]", flush=True)
        if look:
            print(f"   see {look}", flush=True)

    def show(self, text: str) -> None:
        """Print a line below a step."""
        print(f"   {text}", flush=True)

    def run(self, stack: ExitStack) -> Node:
        """Run all steps, and return the node.

        Args:
            stack: ends what they started.

        Raises:
            TrialFailed: an app did not become ready, or gave no answer.
        """
        self.step("Build kaigen's images and push them to a registry", "docs/images.md")
        pushed = push_images([name for part in self.parts for name in PARTS[part]], self.show)
        for name, reference in pushed.images.items():
            self.show(f"{name}: {reference}")
        self.step("Start a cluster: one real node, Argo CD, a Hub with a tiny model", "tests/cluster/README.md")
        node = stack.enter_context(Node())
        self.show(f"its logs: {node.processes.logs}")
        ArgoCD(node)  # ends with the node
        stack.enter_context(served_to(node, pushed))
        hub = stack.enter_context(_hub(node))
        self.step("Write a repository, render it and push the commit", "examples/first/specs")
        self._render(pushed.images, hub, node)
        self.step("Create the namespace and its Secret, and give the repository to Argo CD", "docs/start.md")
        self._bootstrap(node)
        self.step("Wait until every app is ready", "docs/cli.md#kaigen-status")
        self._wait(node)
        self.step("Ask the model")
        self._ask(node)
        if "tune" in self.parts:
            self.step("Read the report of the training", "docs/training.md")
            self.show(self._report(node))
        if "notebook" in self.parts:
            self.step("Open the notebook", "docs/notebooks.md")
            self._open(node)
        return node

    def _kaigen(self, node: Node, *words: str) -> str:
        """Run kaigen in the repository and in the node's network."""
        self.show(f"$ kaigen {shlex.join(words)}")
        with start(node, "kaigen", *words, folder=self._work) as process:
            printed = process.communicate(timeout=_PATIENCE_S + 60)[0].rstrip()
        if process.returncode != 0:
            raise TrialFailed(printed[-_SHOWN:])
        return printed

    def _render(self, images: dict[str, str], hub: Hub, node: Node) -> None:
        shutil.copytree(_EXAMPLE / "specs", self._work / "specs")
        for file in (self._work / "specs").iterdir():
            if file.stem not in self.parts:
                file.unlink()
        settings = self._work / "kaigen.yaml"
        config = yaml.safe_load((_EXAMPLE / "kaigen.yaml").read_text())
        config["gitops"]["repository"] = self._remote.url
        config["network"] = {"hubEndpoint": hub.url}
        settings.write_text(yaml.safe_dump(config, sort_keys=False))
        write_changes([with_images(settings, {name: image for name, image in images.items() if name != "torch"})])
        print(self._kaigen(node, "render"))
        files = [path for path in self._work.rglob("*") if path.is_file()]
        self._remote.commit({str(path.relative_to(self._work)): path.read_text() for path in files}, "Serve a model")

    def _bootstrap(self, node: Node) -> None:
        node.make_namespace(NAMESPACE)
        if "notebook" in self.parts:
            secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "lab-token"}}
            node.client.create({**secret, "stringData": {"token": self._token}}, NAMESPACE)
        rendered = self._work / "rendered" / "_argocd"
        options = ("--server-side", "--field-manager", "kaigen", "--force-conflicts")
        for arguments in ((*options, "-f", str(rendered / "argocd-cm.yaml")), ("-k", str(rendered / "bootstrap"))):
            self.show(f"$ kubectl apply {shlex.join(arguments)}")
            node.run("kubectl", "apply", *arguments)

    def _wait(self, node: Node) -> None:
        self._kaigen(node, "status", "--watch", "--timeout", str(_PATIENCE_S))
        print(self._kaigen(node, "status"))
        for event in node.client.objects("v1/Event", NAMESPACE):
            if found := _PULLED.match(event.get("message", "")):
                self.show(f"{found[1]} was pulled in {found[2]}")

    def _ask(self, node: Node) -> None:
        body = {"messages": [{"role": "user", "content": _QUESTION}], "max_tokens": 24, "temperature": 0}
        self.show(f"> {_QUESTION}")
        status, content = _request(node, "chat", "/v1/chat/completions", json.dumps(body))
        if status != 200:
            raise TrialFailed(f"the chat server answered {status}: {content}")
        self.show(f"< {json.loads(content)['choices'][0]['message']['content']}")

    def _report(self, node: Node) -> str:
        (job,) = node.client.objects("batch/v1/Job", NAMESPACE, "app.kubernetes.io/name=tune")
        printed = node.run("kubectl", "logs", "--namespace", NAMESPACE, f"job/{job['metadata']['name']}").stdout
        return printed.strip().rpartition("\n")[2]

    def _open(self, node: Node) -> None:
        status, _ = _request(node, "lab", f"/lab?token={self._token}")
        if status != 200:
            raise TrialFailed(f"the notebook answered {status}")
        self.show("GET /lab: 200")


def _request(node: Node, service: str, path: str, body: str | None = None) -> tuple[int, str]:
    """Send a request to a Service from the node; return status and body."""
    found = node.client.get("v1/Service", service, NAMESPACE)["spec"]
    connection = http.client.HTTPConnection(found["clusterIP"], found["ports"][0]["port"], timeout=120)
    try:
        with node.network.entered():
            connection.connect()
        connection.request("POST" if body else "GET", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


@contextmanager
def _hub(node: Node) -> Iterator[Hub]:
    """A Hub with random weights under the name of the example's model."""
    specs = yaml.safe_load_all((_EXAMPLE / _SPEC.format("serve")).read_text())
    source = next(spec for spec in specs if spec["kind"] == "Model")["spec"]["source"]["huggingFace"]
    hub = start_hub(node, base_files())
    hub.repo, hub.revisions = source["repo"], {source["revision"]: source["revision"]}
    try:
        yield hub
    finally:
        hub.__exit__()


def try_first(parts: Sequence[str], *, keep: bool) -> None:
    """Run a trial, print its steps, and remove everything but the registry's content.

    Args:
        parts: which of `PARTS` run.
        keep: keep the cluster until Ctrl-C.

    Raises:
        TrialFailed: a step did not end as it must.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        node = Trial(parts, folder).run(stack)
        if keep:
            print(f"\nThe cluster runs until Ctrl-C: export KUBECONFIG={node.kubeconfig}")
            print(f"nsenter --net=/run/netns/{node.network.name} {node.program('kubectl')} get pods -A", flush=True)
            ended = threading.Event()
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, lambda _number, _frame: ended.set())
            ended.wait()
    print("\nEverything that was started has ended. The registry's content is kept for the next run.")
