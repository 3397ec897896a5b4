"""Check plain Kubernetes manifests from any source, for `kaigen check`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from kaigen.check.atoms import as_written
from kaigen.check.codes import UNKNOWN_KIND
from kaigen.check.controller_versions import version_findings
from kaigen.check.custom_rules import default_findings
from kaigen.check.policy import check_policy
from kaigen.check.references import check_classes, check_references
from kaigen.check.schema_check import check_object
from kaigen.config.settings import Config
from kaigen.core.json_types import FieldPath, Step
from kaigen.diagnostics.category import UNREADABLE, Category
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.diagnostics.problem import Problem, first_problems
from kaigen.dialects.packages import find_any_kind
from kaigen.files import walk
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.system.limits import GENERATED_FILE_BYTES
from kaigen.yaml.document import parse
from kaigen.yaml.sources import STDIN, Limits, read_sources

if TYPE_CHECKING:
    from kaigen.config.external import ExternalEntry
    from kaigen.yaml.document import Document


NO_MANIFESTS = ("kustomize.config.k8s.io/",)
"""API groups of files next to manifests that tools read, not the API server."""
_UNREADABLE = UNREADABLE | {Category.SCALAR}
_SECRET = frozenset({Category.SECRET, Category.CREDENTIAL})
"""Problems whose place is a secret, which no report repeats."""
_POSTRENDERED = "postrenderer.helm.sh/postrender-filename"
"""The annotation in which Helm 4 gives a post-renderer the template of an object."""
_SOURCE = re.compile(r"^# Source: (\S+)$", re.MULTILINE)


class Checked(Struct, frozen=True):
    """The result of checking manifests.

    Attributes:
        diagnostics: by place; those that stopped the reading of a document included.
        files: the files read, `<stdin>` for standard input.
        objects: how many objects were checked.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: tuple[str, ...]
    objects: int

    @property
    def unreadable(self) -> bool:
        """True when something could not be read, and so was not checked."""
        return any(item.severity is Severity.ERROR and item.category in _UNREADABLE for item in self.diagnostics)

    def failed(self, *, strict: bool = False) -> bool:
        """Return whether there is an error, or with `strict` a warning."""
        least = Severity.WARNING if strict else Severity.ERROR
        return any(item.severity >= least for item in self.diagnostics)


class _Item(Struct, frozen=True):
    """One object with its place: a document, or an item of a `List`."""

    body: Object
    document: Document
    path: FieldPath = ()

    @property
    def name(self) -> str:
        """Kind and name, and the template of a chart that it came from, as far as they are known."""
        metadata = mapping(self.body.get("metadata"))
        words = [value for value in (self.body.get("kind"), metadata.get("name")) if isinstance(value, str)]
        source = mapping(metadata.get("annotations")).get(_POSTRENDERED) or _template_of(self.document)
        return " ".join([*words, *([f"({source})"] if source else [])])


def check_manifests(
    paths: Sequence[str],
    config: Config | None = None,
    *,
    stdin: IO[bytes] | None = None,
    target: str = "",
    pod_security: str = "restricted",
    ignore: Iterable[str] = (),
) -> Checked:
    """Check plain Kubernetes manifests: schema, Pod Security, names, secrets, references.

    References between all of the manifests are resolved, as in one app.

    Args:
        paths: files, folders (without charts and trees inside of them, whose files are not manifests), and `-`
            for standard input.
        config: the repository's settings; the defaults when None.
        stdin: what `-` reads.
        target: Kubernetes version, as in `1.36`; the configured one when empty.
        pod_security: level of the Pod Security Standards that pods must keep.
        ignore: codes that are not reported.

    Raises:
        ValueError: the version or the level is not known.
    """
    config = config or Config()
    # Charts with CustomResourceDefinitions render larger files than a person writes.
    limits = Limits(file_bytes=GENERATED_FILE_BYTES, documents=20_000)
    charts = [folder for path in paths if path != "-" for folder in _charts(path)]
    sources, found = read_sources(paths, root=config.root, stdin=stdin, limits=limits, exclude=charts)
    items = [
        item
        for source in sources
        for document in parse(source, found, is_manifest=lambda _: True)
        for item in _items(document)
    ]
    bodies = [item.body for item in items]
    defined = _defined_kinds(bodies)
    diagnostics = [
        item for item in found if not (item.category is Category.EMPTY and item.mark and item.mark.file == STDIN)
    ]
    for item, finding in _findings(items, target or config.kubernetes, pod_security, config):
        if finding.category is Category.UNKNOWN_KIND:
            if (_group(item.body), item.body.get("kind")) in defined:
                continue
            finding = _of_unknown_kind(item.body, finding)
        elif finding.category is Category.OBJECT_REFERENCE:
            finding = replace(finding, severity=Severity.WARNING)
        diagnostics.append(_diagnostic(item, finding))
    left_out = set(ignore)
    kept = sorted({each for each in diagnostics if each.code not in left_out}, key=Diagnostic.sort_key)
    return Checked(tuple(kept), tuple(source.path for source in sources), len(items))


