"""A Job from a Notebook: what was tried by hand becomes a spec that trains."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.diagnostics.errors import CheckFailed, SystemFailure
from kaigen.git.runner import run_git
from kaigen.kinds.base import APP_NAME_MAX
from kaigen.kinds.blocks import Mounted
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.kind import Continued, ForeignKind, GitSource, Trainer
from kaigen.kinds.notebook import Notebook
from kaigen.kinds.spec import Spec
from kaigen.pipeline.run import Run
from kaigen.scaffold.checkout import read_checkout
from kaigen.yaml.dump import dump

_NO_MODEL = "# model: {name: MODEL}  # Name the base model: the notebook has %s.\n"
_NO_DATASET = "# inputs: [{dataset: DATASET}]  # Name the dataset: the notebook has %s.\n"


class Promotion(Struct, frozen=True):
    """The spec of a Job.

    Attributes:
        path: where it is written.
        text: its content.
        blank: fields that the user has to fill in.
        changed: whether the folder with the program has changes that are not in its commit.
    """

    path: Path
    text: str
    blank: tuple[str, ...]
    changed: bool = False


def promotion_of(
    config: Config,
    name: str,
    *,
    paths: Sequence[str] = (),
    image: str = "",
    program: Path | None = None,
    artifact: str = "",
    command: Sequence[str] = (),
    label: str = "",
) -> Promotion:
    """Return the Job that runs the work of a Notebook: same weights, data, parameters and resources.

    Args:
        config: settings of the repository.
        name: name of the Notebook; empty for the only one.
        paths: files with its spec; all specs of the repository when empty.
        image: image with the training program; that of the Notebook, or its build, when empty.
        program: folder of a Git checkout with the training program and its Dockerfile, whose commit is built.
        artifact: pushed folder with the training program and its Dockerfile, which is built.
        command: command of the image; its own when empty.
        label: end of the name; the Git branch when empty, or the Unix time outside a branch.

    Raises:
        InputError: a spec is invalid.
        CheckFailed: there is no such Notebook, no image, no commit to build, or the name is too long.
    """
    spec = find_notebook(config, name, paths)
    block, data = spec.block, spec.document.data
    assert isinstance(block, Notebook)
    assert isinstance(data, Mapping)
    label = _label(label or _branch(config.root) or str(int(time.time())))
    own = data["metadata"]["name"]
    app = f"{own}-{label}"
    if len(app) > APP_NAME_MAX:
        raise CheckFailed(f"the name {app} has more than {APP_NAME_MAX} characters", hint="set --label")
    checkout = read_checkout(program) if program is not None else None
    trainer = Trainer(image, checkout.source if checkout is not None else None, command, artifact)
    if isinstance(spec.entry, ForeignKind):
        made = spec.entry.continued(data, app, trainer)
    else:
        made = _job(block, data, app, trainer)
    if not made.has_image:
        hint = (
            "name an image with the training program with --image, or the Git checkout of its Dockerfile with --folder"
        )
        raise CheckFailed(f"Notebook {own} has kaigen's own image, which trains nothing", hint=hint)
    text = f"# From the Notebook {own}, by `kaigen notebook promote`.\n{dump(made.document)}{made.comments}"
    path = (config.root / spec.source).parent / f"model-{label}.yaml"
    return Promotion(path, text, made.blank, changed=checkout is not None and checkout.changed)


def _job(block: Notebook, data: Mapping[str, Any], app: str, trainer: Trainer) -> Continued:
    """Return the Job of a Notebook of kaigen."""
    given: Mapping[str, Any] = data.get("spec") or {}
    fields = _image(given, trainer)
    has_image = bool(fields)
    if trainer.command:
        fields["command"] = list(trainer.command)
    models = [_mounted(item) for item in block.spec.models]
    datasets = [_mounted(item) for item in block.spec.datasets]
    comments, blank = [], []
    if len(models) == 1:
        fields["model"] = {"name": models[0].name, "mountPath": models[0].mount_path or f"/models/{models[0].name}"}
    else:
        blank.append("model")
        comments.append(_NO_MODEL % _count(models))
    if len(datasets) == 1:
        folder = PurePosixPath(datasets[0].mount_path or f"/datasets/{datasets[0].name}")
        file = {"dataset": datasets[0].name, "path": folder.name}
        fields["inputs"] = {"files": [file], "mountPath": str(folder.parent)}
    else:
        blank.append("inputs")
        comments.append(_NO_DATASET % _count(datasets))
    fields["output"] = {"volume": {"size": block.spec.storage.size}}
    fields |= {key: given[key] for key in ("resources", "params") if given.get(key)}
    metadata = {"name": app, **({"namespace": data["metadata"]["namespace"]} if block.metadata.namespace else {})}
    document = {"apiVersion": API_VERSION, "kind": "Job", "metadata": metadata, "spec": fields}
    text = "".join(f"  {comment}" for comment in comments)
    return Continued(document, text, tuple(blank), has_image=has_image)


def _image(given: Mapping[str, Any], trainer: Trainer) -> dict[str, Any]:
    """Return the fields with the image, or with what it is built from; none for kaigen's own image."""
    if trainer.image:
        return {"image": trainer.image}
    build: Mapping[str, Any] = given.get("build") or {}
    source: dict[str, Any] = {"artifact": trainer.artifact} if trainer.artifact else {}
    source |= {"git": _context(trainer.git)} if trainer.git is not None else {}
    if source:
        how = {key: value for key, value in build.items() if key not in ("git", "artifact")}
        return {"build": {**source, **how}}
    return {key: given[key] for key in ("image", "build", "imagePullSecrets") if given.get(key)}


