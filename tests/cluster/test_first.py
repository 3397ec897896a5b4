"""The first deployment: images that are pulled from a registry serve a model, tune it, and open a notebook.

And the images with PyTorch in pods as kaigen renders them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kaigen.catalog.images import default_images
from kaigen.kubernetes.images import parse_image
from tests.cluster.apps import POD
from tests.cluster.first import NAMESPACE, PARTS, Trial
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.pushed import Pushed, push_images, served_to
from tests.cluster.test_smoke import smoke

pytestmark = pytest.mark.engine

LARGE = ["chat", "train", "classify"]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Ends what a trial starts."""
    with ExitStack() as found:
        yield found


@pytest.mark.ran("Deployment", "Service", by=("node", "argocd", "chat"))
@pytest.mark.ran("Job", "PersistentVolumeClaim", by=("node", "argocd", "downloader", "train"))
@pytest.mark.ran("StatefulSet", by=("node", "argocd", "notebook"))
def test_a_first_deployment_answers_tunes_and_opens_with_images_of_the_registry(
    stack: ExitStack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Trial(list(PARTS), tmp_path).run(stack)
    printed = capsys.readouterr().out
    assert "< " in printed
    assert "GET /lab: 200" in printed
    used = {
        each["image"]
        for pod in node.client.objects(POD, NAMESPACE)
        for field in ("initContainers", "containers")
        for each in pod["spec"].get(field, [])
    }
    others = {image for image in used if "/kaigen-dev/" not in image}
    assert others == {BASE}, "the loader is the only image that is not kaigen's"
    names = {parse_image(image).repository.rpartition("/")[2] for image in used - others}
    assert names == {name for part in PARTS.values() for name in part} <= set(default_images())


@pytest.fixture(scope="module")
def pushed(node: Node) -> Iterator[Pushed]:
    """The images with PyTorch, in a registry that the node pulls from."""
    found = push_images(LARGE)
    with served_to(node, found):
        yield found


@pytest.mark.parametrize("name", LARGE)
def test_an_image_with_pytorch_runs_as_rendered(node: Node, node_namespace: str, pushed: Pushed, name: str) -> None:
    smoke(node, node_namespace, name, pushed.images[name])
