"""`tuning` as a Job with KAITO's image and script: download weights and data, train an adapter, store or push it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.catalog.presets import presets as every
from kaigen.core.json_types import FieldPath
from kaigen.dialects.draft import Draft
from kaigen.dialects.kaito import presets
from kaigen.dialects.kaito.blocks import DataDestination, DataSource, TuningV1Alpha1
from kaigen.dialects.kaito.catalog import kaito_preset
from kaigen.dialects.kaito.compat import WORKSPACE
from kaigen.dialects.kaito.nodes import Nodes
from kaigen.dialects.kaito.pod_template import with_placement, with_programs
from kaigen.dialects.kaito.resource import Options, ResourceLowering
from kaigen.dialects.kaito.serving import claim_name
from kaigen.dialects.kaito.training import CONFIG_FOLDER, CONFIG_KEY, DATA, Training, read_training
from kaigen.dialects.kaito.training_settings import DEFAULT_TARGETS
from kaigen.dialects.kaito.tuning_checks import check_image, check_url
from kaigen.dialects.kaito.weights import Token, find_token, warn_of_gate
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Job
from kaigen.kinds.lowering import Lowered
from kaigen.programs.files import program

IMAGE = "mcr.microsoft.com/aks/kaito/kaito-base:0.5.0"
"""KAITO's image with the training script (source: KAITO v0.12.0); `image` of the preset overrides it."""

PUSHER = "ghcr.io/oras-project/oras:v1.2.2"
"""Image that pushes an adapter, as in KAITO v0.12.0."""

WEIGHTS = "/workspace/tfs/weights"
"""Default folder of the weights in the training script."""

CONFIG_NOTE = "kaigen.dev/training-config"
USER = 65532
TUNE = "tune"

_SECURITY: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
_SMALL: Mapping[str, Any] = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "4Gi"}}


def lower_script(
    tuning: TuningV1Alpha1,
    at: FieldPath,
    draft: Draft,
    model: presets.NamedModel | None,
    nodes: Nodes,
    options: Options,
    lowering: ResourceLowering,
) -> list[Lowered]:
    """Return a fine-tuning run as a Job with KAITO's names, image and script.

    Args:
        tuning: the block.
        at: its path.
        draft: the Job, with its placement.
        model: that is trained; None after an error.
        nodes: that the Job uses.
        options: of the resource.
        lowering: collects problems.
    """
    training = read_training(tuning, at, lowering)
    token = find_token(tuning.preset, (*at, "preset"), options, lowering)
    if model is not None:
        _check_model(tuning, model, token, (*at, "preset", "name"), lowering)
    run = _Run(tuning, at, nodes, token, lowering)
    run.input(tuning.input, (*at, "input"))
    run.output(tuning.output, (*at, "output"), training)
    if model is None or training is None or lowering.failed:
        return []
    template = run.template(model, training)
    _rename(template, lowering.metadata.name)
    draft.put(("spec", "template"), with_placement(with_programs(template), draft, nodes, at, lowering), at)
    # A failed run would fail again and block GPUs. Evictions do not count as failures.
    draft.put(("spec", "retries"), 0)
    job = draft.finish(Job, lowering)
    return [] if job is None else [draft.lowered(job, Naming(plain=True))]


def _rename(template: dict[str, Any], name: str) -> None:
    """Give a pod template KAITO's label, and the training container KAITO's name."""
    template.setdefault("metadata", {})["labels"] = {WORKSPACE: name}
    for container in (*template["spec"]["initContainers"], *template["spec"]["containers"]):
        if container["name"] == TUNE:
            container["name"] = name


def _check_model(
    tuning: TuningV1Alpha1, model: presets.NamedModel, token: Token | None, here: FieldPath, lowering: ResourceLowering
) -> None:
    if model.preset is not None and not kaito_preset(model.preset).tunable:
        known = ", ".join(
            preset.name
            for preset, kaito in ((preset, kaito_preset(preset)) for preset in every(lowering.context.catalog))
            if kaito.tunable and not kaito.removed_in
        )
        lowering.error(
            "KG0412", f"KAITO's training script does not support `{model.name}`", here, f"supported: {known}"
        )
    if model.preset is not None and model.preset.gated and token is None:
        warn_of_gate(tuning.preset, model.preset, here, lowering)


