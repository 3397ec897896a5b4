"""kaigen's own images as kaigen.yaml and pins override them, and the mirror that they are pulled from."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, to_builtins

from kaigen.catalog.images import default_images
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block

Image = Annotated[str, text(NO_BLANKS, min_length=1, max_length=512)]


class Images(Block):
    """kaigen's own images."""

    downloader: Annotated[
        Image | None,
        Meta(
            description="Downloads weights, waits for them, and verifies them.",
            examples=["registry.example/kaigen/downloader@sha256:…"],
        ),
    ] = None
    convert: Annotated[
        Image | None,
        Meta(
            description="Converts downloaded weights to another format: `convert` of a Model.",
            examples=["registry.example/kaigen/convert@sha256:…"],
        ),
    ] = None
    reaper: Annotated[
        Image | None,
        Meta(
            description="Creates volumes that expire, and deletes them and finished pods.",
            examples=["registry.example/kaigen/reaper@sha256:…"],
        ),
    ] = None
    kubectl: Annotated[
        Image | None,
        Meta(
            description="Watches the workload of an app in `helm test`.", examples=["registry.k8s.io/kubectl:v1.36.0"]
        ),
    ] = None
    buildkit: Annotated[
        Image | None,
        Meta(
            description="Rootless BuildKit: builds the images of `build`.",
            examples=["registry.example/moby/buildkit:v0.33.0-rootless"],
        ),
    ] = None
    endpoint_picker: Annotated[
        Image | None,
        Meta(
            description="Chooses a replica for each request: `router` of a Topology.",
            examples=["registry.k8s.io/gateway-api-inference-extension/epp:v1.5.0"],
        ),
    ] = None
    envoy: Annotated[
        Image | None,
        Meta(
            description="Passes requests on to replicas: `router` of a Topology.",
            examples=["registry.example/envoyproxy/envoy:v1.40.0"],
        ),
    ] = None
    vllm: Annotated[
        Image | None,
        Meta(
            description="Serves models; the version in its tag determines how it spans nodes.",
            examples=["registry.example/vllm/vllm-openai:v0.33.0"],
        ),
    ] = None
    vllm_rocm: Annotated[
        Image | None,
        Meta(description="vLLM on AMD's GPUs.", examples=["registry.example/vllm/vllm-openai-rocm:v0.33.0"]),
    ] = None
    vllm_cpu: Annotated[
        Image | None, Meta(description="vLLM without GPUs.", examples=["registry.example/vllm/vllm-openai-cpu:v0.33.0"])
    ] = None
    classify: Annotated[
        Image | None,
        Meta(
            description="Labels images: `workload: classify` of a Job.",
            examples=["registry.example/kaigen/classify@sha256:…"],
        ),
    ] = None
    train: Annotated[
        Image | None,
        Meta(
            description="Fine-tunes language models: `tune` of a Job.",
            examples=["registry.example/kaigen/train@sha256:…"],
        ),
    ] = None
    distributed_llama: Annotated[
        Image | None,
        Meta(
            description="distributed-llama, with `dllama` and `dllama-api` on the path; kaigen has no default for it.",
            examples=["registry.example/distributed-llama:v0.16.4"],
        ),
    ] = None
    ringproxy: Annotated[
        Image | None,
        Meta(
            description="Checks requests before distributed-llama reads them, and waits for its workers.",
            examples=["registry.example/kaigen/ringproxy@sha256:…"],
        ),
    ] = None
    chat: Annotated[
        Image | None, Meta(description="kaigen's own small server.", examples=["registry.example/kaigen/chat@sha256:…"])
    ] = None
    evaluate: Annotated[
        Image | None,
        Meta(
            description="lm-evaluation-harness, for a Job with `workload: evaluate`.",
            examples=["registry.example/kaigen/evaluate@sha256:…"],
        ),
    ] = None
    notebook: Annotated[
        Image | None,
        Meta(
            description="JupyterLab: the default image of a Notebook.",
            examples=["registry.example/kaigen/notebook@sha256:…"],
        ),
    ] = None
    pyarrow: Annotated[
        Image | None,
        Meta(
            description="pyarrow, which a Job with `workload: generate` copies to read and write Parquet.",
            examples=["registry.example/kaigen/pyarrow@sha256:…"],
        ),
    ] = None
    oauth2_proxy: Annotated[
        Image | None,
        Meta(
            description="oauth2-proxy: asks users of a Notebook with a `route` to sign in.",
            examples=["registry.example/oauth2-proxy/oauth2-proxy:v7.15.6"],
        ),
    ] = None


def given_images(images: Images) -> dict[str, str]:
    """Return the references of the images that a block sets, by name."""
    return {name: ref for name, ref in to_builtins(images).items() if ref is not None}


def own_images(
    named: Mapping[str, str], registry: str, pinned: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return kaigen's own images as pods name them, and as they are without the mirror.

    Args:
        named: the images that kaigen.yaml sets.
        registry: the mirror; empty for none. It has the defaults and other versions of them; images of another
            repository stay where they are.
        pinned: the images that were promoted.
    """
    defaults = default_images()
    plain = {**defaults, **named, **pinned}
    mirrored = {
        name: _mirrored(ref, registry)
        if registry and name in defaults and image_repository(ref) == image_repository(defaults[name])
        else ref
        for name, ref in plain.items()
    }
    return mirrored, plain


def _mirrored(ref: str, registry: str) -> str:
    host, _, rest = ref.partition("/")
    return f"{registry}/{rest}" if rest and ("." in host or ":" in host or host == "localhost") else f"{registry}/{ref}"


def image_repository(ref: str) -> str:
    """Return an image reference without its tag and digest."""
    name = ref.partition("@")[0]
    return name[: name.rindex(":")] if ":" in name.rpartition("/")[2] else name
