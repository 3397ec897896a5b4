"""A client of an app with a router on a real node, and the images of the router."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.apps import POD, client_pod
from tests.cluster.client import Object
from tests.cluster.envoy import locate_envoy
from tests.cluster.images import BASE, build_from, default_image
from tests.cluster.node import Node
from tests.cluster.processes import wait_until
from tests.cluster.tools.parts import KINDS, locate_part

_CLIENT = """
import collections, concurrent.futures, json, os, threading, time, urllib.error, urllib.request
seen, lock = collections.Counter(), threading.Lock()
def ask(prompt, tokens=8, timeout=300):
    body = json.dumps({"model": MODEL, "prompt": prompt, "max_tokens": tokens, "temperature": 0}).encode()
    request = urllib.request.Request(URL, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError as error:
        return f"lost: {error}"
"""
_LOAD = """
def run(number):
    while not os.path.exists("/tmp/stop"):
        status = ask(f"prompt {number} " * 20)
        with lock:
            seen[str(status)] += 1
threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps(seen))
"""


def program(code: str, url: str, model: str, **names: Any) -> str:
    """Return a program that has `ask(prompt)`, which returns a status.

    Args:
        code: what it does.
        url: address of the completions.
        model: name of the model.
        names: more values that it knows.
    """
    values = {"URL": url, "MODEL": model, **names}
    return "\n".join([_CLIENT, *(f"{name} = {value!r}" for name, value in values.items()), code])


def import_router(node: Node) -> None:
    """Bring the images of the router and the kind of its pool to a node."""
    envoy = {"envoy": locate_envoy().read_bytes()}
    node.import_image(build_from(default_image("envoy"), f"FROM {BASE}\nCOPY envoy /usr/local/bin/envoy\n", envoy))
    epp = locate_part("epp")
    picker = f'FROM {BASE}\nCOPY epp /usr/local/bin/epp\nENTRYPOINT ["/usr/local/bin/epp"]\n'
    node.import_image(build_from(default_image("endpointPicker"), picker, {"epp": epp.read_bytes()}))
    if (epp.parent / KINDS).exists():
        node.install_kinds(epp.parent / KINDS)


class Load:
    """A pod that asks in several threads until it is stopped."""

    def __init__(self, node: Node, namespace: str, url: str, model: str, threads: int = 6) -> None:
        self._node, self._namespace = node, namespace
        pod = client_pod(program(_LOAD, url, model, THREADS=threads))
        self._name = node.client.create(pod, namespace)["metadata"]["name"]
        node.client.wait(POD, self._name, namespace, lambda found: found["status"]["phase"] == "Running", "running")

    def stop(self) -> dict[str, int]:
        """Return how often it got which status."""
        node, place = self._node, ("--namespace", self._namespace, self._name)
        node.run("kubectl", "exec", *place, "--", "touch", "/tmp/stop")
        over = {"Succeeded", "Failed"}
        node.client.wait(POD, self._name, self._namespace, lambda found: found["status"]["phase"] in over, "over")
        counted: dict[str, int] = json.loads(node.run("kubectl", "logs", *place).stdout)
        return counted


def kill(node: Node, pod: Object, container: str) -> None:
    """Kill the process of a container of a pod, and wait until the kubelet has started another one."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    (found,) = [each for each in pod["status"]["containerStatuses"] if each["name"] == container]
    before = found["restartCount"]
    node.ctr("tasks", "kill", "--signal", "SIGKILL", found["containerID"].removeprefix("containerd://"))

    def is_back() -> bool:
        statuses = node.client.get(POD, name, namespace)["status"]["containerStatuses"]
        (status,) = [each for each in statuses if each["name"] == container]
        return bool(status["restartCount"] > before and status["ready"])

    wait_until(is_back, f"{container} runs again", 240)