def _context(source: GitSource) -> dict[str, str]:
    return {"url": source.url, "commit": source.commit} | ({"path": source.path} if source.path else {})


def write_promotion(promotion: Promotion, config: Config) -> None:
    """Write the spec, and remove it again if it is invalid.

    Raises:
        CheckFailed: there is another file of that name.
        InputError: the spec is invalid, next to the others of the repository.
    """
    path = promotion.path
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(promotion.text)
    except FileExistsError:
        raise CheckFailed(f"{path} exists", hint="set --label, or remove the file") from None
    try:
        Run.load([str(path)], config, use_cache=False, folder=Path()).apps()
    except BaseException:
        path.unlink()
        raise


def find_notebook(config: Config, name: str, paths: Sequence[str] = ()) -> Spec:
    """Return the spec of a Notebook that a Job can continue.

    Args:
        config: settings of the repository.
        name: name of the Notebook; empty for the only one.
        paths: files with its spec; all specs of the repository when empty.

    Raises:
        InputError: a spec is invalid.
        CheckFailed: there is no such Notebook, or several.
    """
    run = Run.load(paths, config, folder=Path() if paths else None)
    found = [
        spec
        for spec in run.specs
        if isinstance(spec.block, Notebook) and _is_continued(spec) and name in ("", *_names(spec))
    ]
    if len(found) != 1:
        which = f'Notebooks "{name}"' if name else "Notebooks"
        raise CheckFailed(f"the specs have {len(found)} {which}", hint="name one Notebook, and its file with -f")
    return found[0]


def _is_continued(spec: Spec) -> bool:
    """Return whether a Notebook is one of kaigen, or of a system that runs what was tried."""
    return not spec.lowered or (isinstance(spec.entry, ForeignKind) and bool(spec.entry.continued_reference))


def _names(spec: Spec) -> tuple[str, str]:
    """Return the names of a Notebook: that of its app, and its own."""
    data: Any = spec.document.data
    return spec.block.metadata.name, data["metadata"]["name"]


def _mounted(item: str | Mounted) -> Mounted:
    return Mounted(name=item) if isinstance(item, str) else item


def _count(items: Sequence[object]) -> str:
    return f"{len(items)}" if items else "none"


def _branch(root: Path) -> str:
    """Return the branch of the checkout; empty if there is none."""
    try:
        found = run_git(root, ["branch", "--show-current"])
    except SystemFailure:
        return ""
    return found.out.decode(errors="replace").strip() if found.ok else ""


def _label(text: str) -> str:
    """Return a text as the end of a name of Kubernetes."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if not label:
        raise CheckFailed(f"{text!r} has no letter or digit for a name", hint="set --label")
    return label
