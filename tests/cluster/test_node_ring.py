"""Rings of distributed-llama on a real node, in both forms and in every order of their pods, also after losses.

A model is downloaded and converted, and four pods answer for it. The image is a peer of the program, with its command
line and its faults on the network, and without a model. Six rings start, and two of them lose three pods each, in
about a quarter of an hour on two cores. Each wait ends after four minutes.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from runtimes.convert.tests.tiny_models import LLAMA, random_tensors, save_model
from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import POD, compiled, spec
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import BASE, build_from, runtime_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.test_node import run_client
from tests.cluster.vllm_app import model, start_hub

pytestmark = pytest.mark.engine

IMAGE = "kaigen.test/distributed-llama:v0.16.4"
PEER = Path(__file__).parents[1] / "ring" / "peer.py"
CONFIG = {**LLAMA, "hidden_size": 128, "intermediate_size": 128, "num_key_value_heads": 4}
PROGRAMS = ("dllama", "dllama-api")
GATE = "kaigen.test/held"
LATE_SECONDS = 30
"""Longer than the root's gate waits after it has found all workers ready."""
LONGEST = 240.0
ASK = """
import json, sys, urllib.error, urllib.request
def ask(body):
    try:
        return urllib.request.urlopen("http://ring/v1/chat/completions", body, timeout=60).read().decode()
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError:
        return "no answer"
content = [{"type": "text", "text": "Hello"}]
chat = {"messages": [{"role": "user", "content": content}], "max_tokens": 3}
print(json.dumps([ask(b"{"), ask(b"{}"), ask(json.dumps(chat).encode())]))
"""


@dataclass(frozen=True)
class Form:
    """The names of a ring's pods.

    Attributes:
        root: name of the pod of the root.
        worker: name of the pod of a worker, with its number.
        as_one: whether a controller starts all pods again when one of them was lost.
    """

    root: str
    worker: str
    as_one: bool

    @property
    def workers(self) -> list[str]:
        """Names of the pods of the workers."""
        return [self.worker.format(number) for number in (1, 2, 3)]

    @property
    def all(self) -> list[str]:
        """Names of all pods."""
        return [self.root, *self.workers]


FORMS = {
    "statefulSet": Form("ring-0-0", "ring-0-workers-{}", as_one=False),
    "leaderWorkerSet": Form("ring-0", "ring-0-{}", as_one=True),
}


def specs(hub: Hub, groups: str) -> list[Object]:
    """Return a Model that is converted, and the ring that serves it."""
    tiny = model("tiny", hub)
    tiny["spec"] |= {
        "convert": {"distributedLlama": {"weights": "q40", "converter": {"cpu": "100m"}}},
        "facts": {"config": CONFIG, "weights": "2Mi"},
    }
    ring = spec(
        "Topology",
        "ring",
        engine="distributedLlama",
        image=IMAGE,
        model="tiny",
        shape={"nodes": 4, "groups": groups},
        resources={"cpu": "50m"},
        drain="20s",
    )
    return [tiny, ring]


def templates(body: Object) -> list[Object]:
    """Return the templates of the pods of an object."""
    found = body.get("spec", {})
    group = found.get("leaderWorkerTemplate", {})
    return [each for each in (found.get("template"), group.get("leaderTemplate"), group.get("workerTemplate")) if each]


