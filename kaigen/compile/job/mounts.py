"""What a Job reads: Datasets below the folder of the inputs, and the weights that it starts from."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.compile.builders import settings
from kaigen.compile.builders.mounts import Mounted, MountPoint, Readers, together
from kaigen.compile.builders.pods import container_security, image_fields
from kaigen.compile.builders.sources import source_account
from kaigen.compile.builders.weights import PERMANENT_EXIT_CODES, Fetch, fetch_container
from kaigen.compile.context import Context
from kaigen.compile.expressions import Tree
from kaigen.compile.model.volume import FORM, find_used, mount_model
from kaigen.compile.problems import Problems, report_ignored_field
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.block import derive_fields, set_fields
from kaigen.kinds.compat import Naming
from kaigen.kinds.job import Input, Inputs, JobSpec, ModelUse
from kaigen.kinds.model import Dataset, Model

_FORM = "{{dataset: {name}, namespace: {namespace}}}"
"""How an input names a Dataset of another namespace."""


def job_weights(spec: JobSpec, readers: Readers, naming: Naming, problems: Problems) -> Mounted:
    """Return how the weights that a Job starts from reach the container; nothing when it names none.

    Args:
        spec: the spec.
        readers: the pods.
        naming: names in the objects.
        problems: collects what is wrong.

    Raises:
        ProblemError: the pods cannot read the weights.
    """
    use = spec.model
    if use is None:
        return Mounted()
    if isinstance(use, ModelUse) and use.name is None:
        if use.namespace is not None:
            where, hint = "without the name of a Model", "leave it out, or set `name` to a Model in it"
            report_ignored_field(problems, "namespace", ("spec", "model", "namespace"), where, hint)
        return _own_weights(spec, use, readers.context, naming)
    origin: FieldPath = ("spec", "model") if isinstance(use, str) else ("spec", "model", "name")
    use = ModelUse(name=use) if isinstance(use, str) else use
    model = find_used(Model, str(use.name), use.namespace, origin, readers, FORM)
    point = MountPoint(volume="model", folder=use.mount_path, gate="wait-for-model", settings="model.", role="-model")
    return mount_model(model, point, readers, origin, problems, use.namespace)


def _own_weights(spec: JobSpec, use: ModelUse, context: Context, naming: Naming) -> Mounted:
    assert use.source is not None
    output = spec.output.volume if spec.output else None
    root = output.mount_path.rstrip("/") + "/" if output else ""
    if output is None or not (use.mount_path.rstrip("/") + "/").startswith(root):
        where = f"`{output.mount_path}`" if output else "a volume"
        raise ProblemError(
            "KG0303",
            f"`model.source` is fetched into the Job's own volume, but `{use.mount_path}` is not inside {where}",
            ("spec", "model", "mountPath") if "mount_path" in set_fields(use) else ("spec", "model"),
            f"set `model.mountPath` to a folder in {where}"
            if output
            else "add `output.volume`, and set `model.mountPath` to a folder in it",
        )
    if spec.nodes > 1:
        raise ProblemError(
            "KG0304",
            "several nodes would each fetch `model.source` into the same folder",
            ("spec", "model", "source"),
            "create a Model with this source, and set `model` to its name",
        )
    if source_account(use.source):
        raise ProblemError(
            "KG0317",
            "the pods of a Job have an account of their own, which has no annotations of a source",
            ("spec", "model", "source", "s3", "credentials", "serviceAccount"),
            "set `credentials.secret`, or give `serviceAccount.create` the annotations and leave `credentials` out",
        )
    mount: dict[str, Tree] = {"name": naming.volume, "mountPath": output.mount_path}
    if naming.fetch_command:
        return Mounted(init=[_foreign_fetch(spec, use, naming, mount)])
    fetch = Fetch(
        source=use.source,
        origin=("spec", "model", "source"),
        destination=use.mount_path,
        transfer=use.transfer,
        transfer_origin=("spec", "model", "transfer"),
    )
    init = fetch_container(fetch, context, name=naming.init, mounts=[mount])
    return Mounted(init=[init], permanent={naming.init: PERMANENT_EXIT_CODES})


def _foreign_fetch(spec: JobSpec, use: ModelUse, naming: Naming, mount: dict[str, Tree]) -> dict[str, Tree]:
    """Return a foreign system's own container that fetches the weights from the Hub."""
    assert use.source is not None
    hub = use.source.hugging_face
    assert spec.image is not None
    assert hub is not None, "a foreign system's command fetches from the Hub"
    # Under a user other than the image's own, only the volume can be the home folder.
    env: list[Tree] = [{"name": "PYTHONUNBUFFERED", "value": "1"}, {"name": "HOME", "value": mount["mountPath"]}]
    if hub.token_secret:
        reference: Tree = {"name": hub.token_secret.name, "key": hub.token_secret.key}
        env.insert(0, {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}})
    return {
        "name": naming.init,
        **image_fields(spec.image, "", ("spec", "image")),
        "command": list(naming.fetch_command),
        "env": env,
        "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        "securityContext": container_security(read_only=False),
        "volumeMounts": [mount],
    }


