"""Random weights in torchvision's networks, saved as a user would save them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from networks.pictures_of_tests import PICTURES, colours
from safetensors.torch import save_file
from torchvision.models import get_model, get_model_weights

MODELS = ("resnet50", "mobilenet_v3_small")

torch.set_num_threads(1)


class Reference:
    """A network of torchvision's with random weights."""

    def __init__(self, name: str, folder: Path) -> None:
        """Make the network, with logits as different as those of trained weights, and save it."""
        torch.manual_seed(7)
        self.name, self.file = name, folder / f"{name}.safetensors"
        self.network = get_model(name).eval()
        for module in self.network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.data.uniform_(0.5, 1.0)
                module.bias.data.normal_(0, 0.3)
        self._calibrate()
        save_file(self.network.state_dict(), self.file)

    def _calibrate(self) -> None:
        """Set the statistics of the normalizations to those of images, and spread the logits."""
        to_tensor = get_model_weights(self.name).DEFAULT.transforms(crop_size=96, resize_size=96)
        images = torch.stack([to_tensor(colours(96, 96, seed)) for seed in range(12)])
        for module in self.network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None
                module.train()
        with torch.no_grad():
            self.network(images)
            self.network.eval()
            last = list(self.network.modules())[-1]
            last.bias.sub_(self.network(images).mean(0))
            factor = 2 / self.network(images).std()
            last.weight.mul_(factor)
            last.bias.mul_(factor)

    def probabilities(self, image: Any, version: str) -> Any:
        """Return the probabilities that torchvision computes for an image in RGB."""
        transforms = get_model_weights(self.name)[version].transforms()
        with torch.no_grad():
            return torch.softmax(self.network(transforms(image).unsqueeze(0)), 1)[0]


@pytest.fixture(scope="session", params=MODELS)
def reference(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """One of the networks."""
    return Reference(request.param, tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """The fast network, for tests of what both have in common."""
    return Reference("mobilenet_v3_small", tmp_path_factory.mktemp("weights"))


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with the ten images, and what each shows."""
    folder = tmp_path_factory.mktemp("pictures")
    return folder, {name: make(folder / name) for name, make in PICTURES.items()}
