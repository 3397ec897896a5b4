"""A container that the spec describes by image, command and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kaigen.compile.builders.pods import entry_point
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.launch import Launch
from kaigen.compile.engines.understood import PODS
from kaigen.compile.expressions import Tree


class Container(Engine):
    """Any server in a container."""

    name = "container"
    understood = PODS | {"command", "args", "storage", "transfer"}
    hints: ClassVar[Mapping[str, str]] = {
        "": "use `command`, `args` and `env` instead",
        "shape": "use `engine: vllm`, which supports it",
        "model.huggingFace": "create a Model and set `model` to its name, or pull the weights with `env` and `args`",
        "model.facts": "leave it out: kaigen has no memory model of the container",
    }
    requires_model = False

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the entry point of the spec."""
        return entry_point(launch.spec.command, launch.spec.args)
