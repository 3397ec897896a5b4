"""`create`: a Job that runs now."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

import click

from kaigen.catalog.classifiers import classifier_weights
from kaigen.cli.console import Console
from kaigen.cli.live.flavor import Flavor
from kaigen.cli.live.session import Session, cluster_options, command_words, lifetime, transfer_line
from kaigen.cli.live.show import follow, timeout_option
from kaigen.kinds.base import APP_NAME_MAX
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    from kaigen.cluster import reapers as cluster_reapers
    from kaigen.ops import build as ops_build
    from kaigen.ops import create as ops_create

_MOUNT = "/artifacts"
_MODELS = ("resnet50", "mobilenet_v3_small")
_LABEL_MAX = 63
"""Characters of a label's value; the controller of Jobs sets one with the name of the Job."""

_SUMMARY = """Create a Job that runs now.

The Job classifies the image at --input-path with --model, or runs --image and --command. Its volume is mounted at
/artifacts. With --project-dir, the content of a folder is uploaded to the volume first, and checked there; the Job
starts when all files are there. If that fails, or you press Ctrl-C, nothing is left."""


def _options(flavor: Flavor) -> list[Any]:
    return [
        click.option(
            "--project-dir",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="Upload the content of this folder. `.kaigenignore`, or else `.gitignore`, lists what is left out.",
        ),
        click.option(
            "--target-path", default=_MOUNT, metavar="PATH", help="Folder for the project.", show_default=True
        ),
        click.option("--input-path", default=f"{_MOUNT}/input.jpg", metavar="PATH", show_default=True, help="Input."),
        click.option(
            "--input-wait",
            default="1h",
            callback=lifetime,
            metavar="DURATION",
            show_default=True,
            help="Longest time to wait for an input that the project does not have. The pod holds its GPUs meanwhile.",
        ),
        click.option(
            "--output-path", default=f"{_MOUNT}/output.json", metavar="PATH", show_default=True, help="Result."
        ),
        click.option("--model", type=click.Choice(_MODELS), default=_MODELS[0], show_default=True, help="Model."),
        click.option(
            "--weights",
            default="",
            metavar="PATH",
            help="Weights of the model in the volume. Default: MODEL.safetensors of the project, if it has one, or "
            "else the pinned weights of torchvision, which the pod downloads.",
        ),
        click.option("--gpu", type=click.IntRange(0), default=flavor.gpu, show_default=True, help="Number of GPUs."),
        click.option("--cpu", default="1", show_default=True, metavar="QUANTITY", help="CPU cores to request."),
        click.option("--memory", default="4Gi", show_default=True, metavar="QUANTITY", help="Memory to request."),
        click.option(
            "--ttl",
            default=flavor.ttl,
            callback=lifetime,
            metavar="DURATION",
            help=f"Time after which finished pods are deleted. Default: {flavor.ttl or 'they stay'}.",
        ),
        click.option(
            "--pvc-ttl",
            default=flavor.pvc_ttl,
            callback=lifetime,
            metavar="DURATION",
            help=f"Time after the run when the volume is deleted. Default: {flavor.pvc_ttl or 'it stays'}.",
        ),
        click.option(
            "--create-pvc/--no-create-pvc",
            default=True,
            show_default=True,
            help="Create the volume if it does not exist.",
        ),
        click.option("--pvc-name", default="", metavar="NAME", help="Volume. Default: artifacts-NAME."),
        click.option("--pvc-size", default="1Gi", show_default=True, metavar="QUANTITY", help="Size of a new volume."),
        click.option(
            "--storage-class",
            default=flavor.storage_class,
            metavar="NAME",
            help=f"StorageClass of a new volume. Default: {flavor.storage_class or 'that of the profile'}.",
        ),
        click.option(
            "--image",
            default="",
            metavar="IMAGE",
            help="Image to run. Default: the one that classifies."
            + (f" Without --command it runs `{' '.join(flavor.command)}`." if flavor.command else ""),
        ),
        click.option(
            "--command", "words", default="", callback=command_words, metavar="COMMAND", help="Command of the image."
        ),
        click.option("--wait", is_flag=True, help="Wait for the end of the Job, and exit as `watch` does."),
        timeout_option,
    ]


def commands(flavor: Flavor) -> list[click.Command]:
    """Return the command."""

    @click.pass_obj
    def create(
        console: Console,
        /,
        name: str,
        project_dir: Path | None,
        target_path: str,
        wait: bool,
        timeout: str,
        create_pvc: bool,
        namespace: str,
        kubeconfig: str,
        context: str,
        **given: Any,
    ) -> None:
        if len(flavor.job(name)) > _LABEL_MAX:
            most = _LABEL_MAX - len(flavor.job(""))
            raise click.UsageError(f"NAME has {len(name)} characters and may have {most}")
        session = Session(console, flavor, namespace=namespace, kubeconfig=kubeconfig, context=context)
        given["project_dir"], given["target_path"] = project_dir, target_path
        run = _run(session, name, given)
        if given["ttl"] or given["pvc_ttl"]:
            _warn_without_reaper(session)
        with transfer_line(console) as progress:
            job = ops_create.create_run(
                session.cluster,
                run,
                session.config,
                project=project_dir,
                folder=target_path,
                report=console.out,
                detail=lambda text: console.say(text, level=1),
                progress=progress,
                create_claim=create_pvc,
            )
        if wait:
            follow(session, job, float(timeout) if timeout else None)
        else:
            console.say(f"watch it with: {session.command('watch', name)}")

    function: Any = create
    for option in [cluster_options, *reversed(_options(flavor))]:
        function = option(function)
    return [click.command("create", help=_SUMMARY)(click.argument("name", callback=_name)(function))]


