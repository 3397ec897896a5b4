"""Input of sizing: a model, the load that it must serve, and the nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.catalog.engines import Version
from kaigen.catalog.vllm_flags import flags_of, nearest_version
from kaigen.sizing.constants import GIB, constant, quantized_bits, unsized_methods
from kaigen.sizing.problem import Field, PlanError

if TYPE_CHECKING:
    from kaigen.catalog.gpus import Gpu
    from kaigen.catalog.instances import Instance
    from kaigen.catalog.presets import Preset


class ModelFacts(Struct, frozen=True):
    """Facts of a model that its memory depends on; from a preset or from the user.

    Attributes:
        name: for messages.
        weights: size of the loaded weights, in GiB.
        layers: number of decoder layers.
        heads: attention heads.
        kv_heads: KV heads.
        head_dim: width of a head; not used with `latent_dim`.
        hidden_size: width of the hidden state.
        max_context: longest context, in tokens.
        latent_dim: values per token and layer in an MLA cache: latent vector and rotary part; 0 without MLA.
        rope_dim: size of the rotary part.
        kv_layers: layers with a KV cache; None for all.
        window: tokens of the sliding window; 0 without.
        window_layers: number of layers with a sliding window.
        state_mib: state of layers without attention, in MiB, of all of them together.
        state_layers: number of layers with a state; 0 without.
        indexer_bytes: bytes per token and layer of the indexer of sparse attention.
        encoder_tokens: of the encoder, whose keys and values each layer of the decoder keeps for a sequence; 0 without.
        kv_upper_bound: why the real cache is smaller; empty when the size is exact.
        vocabulary: size; None when unknown.
        encoder: whether the model accepts images or audio.
        quantization: of the weights; empty for none.
        dtype: of weights that are not quantized.
        kv_dtype: dtype of the cache that the model was trained for; empty for that of the model.
        min_compute_capability: minimum of its kernels; None for the minimum of the engine.
    """

    name: str
    weights: float
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    hidden_size: int
    max_context: int
    latent_dim: int = 0
    rope_dim: int = 0
    kv_layers: int | None = None
    window: int = 0
    window_layers: int = 0
    state_mib: int = 0
    state_layers: int = 0
    indexer_bytes: int = 0
    encoder_tokens: int = 0
    kv_upper_bound: str = ""
    vocabulary: int | None = None
    encoder: bool = False
    quantization: str = ""
    dtype: str = "bfloat16"
    kv_dtype: str = ""
    min_compute_capability: float | None = None

    @property
    def embedding(self) -> float:
        """Size of one embedding in GiB; one pipeline stage has all of it."""
        words = self.vocabulary or constant("vocabularyUnknown")
        return min(words * self.hidden_size * 2 / GIB, constant("embeddingShareMost") * self.weights)

    @property
    def has_experts(self) -> bool:
        """Whether it is a mixture of experts: its layers have more parameters than dense ones of its width."""
        if self.encoder_tokens:  # the layers of its encoder are not counted
            return False
        parameters = self.weights * GIB / (1 if self.quantization else 2)
        words = self.vocabulary or constant("vocabularyUnknown")
        dense = self.layers * constant("denseLayer") * self.hidden_size**2
        return parameters > dense + 2 * words * self.hidden_size


class Draft(Struct, frozen=True):
    """A smaller model that writes the next tokens of each sequence, for the served one to check.

    The engine loads it next to the served one. Its layers are not split into stages, and keep as many tokens in the
    cache (source: vllm/config/speculative.py, create_draft_parallel_config and _verify_and_get_draft_tp, 0.33.0).

    Attributes:
        facts: of it.
        tensor_parallel: GPUs that share each of its layers; None for those of the served model.
    """

    facts: ModelFacts
    tensor_parallel: int | None = None


class Request(Struct, frozen=True):
    """The load and the layout that are requested. None lets kaigen choose.

    Attributes:
        context_length: tokens of the longest sequence; None for the most that fit.
        concurrency: concurrent sequences of that length in each replica.
        dtype: `bfloat16` or `float16`.
        quantization: by the engine's name; None for that of the repository.
        kv_cache_dtype: by the engine's name; None for that of the model.
        utilization: share of each GPU's memory for the engine.
        tensor_parallel: GPUs that share each layer.
        pipeline_parallel: stages that the layers are split into.
        data_parallel: copies of the model within a node.
        nodes: of each replica.
        replicas: number of replicas.
        engine_fits_context: whether the engine can choose the longest context that fits when it starts.
        version: of the engine; None for the newest.
        step_tokens: tokens of one step of the engine; None for its default.
        prefix_caching: whether the engine keeps prompts in the cache; None for its default.
        speculative_tokens: that are drafted for each step.
        draft: the model that drafts them; None for none, or one whose size is unknown.
        unknown_draft: model that drafts them and whose size is unknown; empty for none.
    """

    context_length: int | None = None
    concurrency: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    utilization: float | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None
    data_parallel: int | None = None
    nodes: int | None = None
    replicas: int = 1
    engine_fits_context: bool = True
    version: Version | None = None
    step_tokens: int | None = None
    prefix_caching: bool | None = None
    speculative_tokens: int = 0
    draft: Draft | None = None
    unknown_draft: str = ""


class Hardware(Struct, frozen=True):
    """A kind of node.

    Attributes:
        name: for messages: an instance type, or GPUs and their count.
        gpu: GPU model, or a MIG slice of one.
        count: GPUs of a node.
        usable: memory of each that programs can use, in GiB; None when it was not measured.
        nominal: memory of each by the data sheet.
        resource: extended resource that pods request.
        vendor: `nvidia`, `amd` or `aws`.
        compute_capability: of CUDA; None for other vendors.
        unsupported: why engines do not support it; empty when they do.
        instance: instance type; empty when only the GPU is known.
        cloud: of the instance type; empty when only the GPU is known.
        arch: of the processor.
        link: between GPUs; empty when unknown.
        network: between GPUs of several nodes; empty when there is none or it is unknown.
        mig: MIG profile; empty for a whole GPU.
        price: of an hour of a node; None when the repository's catalogue has none.
        currency: of the price.
    """

    name: str
    gpu: str
    count: int
    usable: float | None
    nominal: float
    resource: str
    vendor: str = "nvidia"
    compute_capability: float | None = None
    unsupported: str = ""
    instance: str = ""
    cloud: str = ""
    arch: str = "amd64"
    link: str = ""
    network: str = ""
    mig: str = ""
    price: float | None = None
    currency: str = ""


def facts_of(preset: Preset, quantization: str | None = None) -> ModelFacts:
    """Return the facts of a preset, with the weights of the repository or quantized ones.

    Raises:
        PlanError: the weights cannot be had in that quantization.
    """
    wanted = quantization or preset.quantization or ""
    mla, window = preset.mla, preset.sliding_window
    facts = ModelFacts(
        name=preset.name,
        weights=preset.weights_gib,
        layers=preset.layers,
        heads=preset.heads,
        kv_heads=preset.kv_heads,
        head_dim=preset.head_dim or 0,
        hidden_size=preset.hidden_size,
        max_context=preset.max_context,
        latent_dim=mla.kv_lora_rank + mla.rope_head_dim if mla else 0,
        rope_dim=mla.rope_head_dim if mla else 0,
        kv_layers=preset.kv_layers,
        window=window.tokens if window else 0,
        window_layers=window.layers if window else 0,
        state_mib=preset.state_mib,
        state_layers=preset.state_layers,
        indexer_bytes=preset.indexer_bytes,
        encoder_tokens=preset.encoder_tokens,
        kv_upper_bound=preset.kv_upper_bound,
        vocabulary=preset.vocabulary,
        encoder=len(preset.modalities) > 1,
        quantization=preset.quantization or "",
        dtype=preset.dtype,
        kv_dtype=preset.engine.kv_cache_dtype,
        min_compute_capability=preset.min_compute_capability,
    )
    return facts if wanted == facts.quantization else quantize(facts, wanted)


def quantize(facts: ModelFacts, method: str, version: Version | None = None) -> ModelFacts:
    """Return the facts of a model with quantized weights: linear layers shrink, embeddings do not.

    Args:
        facts: of the model.
        method: by the engine's name.
        version: of the engine, for the names in the error; None for the newest.

    Raises:
        PlanError: the method needs weights that are quantized by it, or the weights are quantized in another way.
    """
    if _same_format(method, facts.quantization):
        return facts
    if facts.quantization:
        raise PlanError(
            "KG1106",
            Field.QUANTIZATION,
            f"the weights of {facts.name} are quantized already ({facts.quantization})",
            "delete `quantization`",
        )
    bits = quantized_bits()
    if method in unsized_methods():
        return facts
    if method not in bits:
        accepted = flags_of(nearest_version(version))["quantization"].choices
        raise PlanError(
            "KG1106",
            Field.QUANTIZATION,
            f"`{method}` cannot quantize the {facts.dtype} weights of {facts.name}",
            f"use a repository with such weights, or quantize them at the start with one of "
            f"{', '.join(name for name in bits if name in accepted)}",
        )
    embeddings = min(2 * facts.embedding, facts.weights)
    weights = (facts.weights - embeddings) * bits[method] / 16 + embeddings
    return replace(facts, weights=round(weights, 2), quantization=method)


def _same_format(method: str, own: str) -> bool:
    """Return whether a method of the engine reads weights of a format: `awq_marlin` those of `awq`."""
    return bool(own) and own in method.replace("_", " ").replace("-", " ").split()


def hardware_of_instance(instance: Instance, gpus: int | None = None) -> Hardware:
    """Return nodes of an instance type, with all GPUs or some."""
    gpu = instance.gpu
    return Hardware(
        name=instance.name,
        gpu=gpu.name,
        count=instance.count if gpus is None else gpus,
        usable=instance.usable,
        nominal=instance.memory,
        resource=gpu.resource,
        vendor=gpu.vendor,
        compute_capability=gpu.compute_capability,
        unsupported=gpu.unsupported,
        instance=instance.name,
        cloud=instance.cloud,
        arch=instance.arch,
        link=instance.link,
        network=instance.network,
        price=instance.price,
        currency=instance.currency,
    )


def hardware_of_gpu(gpu: Gpu, count: int = 1, mig: str = "") -> Hardware:
    """Return nodes with GPUs of a model, or one MIG slice of it.

    Raises:
        PlanError: the GPU has no such slice, or more than one is asked for.
    """
    if not mig:
        return Hardware(
            name=f"{count} × {gpu.name}",
            gpu=gpu.name,
            count=count,
            usable=gpu.usable,
            nominal=gpu.memory,
            resource=gpu.resource,
            vendor=gpu.vendor,
            compute_capability=gpu.compute_capability,
            unsupported=gpu.unsupported,
        )
    if mig not in gpu.mig:
        raise PlanError.unknown_name(Field.MIG, f"MIG profile of {gpu.name}", mig, gpu.mig)
    if count != 1:
        raise PlanError(
            "KG1106", Field.MIG, f"{count} MIG slices cannot share a model", "request one larger slice, or whole GPUs"
        )
    return Hardware(
        name=f"{gpu.name} {mig}",
        gpu=gpu.name,
        count=1,
        usable=gpu.mig[mig],
        nominal=float(mig.split(".")[1].removesuffix("gb")),
        resource=f"nvidia.com/mig-{mig}",
        vendor=gpu.vendor,
        compute_capability=gpu.compute_capability,
        mig=mig,
    )
