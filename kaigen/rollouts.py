"""Changes of a canary in the file of its Topology: its weight, and its end as the version that serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from yaml.nodes import MappingNode, Node

from kaigen.config.settings import Config
from kaigen.config.tenant_settings import default_namespace
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.errors import InputError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.dialects.registry import find_kind
from kaigen.environments.patch import PatchedDocument
from kaigen.kinds.canary import OWN
from kaigen.kinds.exposure import EVERY_REQUEST
from kaigen.kinds.spelling import present_document
from kaigen.kinds.versions import pool_digest
from kaigen.pipeline.run import Run
from kaigen.scaffold.changes import FileChange, last_line, mark_of
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source


class RolloutChange(Struct, frozen=True):
    """A planned change of a canary; nothing is written yet.

    Attributes:
        app: name of the Topology.
        file: the change of its file.
        pool: name of the app with the pods of the canary.
        old: percentage of the requests that the canary gets now.
        new: percentage that it will get.
        finished: whether the canary becomes the version that serves.
        removed: name of the pool whose pods go; empty for none.
    """

    app: str
    file: FileChange
    pool: str
    old: int
    new: int
    finished: bool = False
    removed: str = ""

    @property
    def raises(self) -> bool:
        """Whether more requests will reach the canary."""
        return self.new > self.old


def plan_weight(config: Config, app: str, weight: int) -> RolloutChange:
    """Return the change of a canary's weight.

    Args:
        config: settings of the environment.
        app: `NAME` or `NAMESPACE/NAME` of the Topology.
        weight: the percentage of requests.

    Raises:
        InputError: there is no such canary, or its file cannot be changed; also for specs with errors.
    """
    found = _find(config, app)
    document, given = found.document, found.data
    data = {**given, "spec": {**given["spec"], "canary": {**found.canary, "weight": weight}}}
    file = _checked(document, _with_weight(document, weight), data)
    return RolloutChange(str(document.name), file, found.pool, found.weight, weight)


def plan_finish(config: Config, app: str) -> RolloutChange:
    """Return the change that makes a canary the version that serves, whose pods stay as they are.

    Args:
        config: settings of the environment.
        app: `NAME` or `NAMESPACE/NAME` of the Topology.

    Raises:
        InputError: there is no such canary, it does not get every request yet, or its file cannot be changed; also for
            specs with errors.
    """
    found = _find(config, app)
    document, canary = found.document, found.canary
    name = str(document.name)
    if found.weight != EVERY_REQUEST:
        message = f"the canary of `{name}` gets {found.weight} % of the requests, and the old pods get the rest"
        hint = f"run `kaigen promote {name} --weight {EVERY_REQUEST}`, and finish when that is in the cluster"
        raise _error(document, message, hint, ("spec", "canary"))
    spec = dict(found.data["spec"])
    old = f"{name}-{spec['pool']}" if "pool" in spec else name
    version = {key: value for key, value in canary.items() if key not in OWN}
    suffix = found.pool.removeprefix(f"{name}-")
    del spec["canary"]
    data = {**found.data, "spec": {**spec, **version, "pool": suffix}}
    file = _checked(document, _finished(document, list(version), suffix), data)
    return RolloutChange(name, file, found.pool, EVERY_REQUEST, EVERY_REQUEST, finished=True, removed=old)


class _Found(Struct, frozen=True):
    """A canary: its document as it is written, and what it is in the environment."""

    document: Document
    data: dict[str, Any]
    canary: dict[str, Any]
    pool: str
    weight: int


def _find(config: Config, app: str) -> _Found:
    """Return the document of a Topology with a canary."""
    run = Run.load((), config)
    run.raise_errors()
    namespace, _, name = app.rpartition("/")
    documents: dict[tuple[str, int], tuple[Document, Any]] = {}
    for spec in (spec for unit in run.units for spec in unit.loaded.specs):
        patched: Any = spec.document
        base: Any = patched.base if isinstance(patched, PatchedDocument) else patched
        if base.kind == "Topology" and base.name == name:
            default = default_namespace(spec.source, config.tenants, config.namespace)
            if namespace in {"", patched.data["metadata"].get("namespace") or default}:
                documents[base.source.path, base.index] = (base, patched)
    if len(documents) != 1:
        message = f"{len(documents)} Topologies are named `{app}`" if documents else f"no Topology is named `{app}`"
        topologies = {name for unit in run.units for kind, _, name in unit.defines if kind == "Topology"}
        hint = "name one as NAMESPACE/NAME" if documents else did_you_mean(name, topologies)
        raise InputError.of("KG0435", message, hint=hint)
    ((base, patched),) = documents.values()
    data: Any = base.data
    canary = data["spec"].get("canary")
    if not isinstance(canary, dict):
        raise _error(base, f"`{name}` has no canary", "add `canary` with what is new, such as `image`", ("spec",))
    layer = patched.layer(("spec", "canary", "weight")) if isinstance(patched, PatchedDocument) else None
    if layer is not None:
        raise _error(base, "an override sets the weight", "change it there", ("spec", "canary"))
    effective = patched.data["spec"]["canary"]
    pool = effective.get("pool") or pool_digest(effective)
    return _Found(base, data, canary, f"{name}-{pool}", int(canary.get("weight", 0)))


def _error(document: Document, message: str, hint: str, path: Sequence[str]) -> InputError:
    return InputError.of("KG0435", message, mark=document.mark(path), hint=hint, path=".".join(path))


def _checked(document: Document, text: str | None, data: Any) -> FileChange:
    """Return the change of a file to a text whose document has this data, and whose others have what they had.

    Raises:
        InputError: it does not, or there is no text.
    """
    source = document.source
    wanted = [data if index == document.index else each for index, each in enumerate(_present(source))]
    if text is None or _present(Source(source.path, text)) != wanted:
        message = "the canary is written in a way that cannot be changed without changing something else"
        raise _error(document, message, "change it by hand, or write `canary` as a block of lines", ("spec", "canary"))
    path = Path(source.path)
    mark = mark_of(path)
    return FileChange(path, mark + source.text, mark + text)


def _present(source: Source) -> list[Any]:
    """Return the data of the documents of a text, in the present spelling."""
    found = []
    for document in parse(source, Diagnostics()):
        entry = find_kind(document.apiVersion, document.kind)
        found.append((document if entry is None else present_document(document, entry)).data)
    return found


def _with_weight(document: Document, weight: int) -> str | None:
    text = document.source.text
    span = document.span(("spec", "canary", "weight"))
    if span is not None:
        return text[: span[0]] + str(weight) + text[span[1] :]
    pair = document.pair(("spec", "canary"))
    if pair is None or not isinstance(pair[1], MappingNode) or not pair[1].value:
        return None
    start = pair[1].value[0][0].start_mark
    between = ", " if pair[1].flow_style else "\n" + " " * start.column
    return f"{text[: start.index]}weight: {weight}{between}{text[start.index :]}"


def _finished(document: Document, fields: Sequence[str], pool: str) -> str | None:
    """Return the text with the fields of the canary as those of the spec; None where these are not lines of a block."""
    pair, spec = document.pair(("spec", "canary")), document.pair(("spec",))
    if pair is None or spec is None or document.is_flow(("spec",)):
        return None
    lines = document.source.text.splitlines(keepends=True)
    indent = pair[0].start_mark.column
    first, last = _lines(pair)
    changes: list[tuple[int, int, list[str]]] = []
    rest: list[str] = []
    for name in fields:
        own = document.pair(("spec", "canary", name))
        assert own is not None
        new = _moved(document, own, indent, lines)
        old = document.pair(("spec", name))
        if old is None:
            rest += new
        else:
            changes.append((*_lines(old), new))
    line = " " * indent + f"pool: {pool}\n"
    old = document.pair(("spec", "pool"))
    if old is None:
        rest.append(line)
    else:
        changes.append((*_lines(old), [line]))
    for start, end, new in sorted([*changes, (first, last, rest)], reverse=True):
        lines[start : end + 1] = new
    return "".join(lines)


def _moved(document: Document, pair: tuple[Node, Node], indent: int, lines: Sequence[str]) -> list[str]:
    """Return the lines of a field of the canary, as a field of the spec."""
    key, value = pair
    if document.is_flow(("spec", "canary")):
        text = document.source.text
        return [" " * indent + text[key.start_mark.index : value.end_mark.index] + "\n"]
    first, last = _lines(pair)
    shift = key.start_mark.column - indent
    moved = [line[shift:] if line.strip() else line for line in lines[first : last + 1]]
    return [*moved[:-1], moved[-1].rstrip("\n") + "\n"]


def _lines(pair: tuple[Node, Node]) -> tuple[int, int]:
    """Return the first and the last line of a field."""
    return pair[0].start_mark.line, max(last_line(pair[0]), last_line(pair[1]))
