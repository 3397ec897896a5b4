"""Lowers `Notebook` to a Notebook.

The token that opens it is in a Secret; in the operator it is the word `default` for every notebook.
"""

from __future__ import annotations

from kaigen.dialects.draft import Draft
from kaigen.dialects.substratus.container import CONTENT, put_container
from kaigen.dialects.substratus.image import CONTEXT, local_fields, put_image
from kaigen.dialects.substratus.kinds import Notebook
from kaigen.dialects.substratus.resource import SPEC, SubstratusLowering, one_of
from kaigen.kinds import notebook as kinds_notebook
from kaigen.kinds.lowering import PREFIX, LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned

DIRECTIVES = ("size",)

TOKEN = "NOTEBOOK_TOKEN"
"""Variable with the token in the contract of containers."""

_MODEL_OF_DESIGN = "/model/saved"
_COMMAND = ("jupyter", "lab", "--ip=0.0.0.0", "--no-browser", "--notebook-dir=/content")
_COMMAND_OF_OPERATOR = (
    "jupyter",
    "lab",
    "--allow-root",
    "--ip=0.0.0.0",
    f"--NotebookApp.token=$({TOKEN})",
    "--notebook-dir=/content",
)
_SIZE = "10Gi"


def lower(notebook: Notebook, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a `Notebook` as a Notebook.

    Args:
        notebook: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    spec = notebook.spec
    lowering = SubstratusLowering(notebook, "Notebook", document, context, DIRECTIVES)
    name = lowering.app_name()
    draft = lowering.draft(name)
    local = [] if CONTEXT in lowering.given else local_fields(spec)
    for path in local:
        lowering.warning(
            "KG0414",
            f"`{path[-1]}` builds an image from a folder of somebody's computer, and kaigen renders what is in Git; "
            "so the notebook has kaigen's own image",
            path,
            f"`kaigen notebook open {name} --folder .` synchronizes the folder; to build an image of it, "
            f"`kaigen build push` it and set `{PREFIX}{CONTEXT}`",
            key=True,
        )
    has_image = False if local and spec.image is None else put_image(draft, spec, lowering)
    if not has_image and not local and not lowering.failed:
        message = "neither `image` nor `build` names an image, so the operator waits forever"
        at = SPEC if lowering.has_spec else ("metadata", "name")
        lowering.error("KG0412", message, at, "set `image` or `build`")
    put_container(draft, spec, lowering, run=None, script="notebook.sh" if has_image else "")
    if has_image:
        _put_entry(draft, notebook, name, lowering)
    _put_stored(draft, notebook, lowering)
    if spec.suspend:
        draft.put(("spec", "suspend"), True, (*SPEC, "suspend"))
    draft.put(("spec", "storage", "size"), lowering.size or _SIZE, lowering.size_at())
    lowered = draft.finish(kinds_notebook.Notebook, lowering) if not lowering.failed else None
    return lowering.result() if lowered is None else lowering.result(draft.lowered(lowered))


def _put_entry(draft: Draft, notebook: Notebook, name: str, lowering: SubstratusLowering) -> None:
    """Put the command, the folder of the files, and the token in the variable of the contract."""
    spec = notebook.spec
    if not lowering.is_design:
        draft.put(("spec", "storage", "mountPath"), CONTENT.output)
        if spec.command is None:
            command = _COMMAND_OF_OPERATOR if lowering.compat else _COMMAND
            if lowering.pod_security == "baseline" and not lowering.compat:
                command = (*command, "--allow-root")
            draft.put(("spec", "command"), list(command))
    if TOKEN in spec.env:
        reason = "the operator replaces it, and kaigen takes it from the Secret of the token"
        lowering.without_effect((*SPEC, "env", TOKEN), reason)
    draft.put(("spec", "env", TOKEN), {"secret": {"name": f"{name}-token", "key": "token"}})


def _put_stored(draft: Draft, notebook: Notebook, lowering: SubstratusLowering) -> None:
    """Put the Model and the Dataset that the notebook reads."""
    spec = notebook.spec
    model = one_of(
        [("model", spec.model, SPEC), ("sourceModel", spec.source_model, SPEC), ("baseModel", spec.base_model, SPEC)],
        lowering,
    )
    dataset = one_of([("dataset", spec.dataset, SPEC), ("trainingDataset", spec.training_dataset, SPEC)], lowering)
    of_model = _MODEL_OF_DESIGN if lowering.is_design else CONTENT.model
    for kind, field, found, folder in (
        ("Model", "models", model, of_model),
        ("Dataset", "datasets", dataset, "/data" if lowering.is_design else CONTENT.data),
    ):
        named = lowering.reference(kind, found[0]) if found is not None else {}
        if found is not None and named:
            draft.put(("spec", field), [{**named, "mountPath": folder}], found[1])
            lowering.put_origins(draft, ("spec", field, 0), *found)
