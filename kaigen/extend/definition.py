"""Read folders that define kinds: `kind.yaml`, `schema.yaml` and `templates/`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta

from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.extend.defined_kind import SUFFIX, Definition
from kaigen.extend.schemas import check_schema
from kaigen.extend.templates import check_templates
from kaigen.files import walk
from kaigen.kinds.base import text
from kaigen.kinds.block import Block
from kaigen.kinds.entry import API_VERSION, GROUP_VERSION, KindEntry
from kaigen.kinds.validate import validate_document
from kaigen.yaml.document import parse
from kaigen.yaml.sources import read_sources

if TYPE_CHECKING:
    from kaigen.yaml.document import Document
    from kaigen.yaml.sources import Source

FILE = "kind.yaml"
SCHEMAS = ("schema.yaml", "schema.json")
TEMPLATES = "templates"


class Defined(Block):
    """The apiVersion and kind of the documents."""

    api_version: Annotated[
        str,
        text(
            GROUP_VERSION,
            max_length=253,
            description="Group and version, as in `acme.example/v1`.",
            examples=["acme.example/v1"],
        ),
    ]
    kind: Annotated[
        str, text(r"^[A-Z][A-Za-z0-9]*$", max_length=63, description="Name of the kind.", examples=["Scorer"])
    ]


class KindFile(Block):
    """The definition of a kind: its name and its purpose."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")]
    kind: Annotated[Literal["KindDefinition"], Meta(description="The kind.")]
    defines: Annotated[Defined, Meta(description="How documents of the kind begin.")]
    summary: Annotated[
        str,
        text(
            r"^[^\n]*$",
            min_length=1,
            max_length=200,
            description="What the kind is for, a few words.",
            examples=["a model that scores rows"],
        ),
    ]
    pod_security: Annotated[
        Literal["restricted", "baseline", "privileged"],
        Meta(description="Level of the Pod Security Standards that its pods keep."),
    ] = "restricted"


DEFINITION_ENTRY = KindEntry(API_VERSION, "KindDefinition", "kaigen.extend.definition:KindFile", "a user-defined kind")


def files_of(root: Path, folders: tuple[str, ...]) -> list[Path]:
    """Return every file below some folders, sorted; links to folders are not followed."""
    found: list[Path] = []
    for folder in folders:
        for base, inner, names in walk(root / folder):
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            found += [Path(base, name) for name in names if not name.startswith(".")]
    return sorted(set(found))


Name = tuple[str, str]
"""apiVersion and kind."""


def read_definitions(
    root: Path, folders: tuple[str, ...]
) -> tuple[list[Definition], list[Diagnostic], set[Name | None]]:
    """Read the kinds that folders define.

    Args:
        root: the repository.
        folders: each contains `kind.yaml`, or folders that do.

    Returns:
        The valid definitions, the errors, and the names of the invalid ones; None for a name that cannot be read.
    """
    diagnostics = Diagnostics()
    definitions = []
    broken: set[Name | None] = set()
    for folder in folders:
        base = root / folder
        if not base.is_dir():
            diagnostics.add(
                Diagnostic("KG1001", "folder of kinds not found", Mark(_shown(base)), "correct `kinds` in kaigen.yaml")
            )
            broken.add(None)
            continue
        for kind_folder in _kind_folders(base):
            definition, name = _read(kind_folder, root, diagnostics)
            if definition is not None:
                definitions.append(definition)
            else:
                broken.add(name)
    return definitions, diagnostics.sorted(), broken


def _shown(path: Path) -> str:
    return os.path.normpath(path).replace(os.sep, "/")


def _kind_folders(base: Path) -> Iterator[Path]:
    if (base / FILE).exists():
        yield base
        return
    for inner in sorted(base.iterdir()):
        if inner.is_dir() and not inner.name.startswith("."):
            yield inner


def _read(folder: Path, root: Path, diagnostics: Diagnostics) -> tuple[Definition | None, Name | None]:
    own = Diagnostics()
    head = _document(folder / FILE, root, own)
    file: Any = None
    if head is not None:
        file, problems = validate_document(head, DEFINITION_ENTRY)
        own.extend(problems)
    schema_path = next((folder / name for name in SCHEMAS if (folder / name).exists()), folder / SCHEMAS[0])
    schema = _document(schema_path, root, own)
    if schema is not None:
        own.extend(check_schema(schema))
    templates = _templates(folder / TEMPLATES, root, own)
    if templates and not own.has_errors:
        own.extend(check_templates(templates))
    diagnostics.extend(own)
    name = (file.defines.api_version, file.defines.kind) if file else None
    if own.has_errors or head is None or schema is None:
        return None, name
    texts = [head.source.text, schema.source.text, *(f"{name}\0{s.text}" for name, s in templates.items())]
    assert isinstance(schema.data, dict)
    definition = Definition(
        folder=_shown(folder),
        api_version=file.defines.api_version,
        kind=file.defines.kind,
        summary=file.summary,
        pod_security=file.pod_security,
        schema=schema.data,
        templates=templates,
        mark=head.mark(("defines", "kind")),
        signature=sha256("\0\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest(),
    )
    return definition, name


def _document(path: Path, root: Path, diagnostics: Diagnostics) -> Document | None:
    sources, problems = read_sources([str(path)], root=root)
    diagnostics.extend(problems)
    documents = [document for source in sources for document in parse(source, diagnostics)]
    if not documents or problems.has_errors:
        return None
    if len(documents) > 1:
        diagnostics.add(Diagnostic("KG1001", f"{path.name} must contain only one document", documents[1].mark(())))
    if not isinstance(documents[0].data, dict):
        diagnostics.add(Diagnostic("KG1001", f"{path.name} must contain a mapping", documents[0].mark(())))
        return None
    return documents[0]


def _templates(folder: Path, root: Path, diagnostics: Diagnostics) -> dict[str, Source]:
    templates: dict[str, Source] = {}
    before = len(diagnostics)
    for path in files_of(folder, (".",)):
        name = path.relative_to(folder).as_posix()
        if not name.endswith(".jinja"):
            hint = f"rename it to `{name}.jinja`, or move it out of this folder"
            diagnostics.add(Diagnostic("KG1004", "this file is not a template", Mark(_shown(path)), hint))
            continue
        sources, problems = read_sources([str(path)], root=root)
        diagnostics.extend(problems)
        if sources:
            templates[name] = sources[0]
    if len(diagnostics) == before and not any(name.endswith(SUFFIX) for name in templates):
        hint = f"add a template for each object, for example `{TEMPLATES}/deployment{SUFFIX}`"
        diagnostics.add(Diagnostic("KG1004", f"no file name ends in `{SUFFIX}`", Mark(_shown(folder)), hint))
    return templates