class Ring:
    """A ring whose pods are held by a scheduling gate until a test lets them start."""

    def __init__(self, node: Node, namespace: str, form: Form) -> None:
        """Initialize with the node, the namespace and the names of the pods."""
        self.node, self.namespace, self.form = node, namespace, form

    def apply(self, bodies: Sequence[Object]) -> None:
        """Apply the objects of the ring, with the gate in the templates of the pods."""
        for body in bodies:
            for template in templates(body):
                template["spec"]["schedulingGates"] = [{"name": GATE}]
            self.node.client.apply(body)

    def pods(self) -> dict[str, Object]:
        """Return the pods by name."""
        found = self.node.client.objects(POD, self.namespace, "app.kubernetes.io/name=ring")
        return {pod["metadata"]["name"]: pod for pod in found}

    def start(self, *names: str) -> None:
        """Let pods start, as soon as they exist."""
        wait_until(partial(self._release, names), f"{', '.join(names)} may start", 60, every=0.5)

    def _release(self, names: Sequence[str]) -> bool:
        found = self.pods()
        for name in names:
            if found.get(name, {}).get("spec", {}).get("schedulingGates"):
                self._open(name)
        return set(names) <= set(found)

    def _open(self, name: str) -> None:
        """Remove the gate of a pod, unless the pod has gone meanwhile."""
        try:
            self.node.client.patch(POD, name, self.namespace, {"spec": {"schedulingGates": None}})
        except ApiError as error:
            if error.code != 404:
                raise

    def is_ready(self, name: str) -> bool:
        """Return whether a pod is ready."""
        return is_true(self.pods().get(name, {}), "Ready")

    def ready_for(self, name: str) -> float:
        """Return for how many seconds a pod has been ready."""
        conditions = self.pods().get(name, {}).get("status", {}).get("conditions", [])
        for each in conditions:
            if (each["type"], each["status"]) == ("Ready", "True"):
                since = time.strptime(each["lastTransitionTime"], "%Y-%m-%dT%H:%M:%SZ")
                return time.time() - calendar.timegm(since)
        return 0.0

    def wait_for_ready(self, *names: str) -> None:
        """Wait until pods are ready."""
        wait_until(lambda: all(map(self.is_ready, names)), f"{', '.join(names)} are ready", LONGEST, every=0.5)

    def wait_until_root_waits(self) -> None:
        """Wait until the root has its weights and waits for its workers."""
        wait_until(
            lambda: "waiting for" in self.log(self.form.root, "wait-for-workers"),
            "the root waits for its workers",
            LONGEST,
            every=1.0,
        )

    def log(self, pod: str, container: str) -> str:
        """Return what a container printed."""
        arguments = ["kubectl", "logs", "--namespace", self.namespace, pod, "--container", container]
        return self.node.run(*arguments, check=False).stdout

    def asked(self) -> list[str]:
        """Return the answers of the Service to a body that is not JSON, to one without messages, and to a chat."""
        answers: list[str] = json.loads(run_client(self.node, self.namespace, ASK))
        return answers

    def check_answers(self) -> None:
        """Check that the ring answers, and that neither a probe nor a gate has ended a process."""
        answers = self.asked()
        assert answers[:2] == ["400", "400"]
        assert "Hello-2/3" in json.loads(answers[2])["choices"][0]["message"]["content"]
        for name in self.form.workers:
            assert "ended with code" not in self.log(name, "serve")
        found = self.pods()
        assert set(found) == set(self.form.all)
        for pod in found.values():
            assert sum(each["restartCount"] for each in pod["status"]["containerStatuses"]) == 0

    def container(self, name: str) -> str:
        """Return the id of the running container of distributed-llama in a pod; empty without one."""
        statuses = self.pods().get(name, {}).get("status", {}).get("containerStatuses", [])
        found = [each for each in statuses if each["name"] == "serve" and "running" in each["state"]]
        return str(found[0]["containerID"]).removeprefix("containerd://") if found else ""

    def lose(self, name: str, loss: Callable[[], object]) -> float:
        """Lose a pod or its container, and wait until what was lost has been replaced and the ring answers.

        Args:
            name: of the pod.
            loss: what ends it.

        Returns:
            How many seconds it took.
        """
        lost = self.form.all if self.form.as_one else [name]
        before, started = {each: self.container(each) for each in lost}, time.monotonic()
        assert all(before.values())
        loss()

        def is_replaced() -> bool:
            # Pods that replace others have the gate, too.
            self._release(self.form.all)
            return all(self.container(each) not in ("", before[each]) for each in lost)

        wait_until(is_replaced, f"{', '.join(lost)} started again", LONGEST, every=0.5)
        wait_until(lambda: "Hello-2/3" in self.asked()[2], "the ring answers again", LONGEST, every=2.0)
        return time.monotonic() - started

    def kill(self, name: str) -> float:
        """Kill the processes of distributed-llama in a pod, and wait as `lose`."""
        container = self.container(name)
        return self.lose(name, lambda: self.node.ctr("tasks", "kill", "--all", "--signal", "SIGKILL", container))

    def delete(self, name: str) -> float:
        """Delete a pod, and wait as `lose`."""
        return self.lose(name, lambda: self.node.client.delete(POD, name, self.namespace))


