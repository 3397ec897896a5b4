"""`tuning` as a Job with `tune`, a Model with the weights, and what pushes the adapter as an image."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito import presets
from kaigen.dialects.kaito.blocks import DataDestination, DataSource, TuningV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.resource import MODEL, Options, ResourceLowering
from kaigen.dialects.kaito.serving import claim_name
from kaigen.dialects.kaito.training import DATA, Config, read_config
from kaigen.dialects.kaito.training_settings import data_extension, put_settings
from kaigen.dialects.kaito.tuning_checks import check_image, check_url
from kaigen.dialects.kaito.tuning_script import PUSHER
from kaigen.dialects.kaito.weights import find_token, report_unused, warn_of_gate
from kaigen.kinds.job import Job
from kaigen.kinds.lowering import Lowered
from kaigen.kinds.model import Model
from kaigen.programs.files import program

if TYPE_CHECKING:
    from kaigen.catalog.presets import Preset

_OUTPUT_SIZE, _ADAPTER_SIZE = "20Gi", "5Gi"
"""Volumes of a run whose adapter is pushed: adapter and checkpoints with the state of the optimizer; the adapter."""

_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_ADAPTER, _LOGIN = "/adapter", "/etc/login"


def lower_tune(
    tuning: TuningV1Alpha1,
    at: FieldPath,
    draft: Draft,
    model: presets.NamedModel | None,
    nodes: Nodes,
    options: Options,
    lowering: ResourceLowering,
) -> list[Lowered]:
    """Return a fine-tuning run as a Job with `tune`, with the specs that it needs.

    Args:
        tuning: the block.
        at: its path.
        draft: the Job, with its placement.
        model: that is trained; None after an error.
        nodes: that the Job uses.
        options: of the resource.
        lowering: collects problems.
    """
    if nodes.gpus is None:
        draft.put(("spec", "resources", "gpus"), 1)
    if model is not None and model.preset is not None:
        _check_preset(model.name, model.preset, (*at, "preset", "name"), lowering)
    config = read_config(tuning, at, lowering)
    if config is not None:
        architecture = model.preset.architecture if model is not None and model.preset is not None else ""
        put_settings(draft, config, architecture)
        draft.origins["spec", "tune"] = at
        draft.origins["spec", "tune", "method"] = (*at, "method")
        _put_input(draft, tuning.input, (*at, "input"), config, lowering)
        _put_output(draft, tuning, (*at, "output"), config, lowering)
    _put_secrets(draft, tuning, at, lowering)
    if model is None or lowering.failed:
        return []
    specs = []
    if options.model:
        draft.put(("spec", "model"), options.model, lowering.annotation_at(MODEL))
        if tuning.preset is not None:
            report_unused(tuning.preset, (*at, "preset"), options, f"`{MODEL}` names the weights", lowering)
    else:
        weights = _weights(draft, tuning, model, (*at, "preset"), nodes, options, lowering)
        draft.put(("spec", "model"), weights.data["metadata"]["name"], (*at, "preset", "name"))
        specs.append(_finished(weights, Model, lowering))
    specs.append(_finished(draft, Job, lowering))
    if tuning.output.image is not None:
        specs += _pushed(tuning, (*at, "output"), lowering)
    return [spec for spec in specs if spec is not None]


def _finished(draft: Draft, kind: type[Job] | type[Model], lowering: ResourceLowering) -> Lowered | None:
    block = draft.finish(kind, lowering)
    return None if block is None else draft.lowered(block)


def _check_preset(name: str, preset: Preset, here: FieldPath, lowering: ResourceLowering) -> None:
    reason = _untrainable(preset)
    if reason:
        hint = "use another preset, or a repository with weights of 16 or 32 bits"
        lowering.error("KG0413", f"kaigen's program cannot train `{name}`: {reason}", here, hint)
    elif not kaito_preset(preset).tunable:
        message = f"KAITO does not fine-tune `{name}`; kaigen does"
        lowering.warning("KG0414", message, here)


def _untrainable(preset: Preset) -> str:
    if preset.quantization:
        return f"its weights are quantized ({preset.quantization})"
    if preset.engine.trust_remote_code:
        return "it requires code of its repository"
    return "" if preset.modalities == ("text",) else "it is not a model of text alone"


def _put_input(draft: Draft, source: DataSource, at: FieldPath, config: Config, lowering: ResourceLowering) -> None:
    """Put the data into the pod, in the folder of KAITO's script."""
    extension = data_extension(config, named=source.urls is not None)
    if source.urls is not None:
        _put_files(draft, source.urls, (*at, "urls"), extension, lowering)
    elif source.image is not None:
        if not lowering.is_placeholder(source.image, (*at, "image"), "an image"):
            draft.put(("spec", "volumes", "data"), {"image": source.image, "mountPath": DATA}, (*at, "image"))
    else:
        assert source.volume_source is not None
        claim = claim_name(source.volume_source, (*at, "volumeSource"), lowering)
        volume = {"claimName": claim, "mountPath": DATA, "readOnly": True}
        draft.put(("spec", "volumes", "data"), volume, (*at, "volumeSource"))
    if source.image_pull_secrets and source.image is None:
        lowering.unused((*at, "imagePullSecrets"), "the data is not in an image")


