"""kaigen's own images as kaigen.yaml and pins override them, and the mirror that they are pulled from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from kaigen.catalog.images import default_images
from kaigen.kinds.base import NO_BLANKS, Block

Image = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS)]


class Images(Block):
    """kaigen's own images."""

    downloader: Image | None = Field(
        None,
        description="Downloads weights, waits for them, and verifies them.",
        examples=["registry.example/kaigen/downloader@sha256:…"],
    )
    kubectl: Image | None = Field(
        None,
        description="Watches the workload of an app in `helm test`.",
        examples=["registry.k8s.io/kubectl:v1.36.0"],
    )
    vllm: Image | None = Field(
        None,
        description="Serves models; the version in its tag determines how it spans nodes.",
        examples=["registry.example/vllm/vllm-openai:v0.33.0"],
    )
    vllm_rocm: Image | None = Field(
        None,
        description="vLLM on AMD's GPUs.",
        examples=["registry.example/vllm/vllm-openai-rocm:v0.33.0"],
    )
    vllm_cpu: Image | None = Field(
        None,
        description="vLLM without GPUs.",
        examples=["registry.example/vllm/vllm-openai-cpu:v0.33.0"],
    )
    chat: Image | None = Field(
        None, description="kaigen's own small server.", examples=["registry.example/kaigen/chat@sha256:…"]
    )


def own_images(
    named: Mapping[str, str], registry: str, pinned: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return kaigen's own images as pods name them, and as they are without the mirror.

    Args:
        named: the images that kaigen.yaml overrides; these are never mirrored.
        registry: the mirror; empty for none.
        pinned: the images that were promoted; they are mirrored like the defaults that they are versions of.
    """
    defaults = default_images()
    plain = {**defaults, **named, **pinned}
    mirrored = {
        name: _mirrored(ref, registry)
        if registry and name not in named and _repository(ref) == _repository(defaults[name])
        else ref
        for name, ref in plain.items()
    }
    return mirrored, plain


def _mirrored(ref: str, registry: str) -> str:
    host, _, rest = ref.partition("/")
    return (
        f"{registry}/{rest}"
        if rest and ("." in host or ":" in host or host == "localhost")
        else f"{registry}/{ref}"
    )


def _repository(ref: str) -> str:
    """The image reference without its tag and digest."""
    name = ref.partition("@")[0]
    return name[: name.rindex(":")] if ":" in name.rpartition("/")[2] else name
