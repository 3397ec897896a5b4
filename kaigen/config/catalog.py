"""The catalogue of a repository, `catalog/*.yaml`: its own presets, GPUs, instance types and prices."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from msgspec import Meta, field

from kaigen.catalog.instances import CLOUDS
from kaigen.kinds.base import NO_BLANKS, text
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION, KindEntry

Word = Annotated[str, text(NO_BLANKS, min_length=1, max_length=253)]
Count = Annotated[int, Meta(ge=1)]
Size = Annotated[float, Meta(gt=0)]
Dtype = Literal["bfloat16", "float16"]
Quantization = Literal["fp8", "int4", "awq", "gptq", "nvfp4", "mxfp4"]
WeightsType = Dtype | Quantization
Cloud = Literal["azure", "azure-arc", "aws", "gcp", "on-premises"]
assert Cloud.__args__ == CLOUDS  # type: ignore[attr-defined]

_Aliases = Annotated[list[Word], Meta(description="Other names.")]
_Notes = Annotated[list[str], Meta(description="Notes.")]
_Source = Annotated[
    str | None, Meta(description="Where the facts are from.", examples=["config.json of acme/llama-8b at 0e9e39f2"])
]


class MlaRow(Block):
    """Values per token that a layer caches."""

    kv_lora_rank: Annotated[Count, Meta(description="Latent vector.")]
    rope_head_dim: Annotated[Count, Meta(description="Part of the key with the position.")]


class SlidingWindowRow(Block):
    """Layers with a sliding window."""

    tokens: Annotated[Count, Meta(description="Tokens of the window.")]
    layers: Annotated[Count, Meta(description="Number of these layers.")]


class EngineRow(Block):
    """Engine settings that differ from the engine's own defaults."""

    tool_call_parser: Annotated[str | None, Meta(description="vLLM's --tool-call-parser.")] = None
    tool_chat_template: Annotated[
        Annotated[str, text(r"^([a-z0-9_]+/)*[a-z0-9_.]+\.jinja$")] | None,
        Meta(description="Chat template for tools or scores, in vLLM's examples/ folder."),
    ] = None
    reasoning_parser: Annotated[str | None, Meta(description="vLLM's --reasoning-parser.")] = None
    tokenizer_mode: Annotated[str | None, Meta(description="vLLM's --tokenizer-mode.")] = None
    config_format: Annotated[str | None, Meta(description="vLLM's --config-format.")] = None
    load_format: Annotated[str | None, Meta(description="vLLM's --load-format.")] = None
    kv_cache_dtype: Annotated[
        str | None, Meta(description="vLLM's --kv-cache-dtype that the model is designed for.")
    ] = None
    args: Annotated[
        dict[str, str | bool] | None,
        Meta(description="Other arguments of vLLM, without dashes; true for a flag without a value."),
    ] = None
    env: Annotated[dict[str, str] | None, Meta(description="Environment variables.")] = None
    trust_remote_code: Annotated[
        Literal[True] | None, Meta(description="Whether the engine must run code from the model's repository.")
    ] = None
    trust_remote_code_reason: Annotated[str | None, Meta(description="Reason for these settings.")] = None