def with_folders(inputs: Inputs) -> Inputs:
    """Return inputs whose Datasets have a folder: by default one with the name of the Dataset."""
    files = [
        derive_fields(file, path=file.dataset) if file.dataset and not file.path else file for file in inputs.files
    ]
    return derive_fields(inputs, files=files)


def input_origin(spec: JobSpec) -> FieldPath:
    """Return the spec's field with the list of inputs."""
    return ("spec", "inputs", "files") if isinstance(spec.inputs, Inputs) else ("spec", "inputs")


def _datasets(inputs: Inputs | None) -> Iterator[tuple[int, Input, str]]:
    for number, file in enumerate(inputs.files if inputs else []):
        if file.dataset:
            yield number, file, file.dataset


def job_datasets(spec: JobSpec, inputs: Inputs | None, readers: Readers, problems: Problems) -> Mounted:
    """Return how Datasets reach the container.

    Args:
        spec: the spec.
        inputs: its inputs, each Dataset with a folder.
        readers: the pods.
        problems: collects what is wrong.

    Raises:
        ProblemError: a Dataset does not exist.
    """
    found: list[Mounted] = []
    names: set[str] = set()
    for number, file, name in _datasets(inputs):
        assert inputs is not None
        origin: FieldPath = (*input_origin(spec), number, "dataset")
        dataset = find_used(Dataset, name, file.namespace, origin, readers, _FORM)
        point = MountPoint(
            volume=f"dataset-{name}",
            folder=f"{inputs.mount_path.rstrip('/')}/{file.path}",
            gate=f"wait-for-{name}",
            settings=f"datasets.{settings.key(name)}.",
            role=f"-dataset-{name}",
        )
        mounted = mount_model(dataset, point, readers, origin, problems, file.namespace)
        # Its volume is in the pod once.
        found.append(Mounted(mounts=mounted.mounts) if name in names else mounted)
        names.add(name)
    return together(found)


def check_datasets(spec: JobSpec, inputs: Inputs, problems: Problems) -> None:
    """Report Datasets in the output volume, and checksums that nothing compares."""
    for number, file, _ in _datasets(inputs):
        origin: FieldPath = (*input_origin(spec), number)
        if inputs.into is not None:
            problems.error(
                "KG0371",
                "a Dataset is mounted from its own volume, not stored in the output volume",
                (*origin, "dataset"),
                "use inputs without `into`",
            )
        if file.sha256:
            where = "on a Dataset, whose files have their own checksums"
            report_ignored_field(problems, "sha256", (*origin, "sha256"), where, "leave it out")
    for number, file in enumerate(inputs.files):
        if file.namespace is not None and file.dataset is None:
            at: FieldPath = (*input_origin(spec), number, "namespace")
            report_ignored_field(problems, "namespace", at, "without a Dataset", "leave it out, or set `dataset`")
