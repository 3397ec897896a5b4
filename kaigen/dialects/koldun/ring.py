"""The ring of a Koldun resource, as a Topology: a root, its workers, and the Model that the root loads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.koldun import API_VERSION, GROUP
from kaigen.dialects.koldun.options import BUFFER, NAMED_FILES, WEIGHTS, Option, check_options, put_files, read_options
from kaigen.dialects.koldun.resource import KoldunLowering, app_name
from kaigen.kinds.base import ADDRESS, DURATION, LABEL_KEY, LABEL_VALUE, QUANTITY, matches
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.lowering import PREFIX, LoweringResult
from kaigen.kinds.positioned import SourceField
from kaigen.kinds.topology import Topology
from kaigen.sizing.ring import BUFFER_TYPES, RING_FLAGS
from kaigen.yaml.document import Document

ENGINE = "distributedLlama"
DIRECTIVES = (
    *("api-key-secret", "compat", "context-length", "cpu", "engine-version", "gpus", "groups", "idle-after"),
    *("memory", "node-selector", "prometheus", "query", "replicas", "version"),
)
"""Annotations, without `kaigen.dev/`, of resources that become rings."""

MOST_WORKERS = 63
"""Most workers of a ring: a Topology has at most 64 nodes."""

_OPERATOR_PORT = 8080
"""Port of the operator's Service."""

_OUTPUT_CLAIM = "-s3-output-pvc"
"""End of the name of the claim that the operator makes for the converted files of a Model."""

_VERSIONS = {"ghcr.io/gorizond/koldun:v0.0.1": "0.16.2"}
"""Versions of distributed-llama in images of the operator (source: its Dockerfile at that tag)."""

_GROUPS = ("leaderWorkerSet", "statefulSet")
"""Workloads of a ring of several pods (source: `kinds.serving.Shape`)."""

_PLAIN = re.compile(r"^[1-9][0-9]*$")
_COUNT = re.compile(r"^[0-9]{1,2}$")


class ModelUse(Struct, frozen=True):
    """The weights of a ring.

    Attributes:
        block: the field `model` of a Topology.
        path: where the resource names them.
        document: Koldun's Model; None when the input does not have it.
    """

    block: dict[str, Any]
    path: FieldPath
    document: Document | None = None

    @property
    def spec(self) -> Any:
        """The spec of Koldun's Model, which may be invalid; empty when the input does not have it."""
        found = self.document.data.get("spec") if self.document is not None else None  # type: ignore[union-attr]
        return found if isinstance(found, dict) else {}


class Ring(Struct, frozen=True):
    """A ring.

    Attributes:
        model: its weights.
        image: image of all its pods.
        image_at: where the resource names it.
        workers: number of workers.
        workers_at: where the resource decides it.
        workers_source: where another document decides it; None for this one.
        args: options of the root.
        args_at: path of the options.
    """

    model: ModelUse
    image: str
    image_at: FieldPath
    workers: int
    workers_at: FieldPath
    workers_source: SourceField | None = None
    args: Sequence[str] = ()
    args_at: FieldPath = ()


def number_of_workers(power: int, at: FieldPath, lowering: KoldunLowering) -> int:
    """Return the number of workers for a `replicaPower`, or 0 after an error.

    It is 2^p - 1 for p, and 2p - 1 with `kaigen.dev/compat`, as in the operator.

    Args:
        power: the field.
        at: where it is written.
        lowering: collects the error.
    """
    if power <= 0:
        return 0
    # A greater power needs no exact number, and could be too large for one.
    workers = 2 * power - 1 if lowering.compat else 2 ** min(power, 31) - 1
    pods = workers + 1
    if workers > MOST_WORKERS:
        message = f"`replicaPower: {power}` asks for more than {MOST_WORKERS} workers"
        powers = "32, 16, 8, 4, 2, 1 or 0" if lowering.compat else "6 or less"
        lowering.error("KG0413", message, at, f"write {powers}")
    elif pods & workers:
        lowering.error(
            "KG0412",
            f"the operator starts {workers} workers for `replicaPower: {power}`, and {pods} pods are not a ring: their "
            "number must be a power of two",
            at,
            "delete the annotation `kaigen.dev/compat` for 2^p - 1 workers",
        )
    else:
        return workers
    return 0


