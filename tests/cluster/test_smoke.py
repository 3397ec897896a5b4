"""kaigen's small images, pulled from a registry, in pods as kaigen renders them: user, file system, volumes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kaigen.kubernetes.images import parse_image
from kaigen.kubernetes.pods import containers, pod_templates
from tests.cases import cases
from tests.cluster.client import Object
from tests.cluster.node import Node
from tests.cluster.pushed import Pushed, push_images, served_to
from tests.cluster.test_node import run_pod

pytestmark = pytest.mark.engine

EXAMPLE = {
    "downloader": "first",
    "convert": "koldun/later",
    "reaper": "ephemeral/egpu-create",
    "ringproxy": "koldun/later",
    "notebook": "first",
    "chat": "first",
    "train": "first",
    "classify": "jobs/classify",
}
"""An example with a pod that runs the image with a read-only file system."""
COMMAND = {"notebook": (["jupyter", "lab", "--version"], "4.")}
"""What is run, and a part of what it prints, where that is not the help of the program."""
SMALL = ["downloader", "convert", "reaper", "ringproxy", "notebook"]


@pytest.fixture(scope="module")
def pushed(node: Node) -> Iterator[Pushed]:
    """The small images, in a registry that the node pulls from."""
    found = push_images(SMALL)
    with served_to(node, found):
        yield found


def rendered(name: str) -> tuple[Object, Object]:
    """Return the pod of an example that runs an image of kaigen's read-only, and the container that does."""
    for item in cases()[EXAMPLE[name]].compile().apps:
        for found in item.objects:
            for template in pod_templates(found.body):
                for each in containers(template):
                    body: Object = dict(each.body)
                    own = parse_image(body["image"]).repository == f"kaigen-dev/{name}"
                    if own and body["securityContext"]["readOnlyRootFilesystem"]:
                        return dict(template.spec), body
    raise AssertionError(f"{EXAMPLE[name]} has no pod that runs {name} with a read-only file system")


def smoke(node: Node, namespace: str, name: str, image: str) -> None:
    """Run the program of an image in a pod as rendered, and check what it prints."""
    command, part = COMMAND.get(name, ([f"kaigen-{name}", "--help"], f"kaigen-{name}"))
    pod, container = rendered(name)
    volumes = [volume for volume in pod.get("volumes", []) if "emptyDir" in volume]
    kept = {volume["name"] for volume in volumes}
    body = {
        "name": "main",
        "image": image,
        "command": command,
        "securityContext": container["securityContext"],
        "volumeMounts": [mount for mount in container.get("volumeMounts", []) if mount["name"] in kept],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "2Gi"}},
    }
    context = pod["securityContext"]
    assert context["runAsNonRoot"]
    spec = {"restartPolicy": "Never", "securityContext": context, "volumes": volumes, "containers": [body]}
    made: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"smoke-{name}"}, "spec": spec}
    assert part in run_pod(node, namespace, made)


@pytest.mark.parametrize("name", SMALL)
def test_a_small_image_runs_as_rendered(node: Node, node_namespace: str, pushed: Pushed, name: str) -> None:
    smoke(node, node_namespace, name, pushed.images[name])
