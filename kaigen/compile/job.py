"""The kind `Job`: one run to completion for each content of its spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic.alias_generators import to_camel

from kaigen.compile.app import (
    App,
    Item,
    Joined,
    JsonText,
    Labels,
    Object,
    Release,
    Setting,
    SpecPath,
    Text,
    Tree,
    collect_settings,
)
from kaigen.compile.bricks import settings
from kaigen.compile.bricks.devices import claim_template
from kaigen.compile.bricks.frame import POD_SECURITY, Frame
from kaigen.compile.bricks.jobs import completion_test, job
from kaigen.compile.bricks.network import headless_service, network_policy
from kaigen.compile.bricks.pods import (
    SCRATCH,
    Granted,
    container_security,
    entry_point,
    grant,
    image_fields,
    placement_fields,
    pod_security,
    pull_secrets,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.bricks.storage import claim
from kaigen.compile.bricks.variables import variables_of
from kaigen.compile.bricks.weights import (
    PERMANENT_EXIT_CODES,
    check_paths,
    fetch_container,
    inputs_container,
)
from kaigen.compile.context import Context
from kaigen.compile.finish import finish, frame_of
from kaigen.compile.model_volume import (
    check_sharing,
    claim_name,
    find_model,
    gate,
    mount_annotations,
    warn_of_pinned_volume,
)
from kaigen.compile.problems import Problems, SpecProblem
from kaigen.kinds.blocks import Image, Resources
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Inputs, Job, ModelUse

FETCH_INPUTS = "fetch-inputs"
PARAMS_FOLDER = "/etc/kaigen"
MASTER_PORT = 29500
"""Port on which torchrun's workers meet unless told otherwise (source: torch.distributed's documentation)."""

_WAVE = 3
_ORDER = (
    "image",
    "imagePullPolicy",
    "imagePullSecrets",
    "command",
    "args",
    "env",
    "params",
    "resources",
    "model",
    "output",
    "download",
    "inputs",
    "retries",
    "deadlineSeconds",
    "podSpec",
)


def compile_job(spec: Job, context: Context, problems: Problems, naming: Naming | None = None) -> App:
    """The app of a Job.

    Args:
        spec: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: takes what is wrong with it.
        naming: names of a foreign system.
    """
    return _JobCompiler(spec, context, problems, naming or Naming()).app()


@dataclass(frozen=True, slots=True)
class _Weights:
    """How weights reach the container: an init container, and what the main one mounts."""

    init: dict[str, Tree]
    mounts: list[Mapping[str, Tree]]
    volumes: list[Tree]
    permanent: Mapping[str, tuple[int, ...]]
    annotations: Mapping[str, str] = field(default_factory=dict)


_NODE_VARIABLES = ("NNODES", "NODE_RANK", "JOB_NAME", "MASTER_ADDR", "MASTER_PORT")

_OF_CONTAINERS = ("command", "args", "env", "params", "model", "inputs", "output", "resources", "nodes")
"""Fields that speak of the container, or of what it is given: a template says those itself."""

_SCRATCH_FOLDERS = ("/tmp", "/scratch", "/var/tmp")
"""Where the container may write; the first that nothing else is mounted at."""


class _JobCompiler:
    """One compilation; its methods each make one part."""

    def __init__(self, job_spec: Job, context: Context, problems: Problems, naming: Naming) -> None:
        self.metadata = job_spec.metadata
        self.spec = job_spec.spec
        self.context = context
        self.problems = problems
        self.naming = naming
        self.frame: Frame = frame_of(job_spec.metadata)
        self.namespace = job_spec.metadata.namespace or context.namespace
        nothing = Granted({}, {}, [], "", "", 0, False, "", "")
        self.granted = problems.attempt(self._grant, nothing)
        given = job_spec.spec.inputs
        self.inputs = Inputs(files=given) if isinstance(given, list) else given

    @property
    def _image(self) -> Image:
        assert self.spec.image is not None  # Else there is a template, and no container of kaigen's.
        return self.spec.image

    def _grant(self) -> Granted:
        resources: Resources = self.spec.resources
        has_gpu = resources.gpus is not None or resources.gpu_type is not None
        cpu, memory = ("4", "16Gi") if has_gpu else ("1", "4Gi")
        return grant(resources, self.context, cpu=cpu, memory=memory)

    def app(self) -> App:
        """The app."""
        spec, frame = self.spec, self.frame
        objects: list[Object] = []
        output = spec.output.volume if spec.output else None
        if output:
            if spec.nodes > 1 and "ReadWriteMany" not in output.access_modes:
                self.problems.error(
                    "KG0309",
                    f"{spec.nodes} nodes cannot share a volume of access mode {', '.join(output.access_modes)}",
                    ("spec", "output", "volume"),
                    "use `accessModes: [ReadWriteMany]` with a storage class that offers it",
                )
            objects.append(
                claim(
                    frame,
                    self.context,
                    output,
                    what="output",
                    suffix="" if self.naming.plain else "-output",
                    retain=output.retain,
                    origin=("spec", "output", "volume"),
                    role="persistentvolumeclaim",
                    wave=_WAVE,
                )
            )
        if spec.params:
            objects.append(self._params_map())
        if self.granted.device_class:
            objects.append(claim_template(frame, self.granted.device_class, self.granted.device_count))
        if spec.nodes > 1:
            objects.append(headless_service(frame, "run", MASTER_PORT))
        objects.append(network_policy(frame, among_themselves=spec.nodes > 1))
        weights = self.problems.attempt(self._weights, None)
        if spec.template is not None:
            self._check_template(spec.template)
        pod = self._pod(weights) if spec.template is None else {}
        run = job(
            frame,
            pod,
            role="job",
            component="run",
            wave=_WAVE,
            retries=spec.retries,
            deadline=spec.deadline,
            origin=("spec",),
            permanent={
                **(weights.permanent if weights else {}),
                **({FETCH_INPUTS: PERMANENT_EXIT_CODES} if self.inputs else {}),
            },
            nodes=spec.nodes,
            labels={"kueue.x-k8s.io/queue-name": spec.placement.queue} if spec.placement.queue else None,
            pod_annotations={
                **({POD_SECURITY: level} if (level := spec.security.pod_security) != "restricted" else {}),
                **(weights.annotations if weights else {}),
            },
            hashed=not self.naming.plain,
            template=None if spec.template is None else self._template(spec.template),
        )
        objects += [run, *completion_test(frame, run, self.context)]
        return finish(
            "Job",
            self.metadata,
            frame,
            self.context,
            objects,
            collect_settings(objects, _ORDER),
            self.problems,
            pod_security=spec.security.pod_security,
            summary="Runs to completion once for each content of its spec.",
        )

    def _check_template(self, template: Mapping[str, Any]) -> None:
        """No field is said that a template takes no notice of."""
        spec = self.spec
        given: list[tuple[str, ...]] = [(name,) for name in _OF_CONTAINERS if name in spec.model_fields_set]
        given += [("placement", name) for name in spec.placement.model_fields_set - {"queue"}]
        given += [("security", name) for name in spec.security.model_fields_set - {"pod_security"}]
        for path in given:
            at: SpecPath = ("spec", *map(to_camel, path))
            self.problems.error(
                "KG0340", f"`{at[-1]}` has no effect on a pod template", at, "say it in the template"
            )
        for part in sorted(template.keys() - {"metadata", "spec"}):
            at = ("spec", "template", part)
            self.problems.error(
                "KG0340", f"a pod template has no field `{part}`", at, "it has `metadata` and `spec`"
            )
        if not isinstance(template.get("spec"), dict):
            at = ("spec", "template")
            self.problems.error("KG0341", "the template has no `spec`", at, "add it, with `containers`")

    def _template(self, template: Mapping[str, Any]) -> dict[str, Tree]:
        """The user's pod template with the app's labels; its pods are not restarted in place unless it says so."""
        metadata, spec = template.get("metadata"), template.get("spec")
        given = metadata if isinstance(metadata, Mapping) else {}
        labels = self.frame.selector("run")
        texts = given.get("labels")
        own = {**(texts if isinstance(texts, Mapping) else {}), **labels.own}
        annotations = given.get("annotations")
        notes = dict(annotations) if isinstance(annotations, Mapping) else {}
        if self.spec.security.pod_security != "restricted":
            notes[POD_SECURITY] = self.spec.security.pod_security
        pod = {"restartPolicy": "Never", **(spec if isinstance(spec, dict) else {})}
        return {
            "metadata": {
                "labels": Labels(labels.common, own, labels.helper),
                **({"annotations": notes} if notes else {}),
            },
            "spec": Setting(
                "podSpec", pod, "Spec of the pod.", settings.OBJECT, origin=("spec", "template", "spec")
            ),
        }

    def _params_map(self) -> Object:
        return Object(
            role="configmap-params",
            body={
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": self.frame.metadata("-params", "run"),
                "data": {"params.json": JsonText(self._params)},
            },
        )

    def _check_variables(self) -> None:
        """No two things become one variable."""
        spec = self.spec
        for name in _NODE_VARIABLES if spec.nodes > 1 else ():
            if name in spec.env:
                at: SpecPath = ("spec", "env", name)
                self.problems.error("KG0313", f"`{name}` is set by kaigen for a Job of several nodes", at)
        makers = {name: f"`env.{name}`" for name in spec.env}
        for name in spec.params:
            variable = f"PARAM_{name.upper()}"
            maker = makers.setdefault(variable, f"`params.{name}`")
            if maker != f"`params.{name}`":
                self.problems.error(
                    "KG0313",
                    f"`params.{name}` becomes the variable {variable}, as does {maker}",
                    ("spec", "params", name),
                    "give one of them another name",
                )

    def _check_mounts(self, mounts: Sequence[Mapping[str, Tree]]) -> None:
        """No two volumes are mounted at one folder."""
        taken: dict[str, Tree] = {}
        for mount in mounts:
            folder, name = str(mount["mountPath"]).rstrip("/"), mount["name"]
            if taken.setdefault(folder, name) != name:
                both = (name, taken[folder])
                field = next((field for field in ("inputs", "model") if field in both), "output")
                at: SpecPath = ("spec", field)
                self.problems.error(
                    "KG0314",
                    f"two volumes would be mounted at `{folder}`: {taken[folder]} and {name}",
                    at,
                    "set another `mountPath`",
                )

    @property
    def _params(self) -> Setting:
        params = dict(self.spec.params)
        schema = {"type": "object", "required": sorted(params), "additionalProperties": True}
        return Setting("params", params, "Parameters of the work.", schema, origin=("spec", "params"))

    def _env(self, home: str) -> list[Tree]:
        spec = self.spec
        self._check_variables()
        variables: list[Tree] = []
        if "HOME" not in spec.env:
            variables.append({"name": "HOME", "value": home})
        variables += variables_of(spec.env)
        params = self._params
        for name in spec.params:
            variables.append(
                {"name": f"PARAM_{name.upper()}", "value": Text(Item(params, name), verbatim=True)}
            )
        if spec.nodes > 1:
            label = "metadata.labels['{}']"
            variables += [
                {"name": "NNODES", "value": str(spec.nodes)},
                {
                    "name": "NODE_RANK",
                    "valueFrom": {
                        "fieldRef": {"fieldPath": label.format("batch.kubernetes.io/job-completion-index")}
                    },
                },
                {
                    "name": "JOB_NAME",
                    "valueFrom": {"fieldRef": {"fieldPath": label.format("batch.kubernetes.io/job-name")}},
                },
                {"name": "MASTER_ADDR", "value": Joined(("$(JOB_NAME)-0.", Release("-nodes")))},
                {"name": "MASTER_PORT", "value": str(MASTER_PORT)},
            ]
        return variables

    def _weights(self) -> _Weights | None:
        use = self.spec.model
        if use is None:
            return None
        if isinstance(use, str):
            return self._shared_weights(use, "/model", ("spec", "model"))
        if use.name is not None:
            return self._shared_weights(use.name, use.mount_path, ("spec", "model", "name"))
        return self._own_weights(use)

    def _shared_weights(self, name: str, folder: str, origin: SpecPath) -> _Weights:
        model = find_model(self.context, self.namespace, name, origin)
        nodes = self.spec.nodes
        check_sharing(model, self.problems, pods=nodes, what=f"{nodes} nodes", origin=origin)
        warn_of_pinned_volume(
            model, self.problems, has_gpu=self.granted.has_gpu, consumer="Job", origin=origin
        )
        mount: dict[str, Tree] = {"name": "model", "mountPath": folder, "readOnly": True}
        claimed = settings.text(
            "model.claimName", claim_name(model), "Volume that holds the weights.", origin=origin
        )
        return _Weights(
            init=gate(model, self.context, name="wait-for-model", folder=folder, mounts=[mount]),
            mounts=[mount],
            volumes=[{"name": "model", "persistentVolumeClaim": {"claimName": claimed, "readOnly": True}}],
            permanent={},
            annotations=mount_annotations(model),
        )

    def _own_weights(self, use: ModelUse) -> _Weights:
        assert use.source is not None
        output = self.spec.output.volume if self.spec.output else None
        root = output.mount_path.rstrip("/") + "/" if output else ""
        if output is None or not (use.mount_path.rstrip("/") + "/").startswith(root):
            where = f"`{output.mount_path}`" if output else "a volume"
            raise SpecProblem(
                "KG0303",
                f"`model.source` is fetched into the Job's own volume, but `{use.mount_path}` is not inside {where}",
                ("spec", "model", "mountPath") if "mount_path" in use.model_fields_set else ("spec", "model"),
                f"set `model.mountPath` to a folder in {where}"
                if output
                else "add `output.volume`, and set `model.mountPath` to a folder in it",
            )
        if self.spec.nodes > 1:
            raise SpecProblem(
                "KG0304",
                "several nodes would each fetch `model.source` into the same folder",
                ("spec", "model", "source"),
                "make it a Model of its own and name it in `model`",
            )
        mount: dict[str, Tree] = {"name": self.naming.volume, "mountPath": output.mount_path}
        if self.naming.fetch_command:
            return _Weights(self._foreign_fetch(use, mount), [], [], {})
        init = fetch_container(
            use.source,
            use.transfer,
            self.context,
            name=self.naming.init,
            destination=use.mount_path,
            mounts=[mount],
            origin=("spec", "model", "source"),
            transfer_origin=("spec", "model", "transfer"),
        )
        return _Weights(init, [], [], {self.naming.init: PERMANENT_EXIT_CODES})

    def _foreign_fetch(self, use: ModelUse, mount: dict[str, Tree]) -> dict[str, Tree]:
        assert use.source is not None
        hub = use.source.hugging_face
        assert hub is not None, "a foreign system's command fetches from the Hub"
        # As another user than the image's own, it has no home that it may write to but the volume.
        env: list[Tree] = [
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": "HOME", "value": mount["mountPath"]},
        ]
        if hub.token_secret:
            reference: Tree = {"name": hub.token_secret.name, "key": hub.token_secret.key}
            env.insert(0, {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
        return {
            "name": self.naming.init,
            **image_fields(self._image, "", ("spec", "image")),
            "command": list(self.naming.fetch_command),
            "env": env,
            "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
            "securityContext": container_security(read_only=False),
            "volumeMounts": [mount],
        }

    def _fetch_inputs(self, inputs: Inputs) -> dict[str, Tree]:
        long = isinstance(self.spec.inputs, Inputs)
        origin: SpecPath = ("spec", "inputs")
        check_paths(inputs.files, (*origin, "files") if long else origin, self.problems)
        return inputs_container(
            inputs.files,
            inputs.transfer,
            self.context,
            name=FETCH_INPUTS,
            destination=inputs.mount_path,
            mounts=[{"name": "inputs", "mountPath": inputs.mount_path}],
            origin=(*origin, "transfer") if long else (),
        )

    def _pod(self, weights: _Weights | None) -> dict[str, Tree]:
        spec, granted, inputs = self.spec, self.granted, self.inputs
        output = spec.output.volume if spec.output else None
        mounts: list[Mapping[str, Tree]] = [*(weights.mounts if weights else [])]
        volumes: list[Tree] = [*(weights.volumes if weights else [])]
        if output:
            mounts.append({"name": self.naming.volume, "mountPath": output.mount_path})
            claimed = Release("" if self.naming.plain else "-output")
            volumes.append({"name": self.naming.volume, "persistentVolumeClaim": {"claimName": claimed}})
        if spec.params:
            mounts.append({"name": "params", "mountPath": PARAMS_FOLDER, "readOnly": True})
            volumes.append({"name": "params", "configMap": {"name": Release("-params")}})
        if inputs:
            mounts.append({"name": "inputs", "mountPath": inputs.mount_path, "readOnly": True})
            volumes.append(scratch_volume(granted.scratch_limit, "inputs"))
        taken = {str(mount["mountPath"]).rstrip("/") for mount in mounts}
        scratch = next(folder for folder in _SCRATCH_FOLDERS if folder not in taken)
        mounts.append({"name": SCRATCH, "mountPath": scratch})
        volumes.append(scratch_volume(granted.scratch_limit))
        if granted.shared_memory:
            mounts.append({"name": "shm", "mountPath": "/dev/shm"})
            volumes.append(shared_memory_volume(granted.shared_memory))
        self._check_mounts(mounts)
        read_only = spec.security.read_only_root_filesystem
        container: dict[str, Tree] = {
            "name": self.naming.container,
            **image_fields(self._image, "", ("spec", "image")),
            **entry_point(spec.command, spec.args),
            "env": self._env(scratch),
            "resources": Setting(
                "resources",
                granted.requirements,
                "Resources of the container.",
                settings.RESOURCES,
                origin=("spec", "resources"),
            ),
            "securityContext": container_security(
                read_only=not granted.has_gpu if read_only is None else read_only
            ),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": mounts,
        }
        nothing: dict[str, Tree] = {}
        placement = self.problems.attempt(
            lambda: placement_fields(self.frame, spec.placement, self.context, granted), nothing
        )
        transfers = [use.transfer for use in (spec.model, inputs) if isinstance(use, ModelUse | Inputs)]
        transfer_images = [transfer.image for transfer in transfers if transfer.image]
        init = [*([weights.init] if weights else []), *([self._fetch_inputs(inputs)] if inputs else [])]
        return {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "imagePullSecrets": settings.objects(
                "imagePullSecrets",
                pull_secrets(self._image, *transfer_images),
                "Secrets to pull the images with.",
                origin=("spec", "image"),
            ),
            **placement,
            **({"subdomain": Release("-nodes")} if spec.nodes > 1 else {}),
            "securityContext": self.problems.attempt(lambda: pod_security(spec.security), nothing),
            **(
                {"resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": Release("-gpus")}]}
                if granted.device_class
                else {}
            ),
            **({"initContainers": init} if init else {}),
            "containers": [container],
            "volumes": volumes,
        }