class _Run:
    """Builds the pod template of a run."""

    def __init__(
        self, tuning: TuningV1Alpha1, at: FieldPath, nodes: Nodes, token: Token | None, lowering: ResourceLowering
    ) -> None:
        self.tuning = tuning
        self.token = token
        self.at = at
        self.gpus = nodes.gpus or 1
        self.nodes = nodes
        self.lowering = lowering
        self.init: list[dict[str, Any]] = []
        self.last: list[dict[str, Any]] = []
        self.mounts: list[dict[str, Any]] = []
        self.volumes: list[dict[str, Any]] = []
        preset_options = tuning.preset.preset_options if tuning.preset else None
        self.image = preset_options.image if preset_options and preset_options.image else IMAGE
        self.secrets = list(preset_options.image_pull_secrets) if preset_options else []
        if preset_options and preset_options.image:
            lowering.is_placeholder(preset_options.image, (*at, "preset", "presetOptions", "image"), "an image")

    def input(self, source: DataSource, at: FieldPath) -> None:
        """Mount or download the training data."""
        mount: dict[str, Any] = {"name": "data", "mountPath": DATA}
        if source.urls is not None:
            for index, url in enumerate(source.urls):
                if check_url(url, (*at, "urls", index), self.lowering):
                    self.lowering.names_server(url, (*at, "urls", index))
            self.volumes.append({"name": "data", "emptyDir": {}})
            self.init.append(self._helper("fetch-data", "fetch_data.py", [DATA, *source.urls], [mount]))
        elif source.image is not None:
            if self.lowering.is_placeholder(source.image, (*at, "image"), "an image"):
                return
            self.volumes.append({"name": "data", "image": {"reference": source.image}})
            self.secrets += source.image_pull_secrets
        else:
            assert source.volume_source is not None
            claim = claim_name(source.volume_source, (*at, "volumeSource"), self.lowering)
            claimed = {"claimName": claim, "readOnly": True}
            self.volumes.append({"name": "data", "persistentVolumeClaim": claimed})
        self.mounts.append({**mount, "readOnly": True})

    def output(self, target: DataDestination, at: FieldPath, training: Training | None) -> None:
        """Store the adapter in a volume, or push it as an image."""
        folder = training.output if training else "/mnt/results"
        mount: dict[str, Any] = {"name": "results", "mountPath": folder}
        self.mounts.append(mount)
        if target.volume_source is not None:
            claim = claim_name(target.volume_source, (*at, "volumeSource"), self.lowering)
            self.volumes.append({"name": "results", "persistentVolumeClaim": {"claimName": claim}})
            if target.image_push_secret is not None:
                self.lowering.unused((*at, "imagePushSecret"), "no image is pushed")
            return
        assert target.image is not None
        self.volumes.append({"name": "results", "emptyDir": {}})
        if not check_image(target, at, self.lowering):
            return
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        self.volumes.append({"name": "login", "secret": {"secretName": target.image_push_secret, "items": items}})
        self.last.append(
            {
                "name": "push",
                "image": PUSHER,
                "args": ["push", target.image, "--annotation", "sh.kaito.model.name=" + self._name(), "."],
                "workingDir": folder,
                "env": [{"name": "DOCKER_CONFIG", "value": "/etc/login"}],
                "resources": dict(_SMALL),
                "securityContext": {**_SECURITY, "readOnlyRootFilesystem": True},
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [
                    {**mount, "readOnly": True},
                    {"name": "login", "mountPath": "/etc/login", "readOnly": True},
                ],
            }
        )

    def _name(self) -> str:
        return self.tuning.preset.name.lower() if self.tuning.preset else ""

    def template(self, model: presets.NamedModel, training: Training) -> dict[str, Any]:
        """Return the pod template."""
        weights = {"name": "weights", "mountPath": WEIGHTS}
        repo = model.preset.repo if model.preset else model.name
        revision = (model.preset.revision if model.preset else "") or "main"
        fetch = self._helper("fetch-model", "fetch_model.py", [repo, revision, WEIGHTS], [weights])
        if self.token is not None:
            fetch["env"].append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": self.token.secret}})
        env = [
            {"name": "HOME", "value": "/scratch"},
            {"name": "HF_HUB_OFFLINE", "value": "1"},
            {"name": "PYTORCH_CUDA_ALLOC_CONF", "value": "expandable_segments:True"},
        ]
        if model.preset is not None and model.preset.architecture == "Phi3ForCausalLM":
            targets = ",".join(DEFAULT_TARGETS["Phi3ForCausalLM"])
            env.append({"name": "DEFAULT_TARGET_MODULES", "value": targets})
        scratch = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "scratch", "mountPath": "/tmp"}]
        shm = {"name": "shm", "mountPath": "/dev/shm"}
        config = {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}
        device = self._device()
        memory = f"{32 * self.gpus}Gi"
        tune: dict[str, Any] = {
            "name": TUNE,
            "image": self.image,
            "workingDir": "/workspace/tfs",
            "command": ["accelerate", "launch"],
            "args": [
                f"--num_processes={self.gpus}",
                "--num_machines=1",
                "--machine_rank=0",
                "--gpu_ids=all",
                "/workspace/tfs/fine_tuning.py",
            ],
            "env": env,
            "resources": {
                "requests": {"cpu": str(4 * self.gpus), "memory": memory, **device},
                "limits": {"memory": memory, **device},
            },
            "securityContext": dict(_SECURITY),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{**weights, "readOnly": True}, *self.mounts, config, *scratch, shm],
        }
        pod: dict[str, Any] = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "initContainers": [fetch, *self.init, *([tune] if self.last else [])],
            "containers": self.last or [tune],
            "volumes": [
                {"name": "weights", "emptyDir": {}},
                *self.volumes,
                _config_volume(training),
                {"name": "scratch", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}},
            ],
        }
        if self.secrets:
            pod["imagePullSecrets"] = [{"name": name} for name in dict.fromkeys(self.secrets)]
        metadata = {"annotations": {CONFIG_NOTE: training.text}} if training.text else {}
        return {**({"metadata": metadata} if metadata else {}), "spec": pod}

    def _device(self) -> dict[str, Any]:
        return dict(self.nodes.device(self.gpus, self.lowering.context.profile))

    def _helper(self, name: str, script: str, arguments: list[str], mounts: list[dict[str, Any]]) -> dict[str, Any]:
        """Return a container that runs a Python script in the training image."""
        return {
            "name": name,
            "image": self.image,
            "command": ["python3", program(script), *arguments],
            "env": [{"name": "HOME", "value": "/scratch"}],
            "resources": dict(_SMALL),
            "securityContext": {**_SECURITY, "readOnlyRootFilesystem": True},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [*mounts, {"name": "scratch", "mountPath": "/scratch"}],
        }


def _config_volume(training: Training) -> dict[str, Any]:
    """Return the volume of the settings: the user's ConfigMap, or an annotation of the pod."""
    if training.config_map:
        return {"name": "config", "configMap": {"name": training.config_map}}
    field = {"fieldPath": f"metadata.annotations['{CONFIG_NOTE}']"}
    return {"name": "config", "downwardAPI": {"items": [{"path": CONFIG_KEY, "fieldRef": field}]}}