def _put_files(draft: Draft, urls: list[str], at: FieldPath, extension: str, lowering: ResourceLowering) -> None:
    """Put files that the pod downloads, each with a name of its own."""
    files: dict[str, str] = {}
    for index, url in enumerate(urls):
        if not check_url(url, (*at, index), lowering):
            continue
        name = _UNUSUAL.sub("_", unquote(urlsplit(url).path).rpartition("/")[2]).lstrip(".-") or "data"
        if extension and not name.lower().endswith((extension, f"{extension}l")):
            name += extension
        draft.origins["spec", "inputs", "files", len(files)] = (*at, index)
        files[f"{index}-{name}" if name in files else name] = url
    listed = [{"url": url, "path": name} for name, url in files.items()]
    draft.put(("spec", "inputs"), {"files": listed, "mountPath": DATA}, at)
    if len(files) == 1 and draft.get(("spec", "tune", "dataset")) == DATA:
        # A file that is named is trained on, also if its name is that of an evaluation.
        draft.put(("spec", "tune", "dataset"), f"{DATA}/{next(iter(files))}")


def _put_output(
    draft: Draft, tuning: TuningV1Alpha1, at: FieldPath, config: Config, lowering: ResourceLowering
) -> None:
    """Put the place of the adapter: the user's volume, or one of the Job from which it is pushed."""
    target: DataDestination = tuning.output
    if target.volume_source is None:
        check_image(target, at, lowering)
        draft.put(("spec", "output", "volume", "size"), _OUTPUT_SIZE, at)
        return
    claim = claim_name(target.volume_source, (*at, "volumeSource"), lowering)
    if target.image_push_secret is not None:
        lowering.unused((*at, "imagePushSecret"), "no image is pushed")
    folder = config.output.rstrip("/")
    data = draft.get(("spec", "volumes", "data"))
    if data is not None and data.get("claimName") == claim:
        # A pod mounts a claim once; KAITO's script writes to its root too.
        data["readOnly"] = False
        folder = DATA
    else:
        volume = {"claimName": claim, "mountPath": folder}
        draft.put(("spec", "volumes", "results"), volume, (*at, "volumeSource"))
    draft.put(("spec", "tune", "output"), folder, (*at, "volumeSource"))


