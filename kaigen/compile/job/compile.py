"""The kind `Job`: one run to completion for each content of its spec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from kaigen.compile.app import App, Object, collect_settings
from kaigen.compile.builders import settings
from kaigen.compile.builders.devices import claim_template
from kaigen.compile.builders.frame import POD_SECURITY, Frame
from kaigen.compile.builders.jobs import completion_test, job
from kaigen.compile.builders.network import headless_service, network_policy
from kaigen.compile.builders.pods import (
    NO_RESOURCES,
    SCRATCH,
    ResolvedResources,
    container_security,
    entry_point,
    image_fields,
    placement_fields,
    pod_security,
    pull_secrets,
    resolve_resources,
    scratch_volume,
    shared_memory_volume,
)
from kaigen.compile.builders.storage import claim
from kaigen.compile.builders.variables import variables_of
from kaigen.compile.builders.weights import (
    PERMANENT_EXIT_CODES,
    check_paths,
    inputs_container,
)
from kaigen.compile.context import Context
from kaigen.compile.expressions import Item, Joined, JsonText, Release, Setting, SpecPath, Text, Tree
from kaigen.compile.finish import finish, frame_of
from kaigen.compile.job.weights import JobWeights, WeightsReader
from kaigen.compile.pod_template import check_pod_template, pod_template
from kaigen.compile.problems import Problems
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
        self.granted = problems.attempt(self._grant, NO_RESOURCES)
        given = job_spec.spec.inputs
        self.inputs = Inputs(files=given) if isinstance(given, list) else given

    @property
    def _image(self) -> Image:
        assert self.spec.image is not None  # Else there is a template, and no container of kaigen's.
        return self.spec.image

    def _grant(self) -> ResolvedResources:
        resources: Resources = self.spec.resources
        has_gpu = resources.gpus is not None or resources.gpu_type is not None
        cpu, memory = ("4", "16Gi") if has_gpu else ("1", "4Gi")
        return resolve_resources(resources, self.context, cpu=cpu, memory=memory)

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
        reader = WeightsReader(
            spec, self.namespace, self.context, self.problems, self.naming, self.granted.has_gpu
        )
        weights = self.problems.attempt(reader.weights, None)
        level = spec.security.pod_security
        annotations = {POD_SECURITY: level} if level != "restricted" else {}
        template = None
        if spec.template is not None:
            self._check_template(spec.template)
            # Its pods are not restarted in place unless it says so.
            defaults = {"restartPolicy": "Never"}
            template = pod_template(
                spec.template, frame, "run", annotations, defaults=defaults, doc="Spec of the pod."
            )
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
            pod_annotations={**annotations, **(weights.annotations if weights else {})},
            hashed=not self.naming.plain,
            template=template,
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
        check_pod_template(template, self.problems)

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

    def _pod(self, weights: JobWeights | None) -> dict[str, Tree]:
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
