"""kaigen's own small server on transformers, for CPUs, small models and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kaigen.catalog.engines import Version, tag_version
from kaigen.compile.builders.jobs import seconds
from kaigen.compile.builders.pods import image_ref
from kaigen.compile.engines.arguments import (
    KEY_FOLDER,
    MANAGED_FLAGS,
    MODEL_SERVER_HINTS,
    hub_environment,
    key_mount,
    key_volume,
    limit_arguments,
    with_engine_args,
)
from kaigen.compile.engines.base import HUB_SERVER, Engine
from kaigen.compile.engines.launch import Launch
from kaigen.compile.engines.lifecycle import probe_flags, probe_port
from kaigen.compile.expressions import Tree
from kaigen.kinds.blocks import Image
from kaigen.kinds.topology import TopologySpec
from kaigen.sizing.constants import GIB


class Transformers(Engine):
    """kaigen's own server, which uses one GPU or none."""

    name = "transformers"
    understood = HUB_SERVER | {"adapters.strength"}
    hints = MODEL_SERVER_HINTS
    managed_flags: ClassVar[Mapping[str, str]] = {**MANAGED_FLAGS, "probe-port": "port"}
    reads_presets = True
    pulls_weights = False

    def default_resources(self, gpus: int, weights_bytes: int) -> tuple[int, int]:
        """Return CPUs and GiB of memory; all weights pass through the memory on their way to the GPU."""
        cpus, memory = super().default_resources(gpus, weights_bytes)
        return cpus, max(memory, -(-weights_bytes * 11 // (10 * GIB)) + 4)

    def version(self, spec: TopologySpec, image: Image) -> Version | None:
        """Return the version in the tag of kaigen's own image; None for an image of the spec."""
        return None if spec.image is not None else tag_version(image_ref(image))

    def probe_port(self, launch: Launch) -> int | None:
        """Return the port for probes, if the image is known to have one."""
        return probe_port(launch.version, launch.spec)

    def command(self, launch: Launch) -> dict[str, Tree]:
        """Return the server's command line."""
        spec = launch.spec
        arguments: list[Tree] = [
            f"--model={launch.weights.reference}",
            f"--served-model-name={launch.served_names[0]}",
            f"--port={spec.port}",
            *probe_flags(self.probe_port(launch)),
            *limit_arguments(spec, launch.most_context),
            *_merged(launch),
            f"--drain-timeout={seconds(spec.drain)}s",
            *([f"--api-key-file={KEY_FOLDER}/{spec.auth.key}"] if spec.auth else []),
        ]
        return {"command": list(self.facts.command), "args": with_engine_args(arguments, spec)}

    def connects(self, launch: Launch) -> bool:
        """Return False: the server loads a folder."""
        return False

    def environment(self, launch: Launch) -> Mapping[str, Tree]:
        """Return the folders that the libraries write to."""
        return hub_environment(launch)

    def secret_mounts(self, spec: TopologySpec) -> list[dict[str, Tree]]:
        """Return the mount of the API key."""
        return [key_mount()] if spec.auth else []

    def secret_volumes(self, spec: TopologySpec) -> list[Tree]:
        """Return the volume of the API key."""
        return [key_volume(spec.auth)] if spec.auth else []


def _merged(launch: Launch) -> list[Tree]:
    """Return the flag of the adapters that become part of the model."""
    folders = (adapter.folder for adapter in launch.adapters)
    strengths = ("" if each.strength is None else f"={each.strength:g}" for each in launch.spec.adapters)
    given = ",".join(map("".join, zip(folders, strengths, strict=False)))
    return [f"--merge-adapters={given}"] if given else []