def together(checks: Iterable[Checked]) -> Checked:
    """Return several checks as one, of manifests that are independent, such as those of environments."""
    every = list(checks)
    diagnostics = {item for checked in every for item in checked.diagnostics}
    files = dict.fromkeys(file for checked in every for file in checked.files)
    return Checked(
        tuple(sorted(diagnostics, key=Diagnostic.sort_key)), tuple(files), sum(checked.objects for checked in every)
    )


def _charts(path: str) -> Iterator[Path]:
    """The folders of Helm charts below a folder: their templates are not YAML yet, and their values are not objects."""
    for folder, folders, files in walk(path):
        if "Chart.yaml" in files:
            folders.clear()
            yield Path(folder)


def _items(document: Document) -> Iterator[_Item]:
    """Return the objects of a document: one, those of a `List`, or none when it is a file for a tool."""
    if (document.apiVersion or "").startswith(NO_MANIFESTS):
        return
    body = mapping(document.data)
    inside = body.get("items")
    if document.apiVersion == "v1" and document.kind == "List" and isinstance(inside, list):
        for place, each in enumerate(inside):
            yield _Item(mapping(each), document, ("items", place))
    else:
        yield _Item(body, document)


class _Declared:
    """The objects that kaigen.yaml lists."""

    def __init__(self, items: Sequence[ExternalEntry]) -> None:
        self._items = items

    def __contains__(self, identity: object) -> bool:
        return isinstance(identity, tuple) and any(item.is_named(*identity) for item in self._items)


def _findings(
    items: Sequence[_Item], target: str, pod_security: str, config: Config
) -> Iterator[tuple[_Item, Problem]]:
    bodies = [item.body for item in items]
    found: list[list[Problem]] = [[] for _ in items]
    for item, problems in zip(items, found, strict=True):
        problems += check_object(item.body, target=target)
        problems += version_findings(item.body, config.controllers)
        problems += default_findings(item.body) if config.has_argocd else ()
        if item.body:
            problems += check_policy(item.body, pod_security=pod_security)
    for place, finding in check_references(bodies, external=_Declared(config.external)):
        found[place].append(finding)
    for place, finding in check_classes(bodies, config.external):
        found[place].append(finding)
    for item, problems in zip(items, found, strict=True):
        for finding in first_problems(problems):
            yield item, finding


def _group(body: Object) -> str:
    version = body.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) else ""


def _defined_kinds(bodies: Iterable[Object]) -> set[tuple[object, object]]:
    """Return the group and kind of every custom kind that one of the objects defines."""
    found: set[tuple[object, object]] = set()
    for body in bodies:
        spec = body.get("spec")
        if body.get("kind") == "CustomResourceDefinition" and isinstance(spec, dict):
            names = spec.get("names")
            if isinstance(names, dict):
                found.add((spec.get("group"), names.get("kind")))
    return found


def _of_unknown_kind(body: Object, finding: Problem) -> Problem:
    """Return the problem of an unknown kind; for a spec, it names the command that checks specs."""
    version, kind = str(body.get("apiVersion")), str(body.get("kind"))
    if find_any_kind(version, kind) is None:
        return finding
    message = f"`{kind}` of {version} is a spec, not a Kubernetes object"
    return Problem(UNKNOWN_KIND, message, ("kind",), "check it with `kaigen validate`")


def _diagnostic(item: _Item, finding: Problem) -> Diagnostic:
    path = (*item.path, *finding.path)
    secret = finding.category in _SECRET or _in_secret(item.body, finding.path)
    mark = item.document.mark(path, key=finding.category is Category.UNKNOWN_FIELD or secret)
    message = finding.message
    if secret:
        mark = _without_values(mark)
        if finding.category not in _SECRET:
            message = "invalid value for this field"
    name = item.name
    return Diagnostic(
        finding.code,
        f"{name}: {message}" if name else message,
        mark,
        as_written(finding.hint, item.document.raw(path)) if not secret or finding.category in _SECRET else "",
        finding.severity,
        replace(finding, path=path).where,
    )


def _in_secret(body: Object, path: Sequence[Step]) -> bool:
    return body.get("kind") == "Secret" and path[:1] in (("data",), ("stringData",))


def _without_values(mark: Mark) -> Mark:
    """Return a place whose line shows the key and masks everything else."""
    start, stop = mark.column - 1, mark.column - 1 + mark.length
    before, key, after = mark.text[:start], mark.text[start:stop], mark.text[stop:]
    if not re.match(r"\s*:", after):
        key = re.sub(r"\S", "…", key)
    return replace(mark, text=re.sub(r"[^\s:]", "…", before) + key + re.sub(r"[^\s:]", "…", after))


def _template_of(document: Document) -> str:
    """Return the template in Helm's `# Source` comment above or at the start of a document."""
    text, start = document.source.text, document.node.start_mark.index
    begin = text.rfind("\n---", 0, start)
    found = _SOURCE.findall(text, max(begin, 0), start)
    return found[-1] if found else ""