def find_model(name: str, namespace: str | None, at: FieldPath, lowering: KoldunLowering) -> ModelUse:
    """Return a Model by its name.

    Args:
        name: the name.
        namespace: namespace of the Model, if it is not that of the resource.
        at: where the resource names it.
        lowering: has the documents of the run.
    """
    document = lowering.find_object(API_VERSION, "Model", name, namespace)
    elsewhere = {"namespace": namespace} if namespace is not None else {}
    return ModelUse({"name": app_name(name), **elsewhere}, at, document)


def find_claim(claim: str, at: FieldPath, lowering: KoldunLowering) -> ModelUse:
    """Return the Model whose converted files a claim has, or the claim.

    Args:
        claim: name of the claim.
        at: where the resource names it.
        lowering: has the documents of the run.
    """
    found = find_model(claim.removesuffix(_OUTPUT_CLAIM), None, at, lowering)
    return found if found.document is not None else ModelUse({"volume": {"claimName": claim}}, at)


def lower_ring(draft: Draft, ring: Ring, lowering: KoldunLowering) -> LoweringResult:
    """Return a ring as a Topology.

    Args:
        draft: the Topology, with its metadata and what the resource adds.
        ring: the ring.
        lowering: collects the problems.
    """
    given = lowering.given
    draft.put(("spec", "engine"), ENGINE, ring.image_at)
    draft.put(("spec", "image"), ring.image, ring.image_at)
    version = given.get("engine-version") or _VERSIONS.get(ring.image.partition("@")[0])
    if version is not None:
        at = lowering.directive_at("engine-version") if "engine-version" in given else ring.image_at
        draft.put(("spec", "engineVersion"), version, at)
    draft.put(("spec", "shape", "nodes"), ring.workers + 1, ring.workers_at, ring.workers_source)
    draft.put(("spec", "model"), ring.model.block, ring.model.path)
    _check_converted(ring.model, lowering)
    _put_options(draft, ring, lowering)
    _put_annotations(draft, lowering)
    stored = "volume" in ring.model.block or ring.model.spec.get("preConverted")
    record = "" if stored else "record the repository with `kaigen lock`, or "
    draft.hints["KG0394"] = f"{record}set the annotation `kaigen.dev/memory`"
    draft.hints["KG0327"] = "set the annotation `kaigen.dev/cpu` to a whole number, or delete the option"
    draft.hints["KG0352"] = "set the annotation `kaigen.dev/api-key-secret`"
    draft.hints["KG0353"] = 'set the annotation `kaigen.dev/groups: "leaderWorkerSet"`'
    if lowering.compat and draft.get(("spec", "service")) is None:
        draft.put(("spec", "service", "port"), _OPERATOR_PORT, lowering.directive_at("compat"))
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    if topology is None:
        return lowering.result()
    return lowering.result(draft.lowered(topology, _operator_names() if lowering.compat else None))


def _operator_names() -> ServingNaming:
    return ServingNaming(pod_labels={f"{GROUP}/dllama": ""}, container="root")


def _check_converted(model: ModelUse, lowering: KoldunLowering) -> None:
    """Report a Model without converted files."""
    spec = model.spec
    if model.document is not None and spec.get("conversion") is None and not spec.get("preConverted"):
        lowering.error(
            "KG0412",
            f"Model `{model.document.name}` has no `conversion`, so no ring can load it",
            model.path,
            "add `conversion: {weightsFloatType: q40}` to the Model, or `preConverted: true`",
        )
    elif spec.get("preConverted") and not spec.get("preConvertedPVCName"):
        lowering.error(
            "KG0413",
            "files that are converted already are served from a volume only",
            model.path,
            "set `preConvertedPVCName` of the Model to the PersistentVolumeClaim with the files",
        )