def _put_secrets(draft: Draft, tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> None:
    """Put the Secrets for pulling images, and report an image with KAITO's script."""
    options = tuning.preset.preset_options if tuning.preset else None
    secrets = list(options.image_pull_secrets) if options is not None else []
    if options is not None and options.image is not None:
        lowering.unused(
            (*at, "preset", "presetOptions", "image"),
            "kaigen trains with its own program",
            'delete it, or set the annotation `kaigen.dev/compat: "true"` to run KAITO\'s script in this image',
        )
    if tuning.input.image is not None:
        secrets += tuning.input.image_pull_secrets
    if secrets:
        draft.put(("spec", "imagePullSecrets"), list(dict.fromkeys(secrets)), at)


def _weights(
    job: Draft,
    tuning: TuningV1Alpha1,
    model: presets.NamedModel,
    at: FieldPath,
    nodes: Nodes,
    options: Options,
    lowering: ResourceLowering,
) -> Draft:
    """Return the Model with the weights, whose volume is on the nodes of the Job."""
    draft = lowering.draft("Model", name=f"{lowering.metadata.name}-model")
    draft.origins["spec",] = at
    preset = model.preset
    hub = ("spec", "source", "huggingFace")
    draft.put((*hub, "repo"), preset.repo if preset else model.name, (*at, "name"))
    if preset is not None and preset.revision:
        draft.put((*hub, "revision"), preset.revision, (*at, "name"))
    token = find_token(tuning.preset, at, options, lowering)
    if token is not None:
        draft.put((*hub, "tokenSecret"), token.secret, token.at)
    elif preset is not None and preset.gated:
        warn_of_gate(tuning.preset, preset, (*at, "name"), lowering)
    draft.put(("spec", "store"), {"volume": {"size": "auto"}, "keepRevisions": 0}, (*at, "name"))
    draft.hints["KG0320"] = "run `kaigen lock`, or set the annotation `kaigen.dev/model` to the name of a Model"
    placement = dict(job.get(("spec", "placement")) or {})
    instance = job.get(("spec", "resources", "instanceType"))
    if instance is not None:
        labels = placement.get("nodeSelector", {})
        placement["nodeSelector"] = {**labels, "node.kubernetes.io/instance-type": instance}
    resource = nodes.instance.gpu.resource if nodes.instance is not None else "nvidia.com/gpu"
    taint = {"key": resource, "operator": "Exists", "effect": "NoSchedule"}
    placement["tolerations"] = [*placement.get("tolerations", []), taint]
    draft.put(("spec", "placement"), placement, nodes.at or at)
    return draft


def _pushed(tuning: TuningV1Alpha1, at: FieldPath, lowering: ResourceLowering) -> list[Lowered | None]:
    """Return the Model with the finished adapter, and the Job that pushes it as an image."""
    target, name = tuning.output, lowering.metadata.name
    adapter = lowering.draft("Model", name=f"{name}-adapter")
    adapter.origins["spec",] = at
    adapter.put(("spec", "source", "job"), {"name": name, "path": "adapter"})
    adapter.put(("spec", "store"), {"volume": {"size": _ADAPTER_SIZE}, "keepRevisions": 0})
    push = lowering.draft("Job", name=f"{name}-push")
    push.origins["spec",] = at
    preset = tuning.preset.name.lower() if tuning.preset else ""
    fields: dict[str, Any] = {
        "image": PUSHER,
        "command": ["sh", program("push_adapter.sh")],
        "args": [target.image, preset],
        "model": {"name": f"{name}-adapter", "mountPath": _ADAPTER},
        "env": {"DOCKER_CONFIG": _LOGIN},
        "volumes": {
            "login": {
                "secret": {"name": target.image_push_secret, "items": {".dockerconfigjson": "config.json"}},
                "mountPath": _LOGIN,
            }
        },
        "resources": {"cpu": "1", "memory": "1Gi"},
    }
    for field, value in fields.items():
        push.put(("spec", field), value)
    push.origins["spec", "args"] = (*at, "image")
    push.origins["spec", "volumes"] = (*at, "imagePushSecret")
    return [_finished(adapter, Model, lowering), _finished(push, Job, lowering)]