class PresetRow(Block):
    """One model."""

    name: Annotated[str, text(r"^[a-z0-9][a-z0-9.-]*$", max_length=128, description="Name of the preset.")]
    repo: Annotated[
        str, text(r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", max_length=128, description="Hugging Face repository.")
    ]
    licence: Annotated[str, Meta(description="License, as in the model card.")]
    architecture: Annotated[str, Meta(description="Class name in config.json.")]
    modalities: Annotated[list[Literal["text", "image", "audio"]], Meta(min_length=1, description="Kinds of input.")]
    layers: Annotated[Count, Meta(description="Layers of the decoder.")]
    hidden_size: Annotated[Count, Meta(description="Width of the hidden state.")]
    heads: Annotated[Count, Meta(description="Attention heads.")]
    kv_heads: Annotated[Count, Meta(description="Heads of keys and values.")]
    attention: Annotated[Literal["mha", "gqa", "mqa", "mla"], Meta(description="Format of the KV cache.")]
    max_context: Annotated[Count, Meta(description="Tokens.")]
    dtype: Annotated[Dtype, Meta(description="Type of the weights that are not quantized.")]
    weights_gib: Annotated[
        dict[WeightsType, Size],
        Meta(
            min_length=1,
            description="Size of the loaded weights in GiB, by dtype or quantization; the repository's own first.",
            examples=[{"bfloat16": 14.19}],
        ),
    ] = field(name="weightsGiB")
    aliases: _Aliases = field(default_factory=list)
    revision: Annotated[
        Annotated[str, text(r"^[0-9a-f]{40}$")] | None, Meta(description="Commit of the repository.")
    ] = None
    gated: Annotated[bool | None, Meta(description="Whether the repository requires a token; omitted if unknown.")] = (
        None
    )
    base: Annotated[
        Literal[True] | None, Meta(description="Whether it is a base model, not trained to follow instructions.")
    ] = None
    head_dim: Annotated[Count | None, Meta(description="Width of a head; omitted for MLA.")] = None
    mla: Annotated[MlaRow | None, Meta(description="Values per token that a layer caches.")] = None
    kv_layers: Annotated[Count | None, Meta(description="Layers with a KV cache; omitted if all layers have one.")] = (
        None
    )
    sliding_window: Annotated[SlidingWindowRow | None, Meta(description="Layers with a sliding window.")] = None
    state_mib: Annotated[
        Count | None,
        Meta(
            description="State per sequence of layers without attention: recurrent state in 32 bits, convolution in "
            "16 bits."
        ),
    ] = field(name="stateMiBPerSequence", default=None)
    state_layers: Annotated[
        Count | None,
        Meta(description="Layers with such a state; omitted if they are all layers without a KV cache."),
    ] = None
    indexer_bytes_per_token_per_layer: Annotated[
        Count | None, Meta(description="Cache of sparse attention's indexer.")
    ] = None
    encoder_tokens: Annotated[
        Count | None,
        Meta(description="Tokens of an encoder, whose keys and values each layer of the decoder caches per sequence."),
    ] = None
    kv_upper_bound: Annotated[str | None, Meta(description="Why the cache is smaller than the other fields imply.")] = (
        None
    )
    vocabulary_size: Annotated[Count | None, Meta(description="Size of the vocabulary.")] = None
    parameters_b: Annotated[
        Size | None, Meta(description="Billions of parameters; for unquantized weights, their size divided by 2 bytes.")
    ] = None
    quantization: Annotated[
        Quantization | None, Meta(description="Quantization of the repository's weights; omitted if they have none.")
    ] = None
    min_compute_capability: Annotated[
        Size | None, Meta(description="CUDA compute capability that its kernels require.")
    ] = None
    engine: Annotated[
        EngineRow | None, Meta(description="Engine settings that differ from the engine's own defaults.")
    ] = None
    engines: Annotated[
        list[Literal["vllm", "transformers"]], Meta(min_length=1, description="Engines that serve it.")
    ] = field(default_factory=lambda: ["vllm"])
    notes: _Notes = field(default_factory=list)
    source: _Source = None


class GpuLabels(Block):
    """Values of node labels."""

    product: Annotated[str | None, Meta(description="nvidia.com/gpu.product")] = None
    aks: Annotated[str | None, Meta(description="nvidia.com/gpu.product on AKS, where it differs.")] = None
    amd: Annotated[str | None, Meta(description="amd.com/gpu.product-name")] = None
    gke: Annotated[str | None, Meta(description="cloud.google.com/gke-accelerator")] = None
    karpenter: Annotated[str | None, Meta(description="karpenter.k8s.aws/instance-gpu-name")] = None
    karpenter_memory: Annotated[
        str | None,
        Meta(description="karpenter.k8s.aws/instance-gpu-memory, where GPUs of several sizes have the same name."),
    ] = None


class GpuRow(Block):
    """One GPU model."""

    name: Annotated[str, text(r"^[A-Za-z0-9][A-Za-z0-9-]*$", max_length=63, description="Name of the GPU.")]
    vendor: Annotated[Literal["nvidia", "amd", "aws"], Meta(description="Manufacturer.")]
    memory_gib: Annotated[Count, Meta(description="Nominal memory.")] = field(name="memoryGiB")
    resource: Annotated[
        Word, Meta(description="Extended resource that its device plugin offers.", examples=["nvidia.com/gpu"])
    ]
    labels: Annotated[
        GpuLabels,
        Meta(
            description="Value of the node label, by the column that a profile names; omitted if such clusters have "
            "no label."
        ),
    ]
    usable_gib: Annotated[Size | None, Meta(description="Memory available to programs; omitted if not measured.")] = (
        field(name="usableGiB", default=None)
    )
    aliases: _Aliases = field(default_factory=list)
    compute_capability: Annotated[Size | None, Meta(description="CUDA compute capability.")] = None
    mig: Annotated[
        dict[Annotated[str, text(r"^[0-9]g\.[0-9]+gb$")], Size] | None,
        Meta(description="Memory available to programs in a slice, in GiB, by MIG profile."),
    ] = None
    unsupported: Annotated[str | None, Meta(description="Why engines cannot run on it.")] = None
    source: _Source = None


class InstanceLabels(Block):
    """Values of node labels that differ from the GPU's."""

    gke: Annotated[str | None, Meta(description="cloud.google.com/gke-accelerator")] = None


class InstanceRow(Block):
    """One instance type."""

    name: Annotated[Word, Meta(description="Name: the value of the node label `node.kubernetes.io/instance-type`.")]
    cloud: Annotated[Cloud, Meta(description="Cloud.")]
    gpu: Annotated[Word, Meta(description="GPU model.")]
    count: Annotated[Count, Meta(description="Number of GPUs or of partitions of one.")]
    aliases: _Aliases = field(default_factory=list)
    memory_gib: Annotated[Size | None, Meta(description="Nominal memory, if the instance has a fraction of a GPU.")] = (
        field(name="memoryGiB", default=None)
    )
    usable_gib: Annotated[
        Size | None, Meta(description="Memory available to programs, if the instance has a fraction of a GPU.")
    ] = field(name="usableGiB", default=None)
    arch: Annotated[Literal["arm64"] | None, Meta(description="Processor architecture; default amd64.")] = None
    nvme: Annotated[Literal[True] | None, Meta(description="Whether it has local NVMe disks.")] = None
    link: Annotated[Literal["nvlink", "infinity-fabric", "pcie"] | None, Meta(description="Link between its GPUs.")] = (
        None
    )
    network: Annotated[
        Literal["infiniband", "efa", "roce", "gpudirect-tcpx", "gpudirect-tcpxo"] | None,
        Meta(description="Network that GPUs of several nodes can use directly."),
    ] = None
    labels: Annotated[InstanceLabels | None, Meta(description="Values of node labels that differ from the GPU's.")] = (
        None
    )
    notes: _Notes = field(default_factory=list)
    source: _Source = None


class CatalogFile(Block):
    """Presets, GPUs, instance types and prices of a repository, in the format of kaigen's own tables."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="API version.")]
    kind: Annotated[Literal["Catalog"], Meta(description="The kind.")]
    presets: Annotated[list[PresetRow], Meta(description="Models by name.")] = field(default_factory=list)
    gpus: Annotated[list[GpuRow], Meta(description="GPU models.")] = field(default_factory=list)
    instances: Annotated[list[InstanceRow], Meta(description="Instance types.")] = field(default_factory=list)
    currency: Annotated[
        Annotated[str, text(r"^[A-Z]{3}$")] | None, Meta(description="Currency of the prices.", examples=["USD"])
    ] = None
    prices: Annotated[
        dict[Word, Annotated[float, Meta(ge=0)]],
        Meta(description="Price of an hour by instance type, kaigen's or your own.", examples=[{"p5.48xlarge": 55.04}]),
    ] = field(default_factory=dict)
    discounts: Annotated[
        dict[Word, Annotated[float, Meta(ge=0, le=100)]],
        Meta(
            description="Percent off the list price of a cloud, `aws` or `azure`, or of an instance type, for those "
            "without a price in `prices`.",
            examples=[{"aws": 28, "p5.48xlarge": 45}],
        ),
    ] = field(default_factory=dict)
    carbon: Annotated[
        dict[Word, Annotated[float, Meta(ge=0)]],
        Meta(
            description="Grams of CO2e of a kilowatt hour, by the `region` of an environment. kaigen has no own table.",
            examples=[{"region-a": 50, "region-b": 400}],
        ),
    ] = field(default_factory=dict)
    watts: Annotated[
        dict[Word, Size],
        Meta(
            description="Power of a node under load in watts, by instance type. kaigen has no own table.",
            examples=[{"p5.48xlarge": 9000}],
        ),
    ] = field(default_factory=dict)


CATALOG_ENTRY = KindEntry(
    API_VERSION,
    "Catalog",
    "kaigen.config.catalog:CatalogFile",
    "presets, GPUs, instance types and prices of a repository",
)


def row_problems(table: str, row: Mapping[str, object]) -> Iterable[tuple[tuple[str, ...], str, str]]:
    """Return contradictions in a row that is valid by the schema: field, what is wrong, and what to do."""
    if table == "presets":
        yield from _preset_problems(row)
    elif table == "gpus" and "usableGiB" not in row and "unsupported" not in row:
        yield ("name",), "a GPU requires `usableGiB` or `unsupported`", "set one of them"
    elif table == "instances" and "memoryGiB" in row and "usableGiB" not in row:
        yield ("memoryGiB",), "`memoryGiB` requires `usableGiB`", "set both, or delete `memoryGiB`"


def _preset_problems(row: Mapping[str, object]) -> Iterable[tuple[tuple[str, ...], str, str]]:
    heads, kv_heads, attention = row["heads"], row["kvHeads"], row["attention"]
    assert isinstance(heads, int)
    assert isinstance(kv_heads, int)
    if heads % kv_heads:
        yield ("kvHeads",), f"{heads} heads cannot share {kv_heads} KV heads", "one must divide the other"
    elif attention == "mha" and heads != kv_heads:
        yield ("attention",), "with `mha`, `kvHeads` equals `heads`", "write `gqa`"
    elif attention == "mqa" and kv_heads != 1:
        yield ("attention",), "with `mqa`, `kvHeads` is 1", "write `gqa`"
    if (attention == "mla") != ("mla" in row):
        yield ("attention",), "attention `mla` and the block `mla` require each other", "set both, or neither"
    if attention != "mla" and "headDim" not in row:
        yield ("name",), "a model without MLA requires `headDim`", "set it; often hiddenSize / heads"
    weights = row["weightsGiB"]
    assert isinstance(weights, Mapping)
    first, own = next(iter(weights)), row.get("quantization") or row["dtype"]
    if first != own:
        message = f"the first size is of `{first}`, but the repository's weights are `{own}`"
        yield ("weightsGiB",), message, f"list `{own}` first"