@pytest.fixture(scope="module")
def images(node: Node) -> None:
    """Give the node the images of a ring."""
    for name in ("convert", "ringproxy"):
        node.import_image(runtime_image(name))
    lines = [f"FROM {BASE}", *(f"COPY {name} /usr/local/bin/{name}" for name in PROGRAMS), ""]
    node.import_image(build_from(IMAGE, "\n".join(lines), dict.fromkeys(PROGRAMS, PEER.read_bytes())))


@pytest.fixture(scope="module")
def hub(node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A Hub with the model."""
    repository = save_model(tmp_path_factory.mktemp("model"), CONFIG, random_tensors(CONFIG))
    serving = start_hub(node, {path.name: path.read_bytes() for path in repository.iterdir()})
    yield serving
    serving.__exit__()


@pytest.fixture
def ring(
    node: Node, node_namespace: str, node_groups: GroupControllers, images: None, hub: Hub, tmp_path: Path, groups: str
) -> Ring:
    """A ring of which no pod has started, and the Model, which is being downloaded and converted."""
    if groups == "leaderWorkerSet":
        node_groups.start_leader_worker_set()
    apps = compiled(tmp_path / "specs", specs(hub, groups), node_namespace, "generic")
    found = Ring(node, node_namespace, FORMS[groups])
    found.apply([each.body for each in apps["ring"].objects])
    for rendered in apps["tiny"].objects:
        node.client.apply(rendered.body)
    return found


def start_root_first(ring: Ring) -> None:
    """Start the workers when the root waits for them."""
    ring.start(ring.form.root)
    ring.wait_until_root_waits()
    ring.start(*ring.form.workers)


def start_one_worker_late(ring: Ring) -> None:
    """Start a worker in the middle of the list long after the others are ready."""
    first, late, last = ring.form.workers
    ring.start(ring.form.root, first, last)
    ring.wait_until_root_waits()
    wait_until(
        lambda: min(ring.ready_for(first), ring.ready_for(last)) > LATE_SECONDS,
        f"the other workers have been ready for {LATE_SECONDS} s",
        LONGEST,
        every=1.0,
    )
    assert not ring.is_ready(ring.form.root)
    ring.start(late)


@pytest.mark.promise("Koldun", "The root has a Service, and each worker slot its pod")
@pytest.mark.ran("Service", by="node")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader"))
@pytest.mark.parametrize("start", [start_root_first, start_one_worker_late])
@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("leaderWorkerSet", marks=pytest.mark.ran("LeaderWorkerSet", by=("node", "lws"))),
        pytest.param("statefulSet", marks=pytest.mark.ran("StatefulSet", by="node")),
    ],
)
def test_a_ring_answers_although_workers_start_after_its_root(
    ring: Ring, groups: str, start: Callable[[Ring], None]
) -> None:
    started = time.monotonic()
    start(ring)
    ring.wait_for_ready(ring.form.root)
    ring.check_answers()
    print(f"{groups}, {start.__name__}: answers after {time.monotonic() - started:.0f} s")


@pytest.mark.promise("Koldun", "The root has a Service, and each worker slot its pod")
@pytest.mark.ran("Service", by="node")
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "downloader"))
@pytest.mark.parametrize(
    "groups",
    [
        pytest.param("leaderWorkerSet", marks=pytest.mark.ran("LeaderWorkerSet", by=("node", "lws"))),
        pytest.param("statefulSet", marks=pytest.mark.ran("StatefulSet", by="node")),
    ],
)
def test_a_ring_whose_workers_start_first_answers_again_after_each_loss(ring: Ring, groups: str) -> None:
    started = time.monotonic()
    ring.start(*ring.form.workers)
    ring.wait_for_ready(*ring.form.workers)
    ring.start(ring.form.root)
    ring.wait_for_ready(ring.form.root)
    ring.check_answers()
    print(f"{groups}, workers first: answers after {time.monotonic() - started:.0f} s")
    print(f"{groups}: a worker was killed, answers again after {ring.kill(ring.form.workers[1]):.0f} s")
    print(f"{groups}: the root was killed, answers again after {ring.kill(ring.form.root):.0f} s")
    print(f"{groups}: a worker was deleted, answers again after {ring.delete(ring.form.workers[2]):.0f} s")
