"""What sizing is asked: a model, what it must serve, and the nodes there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kaigen.sizing.constants import constant, quantized_bits
from kaigen.sizing.problem import Field, PlanError

if TYPE_CHECKING:
    from kaigen.catalog.gpus import Gpu
    from kaigen.catalog.instances import Instance
    from kaigen.catalog.presets import Preset

GIB = 2**30


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What the arithmetic must know of a model; from a preset, or given by the user.

    Attributes:
        name: for messages.
        weights: size of what is loaded, in GiB.
        layers: of the decoder.
        heads: attention heads.
        kv_heads: heads of keys and values.
        head_dim: width of a head; not used with `latent_dim`.
        hidden_size: width of the hidden state.
        max_context: in tokens.
        latent_dim: values that MLA keeps of a token in each layer: latent vector and rotary part; 0 without MLA.
        rope_dim: the rotary part of it.
        kv_layers: layers that keep keys and values; None when all do.
        window: tokens that layers with a sliding window look back; 0 without.
        window_layers: how many layers have one.
        state_mib: what layers without attention keep of a sequence, in MiB.
        indexer_bytes: what sparse attention's indexer keeps of a token in each layer.
        kv_upper_bound: why the real cache is smaller; empty when it is not.
        vocabulary: size; None where it is not known.
        encoder: whether it takes images or sound.
        quantization: of the weights; empty for none.
        dtype: of what is not quantized.
        kv_dtype: dtype of the cache that the model is made for; empty for that of the model.
        min_compute_capability: that its kernels need; None for the engine's own minimum.
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
    indexer_bytes: int = 0
    kv_upper_bound: str = ""
    vocabulary: int | None = None
    encoder: bool = False
    quantization: str = ""
    dtype: str = "bfloat16"
    kv_dtype: str = ""
    min_compute_capability: float | None = None

    @property
    def embedding(self) -> float:
        """Size of one embedding in GiB, which one pipeline stage holds whole."""
        words = self.vocabulary or constant("vocabularyUnknown")
        return min(words * self.hidden_size * 2 / GIB, constant("embeddingShareMost") * self.weights)


@dataclass(frozen=True, slots=True)
class Request:
    """What must be served. None leaves a choice to kaigen; a number of parallelism or nodes overrides it.

    Attributes:
        context_length: tokens of the longest sequence.
        concurrency: sequences of that length that must fit at once, in each replica.
        dtype: `bfloat16` or `float16`.
        quantization: `fp8`, `awq`, …; the repository's own when None.
        kv_cache_dtype: `auto`, `bfloat16`, `float16` or one that begins with `fp8`.
        utilization: share of each GPU's memory that the engine may take.
        tensor_parallel: GPUs that share each layer.
        pipeline_parallel: stages that the layers are dealt to.
        data_parallel: copies of the model within a node.
        nodes: of each replica.
        replicas: how often it all runs.
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


@dataclass(frozen=True, slots=True)
class Hardware:
    """A kind of node.

    Attributes:
        name: for messages: an instance type, or GPUs and their count.
        gpu: GPU model, or a MIG slice of one.
        count: GPUs of a node.
        usable: memory of each that programs are given, in GiB; None where nobody measured it.
        nominal: its memory by the data sheet.
        resource: extended resource that pods ask for.
        vendor: `nvidia`, `amd` or `aws`.
        compute_capability: of CUDA; None for other vendors.
        unsupported: why engines cannot run on it; empty where they can.
        instance: instance type; empty where only the GPU is known.
        cloud: whose it is; empty likewise.
        arch: of the processor.
        link: between GPUs; empty where it is not known.
        network: that GPUs of several nodes can use; empty where there is none or it is not known.
        mig: profile of the slice; empty for a whole GPU.
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


def facts_of(preset: Preset, quantization: str | None = None) -> ModelFacts:
    """The facts of a preset, with its weights as the repository has them or quantized.

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
        indexer_bytes=preset.indexer_bytes,
        kv_upper_bound=preset.kv_upper_bound,
        vocabulary=preset.vocabulary,
        encoder=len(preset.modalities) > 1,
        quantization=preset.quantization or "",
        dtype=preset.dtype,
        kv_dtype=preset.engine.kv_cache_dtype,
        min_compute_capability=preset.min_compute_capability,
    )
    return facts if wanted == facts.quantization else quantized(facts, wanted)


def quantized(facts: ModelFacts, method: str) -> ModelFacts:
    """The facts of a model whose 16-bit weights are quantized: linear layers shrink, embeddings stay.

    Raises:
        PlanError: the method is not known, or the weights are quantized already.
    """
    bits = quantized_bits()
    if method not in bits:
        raise PlanError.unknown_name(Field.QUANTIZATION, "quantization", method, bits)
    if facts.quantization:
        raise PlanError(
            "KG1106",
            Field.QUANTIZATION,
            f"the weights of {facts.name} are quantized already ({facts.quantization})",
            "leave `quantization` out",
        )
    embeddings = min(2 * facts.embedding, facts.weights)
    weights = (facts.weights - embeddings) * bits[method] / 16 + embeddings
    return replace(facts, weights=round(weights, 2), quantization=method)


def hardware_of_instance(instance: Instance, gpus: int | None = None) -> Hardware:
    """Nodes of an instance type, or some GPUs of each."""
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
    )


def hardware_of_gpu(gpu: Gpu, count: int = 1, mig: str = "") -> Hardware:
    """Nodes that have GPUs of a model, or one MIG slice of it.

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
            "KG1106",
            Field.MIG,
            f"{count} MIG slices cannot work on one model: slices do not reach each other",
            "ask for one slice, a larger one, or whole GPUs",
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
