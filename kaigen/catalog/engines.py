"""Facts about the serving engines, and how long they may take to start."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.catalog import yaml_files


MIB = 1024 * 1024


Version = tuple[int, ...]
"""A version such as 0.25.1."""


class NodeSupport(Struct, frozen=True):
    """How versions of an engine run one replica on several nodes.

    Attributes:
        since: first version.
        native: whether the engine can do it without Ray.
        ray: whether its image contains Ray.
    """

    since: Version
    native: bool
    ray: bool


class EngineFacts(Struct, frozen=True):
    """One engine as the catalogue describes it.

    Attributes:
        name: value of `engine` in a spec.
        title: name in sentences.
        image: name of its image among kaigen's; empty when the spec must name one.
        other_images: name of its image by the vendor of the GPUs, `none` without GPUs; others use `image`.
        command: entry point; empty for the image's.
        templates: folder of chat templates in its image, by the vendor of the GPUs, `none` without GPUs.
        ready: HTTP path of the readiness probe; empty for a probe that opens the port.
        live: HTTP path of the liveness probe; empty for a probe that opens the port.
        metrics_path: HTTP path of its metrics.
        metrics: metric names by what they measure, as in engines.yaml.
        drain_metrics: metrics that count requests; empty when the engine drains itself.
        guarded: path below which the engine asks for the API key.
        planned: whether kaigen calculates GPUs, nodes and parallelism of its models.
        adapters: whether it serves LoRA adapters.
        node_support: how it spans nodes, oldest version first; empty when it runs on one node.
        flags: first version of flags that not every version knows.
        not_float16: architectures that it refuses to run in float16.
        fits_context_since: first version that chooses the longest context that fits; None when none does.
    """

    name: str
    title: str
    image: str = ""
    other_images: Mapping[str, str] = {}
    templates: Mapping[str, str] = {}
    command: Sequence[str] = ()
    ready: str = ""
    live: str = ""
    metrics_path: str = "/metrics"
    metrics: Mapping[str, str] | None = None
    drain_metrics: Sequence[str] = ()
    guarded: str = "/"
    planned: bool = False
    adapters: bool = False
    node_support: Sequence[NodeSupport] = ()
    flags: Mapping[str, Version] = {}
    not_float16: Sequence[str] = ()
    fits_context_since: tuple[int, ...] | None = None

    def image_for(self, vendor: str) -> str:
        """Return the name of its image for GPUs of a vendor, `none` for no GPUs; empty when the spec must name one."""
        return self.other_images.get(vendor, self.image)

    def templates_for(self, vendor: str) -> str:
        """Return the folder of chat templates in its image for a vendor; empty when it is unknown."""
        return self.templates.get(vendor, "")

    def knows(self, flag: str, version: Version | None) -> bool:
        """Return whether a version knows a flag of `flags`; False for None, since an unknown flag ends the program."""
        return version is not None and self.flags[flag] <= version

    def support_of(self, version: Version | None) -> NodeSupport | None:
        """Return how a version spans nodes, the newest for None; None when it cannot."""
        known = [support for support in self.node_support if version is None or support.since <= version]
        return known[-1] if known else None

    def fits_context(self, version: tuple[int, ...] | None) -> bool:
        """Return whether a version is known to choose the longest context that fits when it starts."""
        since = self.fits_context_since
        return since is not None and version is not None and version >= since


def engine_names() -> tuple[str, ...]:
    """Return the names of all engines, the default first."""
    return tuple(_engines())


def engine_choices() -> str:
    """Return what the engines are, as a list in a sentence."""
    *others, last = (row["about"] for row in _engines().values())
    return f"{', '.join(others)}, or {last}"


def engine_facts(name: str) -> EngineFacts:
    """Return the facts about an engine.

    Raises:
        KeyError: unknown engine.
    """
    row = _engines()[name]
    metrics = dict(row["metrics"])
    return EngineFacts(
        name=name,
        title=row["title"],
        image=row["image"],
        other_images=row["other_images"],
        templates=row.get("templates", {}),
        command=row["command"],
        ready=row["ready"],
        live=row["live"],
        metrics_path=metrics.pop("path"),
        metrics=metrics,
        drain_metrics=row["drain_metrics"],
        guarded=row["guarded"],
        planned=row["planned"],
        adapters=row["adapters"],
        node_support=[
            NodeSupport(parse_version(entry["since"]), entry["native"], entry["ray"]) for entry in row["nodes"]
        ],
        flags={flag: parse_version(since) for flag, since in row["flags"].items()},
        not_float16=row.get("notFloat16", ()),
        fits_context_since=parse_version(row["fits_context"]) if row["fits_context"] else None,
    )


def _engines() -> Mapping[str, Any]:
    engines: Mapping[str, Any] = yaml_files.load("engines")["engines"]
    return engines


def parse_version(text: str) -> Version:
    """Return a version such as `0.25.1` as comparable numbers."""
    return tuple(int(part) for part in text.split("."))


_NUMBER = r"v?([0-9]+(?:\.[0-9]+){1,3})(?!\.?[0-9])"
_TAGS = (re.compile(rf"(?:^|.*?[-_])vllm[-_]?{_NUMBER}"), re.compile(_NUMBER))
"""Forms of tags, the most specific one first.

vLLM's own are `v0.33.0`, `v0.8.5.post1` and `v0.11.0rc1`, further with an ending such as `-x86_64`. AMD's name the
version of ROCm first: `rocm6.4.1_vllm_0.10.0_20250812` (https://hub.docker.com/r/rocm/vllm/tags).
"""

_FIRST_YEAR = 20
"""Least first number of a date, as in NVIDIA's `25.09-py3`, which is not the version of an engine."""


def tag_version(reference: str) -> Version | None:
    """Return the version in the tag of an image reference, of at most three numbers; None when the tag has none."""
    name = reference.partition("@")[0]
    tag = name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""
    match = next((found for form in _TAGS if (found := form.match(tag))), None)
    version = parse_version(match[1])[:3] if match else None
    return version if version is not None and version[0] < _FIRST_YEAR else None


def startup_seconds(weights: int | None, source: str) -> int:
    """Return how long an engine may take to become ready, in seconds, rounded up to minutes.

    Args:
        weights: size of the weights in bytes; None when it is unknown.
        source: where the weights come from: `hub`, `bucket`, `volume` or `image`.
    """
    facts = yaml_files.load("engines")["startup"]
    if weights is None:
        return int(facts["unknown"])
    seconds = facts["base"] + weights / (facts["rates"][source] * MIB)
    return int(min(facts["most"], 60 * -(-seconds // 60)))