def _warn_without_reaper(session: Session) -> None:
    """Print that nothing expires, unless a reaper works in the namespace or the user may not look for one."""
    found = cluster_reapers.reapers(session.cluster, [session.namespace])
    if found is not None and not any(each.works_in(session.namespace) for each in found):
        session.console.say(
            f"no kaigen-reaper works in namespace {session.namespace}: nothing expires until one does, or until you "
            f"run `{session.flavor.program} cleanup`"
        )


def _name(_context: click.Context, argument: click.Parameter, value: str) -> str:
    if len(value) > APP_NAME_MAX:
        raise click.BadParameter(f"has more than {APP_NAME_MAX} characters", param=argument)
    return value


def _run(session: Session, name: str, given: dict[str, Any]) -> Any:
    """Return the run that the options describe."""
    flavor = session.flavor
    for option in ("input_path", "output_path", "target_path"):
        inside_mount(given[option], option)
    spec: dict[str, Any] = {"resources": {"cpu": given["cpu"], "memory": given["memory"]}}
    if given["gpu"]:
        spec["resources"]["gpus"] = given["gpu"]
    if given["ttl"]:
        spec["ttl"] = {"pods": int(given["ttl"]) if given["ttl"].isdecimal() else given["ttl"]}
    annotations = {}
    if given["words"] and not given["image"]:
        raise click.UsageError("--command requires --image")
    if given["image"] and given["image"] == flavor.replaced_image:
        session.console.say(f"{given['image']} is in no registry, so kaigen's own image classifies")
        given["image"] = ""
    if given["words"]:
        spec |= {"image": given["image"], "command": given["words"]}
    elif given["image"] and flavor.command:
        names = {"model": given["model"], "input": given["input_path"], "output": given["output_path"]}
        words = [word for name, value in names.items() for word in (f"--{name}", value)]
        spec |= {"image": given["image"], "command": list(flavor.command), "args": words}
        if path := _awaited(given["input_path"], given["project_dir"], given["target_path"]):
            spec["inputs"] = {"into": "output", "files": [{"path": path, "wait": _wait_of(given)}]}
        annotations = {ops_build.MODEL: given["model"]}
    else:
        spec |= _classification(given)
        annotations = {ops_build.MODEL: given["model"]}
    annotations[ops_build.ARTIFACT] = given["output_path"]
    claim = ops_build.Claim(
        given["pvc_name"] or f"artifacts-{name}", _MOUNT, given["pvc_size"], given["storage_class"], given["pvc_ttl"]
    )
    return ops_build.Run(name, session.namespace, flavor.job(name), claim, spec, dict(flavor.labels(name)), annotations)


def _classification(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec that classifies an image."""
    model, weights = given["model"], given["weights"]
    project = given["project_dir"]
    if not weights and project is not None and (project / f"{model}.safetensors").is_file():
        weights = f"{given['target_path'].rstrip('/')}/{model}.safetensors"
    settings = {"model": model, "input": given["input_path"], "output": given["output_path"]}
    if given["image"]:
        settings["image"] = given["image"]
    spec: dict[str, Any] = {"workload": "classify", "classify": settings}
    if path := _awaited(given["input_path"], project, given["target_path"]):
        spec["inputs"] = {"into": "output", "files": [{"path": path, "wait": _wait_of(given)}]}
    if weights:
        settings["weights"] = {"path": weights}
        return spec
    pinned = classifier_weights(model)
    settings["weights"] = pinned.settings()
    spec["model"] = {"source": pinned.source(), "mountPath": f"{_MOUNT}/.model"}
    return spec


def _wait_of(given: dict[str, Any]) -> str:
    """Return the longest time to wait for the input, as specs have it."""
    if not given["input_wait"].isdecimal():
        raise click.UsageError("--input-wait must be seconds or a duration such as 30m")
    return f"{given['input_wait']}s"


def _awaited(path: str, project: Path | None, target: str) -> str:
    """Return the path in the volume of an image that is uploaded later; empty when there is no such image.

    A folder of images has no end that one could wait for.
    """
    name = PurePosixPath(path)
    folder = PurePosixPath(target)
    if project is not None and name.is_relative_to(folder) and (project / name.relative_to(folder)).exists():
        return ""
    return str(name.relative_to(_MOUNT)) if name.suffix else ""


def inside_mount(path: str, option: str, mount: str = _MOUNT) -> str:
    """Return a path; refuse one that is not in the volume.

    Raises:
        BadParameter: it leads out of the volume.
    """
    root = mount.rstrip("/")
    normal = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in normal or not f"{path.rstrip('/')}/".startswith(f"{root}/"):
        raise click.UsageError(f"--{option.replace('_', '-')} must be a path in {root}")
    return path