def _put_options(draft: Draft, ring: Ring, lowering: KoldunLowering) -> None:
    """Put the options of the Model and of the root; the root's take precedence."""
    weights = _put_type(draft, ring.model)
    in_volume = "volume" in ring.model.block
    check_options(ring.args, ring.args_at, lowering, weights=weights, unused=None if in_volume else NAMED_FILES)
    own = read_options(ring.args, ring.args_at)
    if in_volume:
        put_files(draft, ("spec", "model", "volume"), own, lowering)
    launch = ring.model.spec.get("launchOptions")
    listed = isinstance(launch, list) and all(isinstance(each, str) for each in launch)
    for name, option in read_options(launch if listed else [], ("spec", "launchOptions")).items():
        document = ring.model.document
        assert document is not None
        source = SourceField(document.mark(option.path), f"spec.launchOptions[{option.path[-1]}]")
        _put_option(draft, name, option, source, weights)
    for name, option in own.items():
        _put_option(draft, name, option, None, weights)


def _put_type(draft: Draft, model: ModelUse) -> str:
    """Return the type of the weights, and put it if kaigen does not convert them; empty when nothing states it."""
    spec, document = model.spec, model.document
    conversion = spec.get("conversion")
    if document is None or not isinstance(conversion, dict):
        return ""
    existing = bool(spec.get("preConverted"))
    for name in ("weightsFloatType", "convertWeights"):
        if conversion.get(name) in BUFFER_TYPES:
            weights: str = conversion[name]
            if existing:
                source = SourceField(document.mark(("spec", "conversion", name)), f"spec.conversion.{name}")
                draft.put(("spec", "quantization"), weights, None, source)
            return weights
    return "" if existing else "q40"


_FIELDS: dict[str, tuple[FieldPath, bool]] = {
    "max-seq-len": (("spec", "contextLength"), True),
    "nthreads": (("spec", "resources", "cpu"), False),
}
"""Fields of a Topology by the options that they decide, and whether they are numbers."""


def _put_option(draft: Draft, name: str, option: Option, source: SourceField | None, weights: str) -> None:
    origin = None if source else option.path
    if name in _FIELDS:
        path, numeric = _FIELDS[name]
        value = int(option.value) if numeric and _PLAIN.match(option.value) else option.value
        draft.put(path, value, origin, source)
    elif name in RING_FLAGS:
        draft.put(("spec", "engineArgs", name), option.value, origin, source)
    elif name == BUFFER and not weights and option.value in WEIGHTS:
        draft.put(("spec", "quantization"), WEIGHTS[option.value], origin, source)


def _put_annotations(draft: Draft, lowering: KoldunLowering) -> None:
    """Put what annotations of kaigen decide: resources, replicas, and activation on demand."""
    numbers: dict[str, FieldPath] = {
        "context-length": ("spec", "contextLength"),
        "replicas": ("spec", "shape", "replicas"),
    }
    for name, path in numbers.items():
        text = lowering.given.get(name)
        if text is not None and _PLAIN.match(text):
            _put_annotation(draft, path, int(text), name, lowering)
        elif text is not None:
            _reject(name, "a whole number from 1", lowering)
    for name in ("cpu", "memory"):
        text = lowering.given.get(name)
        if text is not None and matches(QUANTITY, text):
            _put_annotation(draft, ("spec", "resources", name), text, name, lowering)
        elif text is not None:
            _reject(name, "a quantity such as `4` or `8Gi`", lowering)
    if "api-key-secret" in lowering.given:
        at = lowering.directive_at("api-key-secret")
        draft.put(("spec", "auth", "secret", "name"), lowering.given["api-key-secret"], at)
    _put_nodes(draft, lowering)
    groups = lowering.given.get("groups")
    if groups in _GROUPS:
        draft.put(("spec", "shape", "groups"), groups, lowering.directive_at("groups"))
    elif groups is not None:
        _reject("groups", " or ".join(f"`{name}`" for name in _GROUPS), lowering)
    _put_activation(draft, lowering)


def _put_nodes(draft: Draft, lowering: KoldunLowering) -> None:
    """Put the GPUs of each pod, and the labels of its node."""
    gpus, selector = lowering.given.get("gpus"), lowering.given.get("node-selector")
    if gpus is not None and _COUNT.match(gpus):
        draft.put(("spec", "resources", "gpus"), int(gpus), lowering.directive_at("gpus"))
    elif gpus is not None:
        _reject("gpus", "the number of GPUs of each pod, 0 or 1", lowering)
    if selector is None:
        return
    labels = [item.strip().partition("=") for item in selector.split(",")]
    if all(equals and matches(LABEL_KEY, key) and matches(LABEL_VALUE, value) for key, equals, value in labels):
        selected = {key: value for key, _, value in labels}
        draft.put(("spec", "placement", "nodeSelector"), selected, lowering.directive_at("node-selector"))
    else:
        _reject("node-selector", "labels such as `accelerator=nvidia,zone=a`", lowering)


def _put_annotation(draft: Draft, path: FieldPath, value: Any, name: str, lowering: KoldunLowering) -> None:
    """Put the value of an annotation, and report an option of the same resource that it replaces."""
    replaced = next((option for option, (field, _) in _FIELDS.items() if field == path), "")
    # An option of the Model is a default, and has a place in the document of the Model.
    if replaced and draft.get(path) is not None and path not in draft.sources:
        lowering.warning(
            "KG0405",
            f"`--{replaced}` has no effect: the annotation `{PREFIX}{name}` decides",
            draft.origins[path],
            "delete one of the two",
        )
    draft.put(path, value, lowering.directive_at(name))


def _put_activation(draft: Draft, lowering: KoldunLowering) -> None:
    """Put the autoscaler that starts a ring when there are requests, and stops it when there are none.

    Without a query, a router counts the requests, and holds them until the ring is ready.
    """
    given = lowering.given
    query, address, idle = given.get("query"), given.get("prometheus"), given.get("idle-after")
    for name, missing in (("query", "prometheus"), ("prometheus", "query")):
        if name in given and missing not in given:
            message = f"`kaigen.dev/{name}` requires `kaigen.dev/{missing}`"
            lowering.error("KG0406", message, lowering.directive_at(name), f"add `kaigen.dev/{missing}`")
            return
    if query is None and idle is None:
        return
    at = lowering.directive_at("idle-after" if query is None else "query")
    autoscale: FieldPath = ("spec", "autoscale")
    scaling = {"min": 0, "max": 1, **(draft.get(autoscale) or {})}
    draft.put(autoscale, {**scaling, "scaler": "keda"}, draft.origins.get(autoscale, at))
    if query is None:
        draft.put(("spec", "router"), {}, at)
    else:
        if not matches(ADDRESS, address or ""):
            _reject("prometheus", "the URL of a Prometheus server", lowering)
        draft.put((*autoscale, "query"), query, at)
        draft.put((*autoscale, "prometheus", "address"), address, lowering.directive_at("prometheus"))
    if draft.get((*autoscale, "target")) is None:
        draft.put((*autoscale, "target"), 1, at)
    if idle is not None:
        if not matches(DURATION, idle):
            _reject("idle-after", "a duration such as `10m`", lowering)
        draft.put((*autoscale, "idleAfter"), idle, lowering.directive_at("idle-after"))


def _reject(name: str, expected: str, lowering: KoldunLowering) -> None:
    lowering.error("KG0406", f"`kaigen.dev/{name}` must be {expected}", lowering.directive_at(name))
