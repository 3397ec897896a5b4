"""The page *What ran* of the site: which tests ran each kind of object that kaigen emits, and why some kinds never ran.

Nothing runs: the markers of the cluster tests are read from their source. `tests/cluster/proof.py` checks them while
the tests run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tools.markers import markers_in

ROOT = Path(__file__).parent.parent
_TESTS = ROOT / "tests" / "cluster"
_DATA = Path(__file__).parent / "proven.yaml"
PAGE = "proven.md"
"""Path of the page in the site."""
_DEMO = "examples/demo/rendered"
_ACCEPTED = "tests/cluster/test_output_accepted.py"


class Marker(msgspec.Struct, frozen=True):
    """A marker of a test.

    Attributes:
        name: `ran` or `accepted`.
        kinds: kinds of objects, without group.
        by: parts that ran them.
        file: path of the test's file in the repository.
        test: name of the test.
    """

    name: str
    kinds: tuple[str, ...]
    by: tuple[str, ...]
    file: str
    test: str


class Notes(msgspec.Struct, frozen=True):
    """The content of proven.yaml.

    Attributes:
        never: why a kind never ran.
        rendered: what renders a kind that no example emits.
        absent: what else never ran.
    """

    never: dict[str, str]
    rendered: dict[str, str]
    absent: list[str]


class Row(msgspec.Struct, frozen=True):
    """A line of the page.

    Attributes:
        kind: kind of object.
        rendered: what renders it.
        accepted: the test in which an API server accepted it.
        ran: markers of the tests in which it ran.
        never: why it never ran.
    """

    kind: str
    rendered: str
    accepted: str
    ran: tuple[Marker, ...]
    never: str


def notes() -> Notes:
    """Return the content of proven.yaml."""
    return msgspec.convert(yaml.safe_load(_DATA.read_text(encoding="utf-8")), Notes)


@cache
def markers() -> tuple[Marker, ...]:
    """Return the markers `ran` and `accepted` of all cluster tests.

    Raises:
        ValueError: an argument is not a literal.
    """
    return tuple(
        marker
        for file in sorted(_TESTS.glob("test_*.py"))
        for marker in markers_of(file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix())
    )


def markers_of(source: str, file: str) -> Iterator[Marker]:
    """Yield the markers of a test file, also those of single cases of a test.

    Args:
        source: Python.
        file: its path in the repository.
    """
    for found in markers_in(source, ("ran", "accepted")):
        by = found.keywords.get("by", ())
        yield Marker(found.marker, found.arguments, (by,) if isinstance(by, str) else tuple(by), file, found.test)


def emitted_kinds() -> list[str]:
    """Return the kinds that kaigen emits: those of the table, of examples, and of dictionaries in its code."""
    from kaigen.kubernetes.kind_table import KINDS

    table = [row.kind for row in KINDS.values() if row.emitted]
    others = {*examples(), *_written_in_code()} - set(table)
    return [*table, *sorted(others)]


_REQUESTS = ("doctor", "kubectl", "ops")
"""Packages whose objects are sent to an API server and not rendered."""


@cache
def _written_in_code() -> frozenset[str]:
    """Return the kinds of objects that kaigen's code writes as a dictionary with `apiVersion` and `kind`."""
    return frozenset(_kinds_in_code())


def _kinds_in_code() -> Iterator[str]:
    for file in sorted((ROOT / "kaigen").rglob("*.py")):
        if file.relative_to(ROOT / "kaigen").parts[0] in _REQUESTS:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            fields = _constants(node) if isinstance(node, ast.Dict) else {}
            files = {None, "Component", "Pins", "Model", "EndpointPickerConfig"}
            if "apiVersion" in fields and fields.get("kind") not in files:
                yield fields["kind"]


def _constants(node: ast.Dict) -> dict[str, Any]:
    return {
        key.value: value.value if isinstance(value, ast.Constant) else None
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }


@cache
def examples() -> Mapping[str, tuple[str, ...]]:
    """Return the examples and test specs that emit each kind: their names by kind."""
    from tests.cases import cases

    found: dict[str, dict[str, None]] = {}
    for name, case in cases().items():
        for item in case.compile().apps:
            for rendered in item.objects:
                found.setdefault(rendered.body["kind"], {})[name] = None
    for kind in _kinds_of_demo():
        found.setdefault(kind, {})[_DEMO] = None
    return {kind: tuple(names) for kind, names in found.items()}


def _kinds_of_demo() -> Iterator[str]:
    """Yield the kinds of the demo's output, which contains the objects for Argo CD and Flux."""
    for file in sorted((ROOT / "examples" / "demo" / "rendered").rglob("*.yaml")):
        folders = file.relative_to(ROOT).parts
        if "chart" not in folders and file.name != "kustomization.yaml":
            yield from (found["kind"] for found in yaml.safe_load_all(file.read_text(encoding="utf-8")))


def rows() -> list[Row]:
    """Return a row for each kind that kaigen emits."""
    known = notes()
    compiled = {kind for kind, names in examples().items() if set(names) != {_DEMO}}
    accepted = {kind: marker.file for marker in reversed(markers()) for kind in marker.kinds}
    accepted |= dict.fromkeys(compiled, _ACCEPTED)
    return [
        Row(
            kind,
            _examples_text(examples().get(kind, ())) or known.rendered.get(kind, ""),
            accepted.get(kind, ""),
            tuple(marker for marker in markers() if marker.name == "ran" and kind in marker.kinds),
            known.never.get(kind, ""),
        )
        for kind in emitted_kinds()
    ]


def _examples_text(names: Sequence[str]) -> str:
    """Return the first names. All of them would change the page with every new example."""
    return ", ".join(f"`{name}`" for name in names[:2]) + (", …" if len(names) > 2 else "")


def problems(table: Iterable[Row], known: Notes) -> list[str]:
    """Return what is wrong with the rows, in words: each kind needs a test or a reason, and not both.

    Args:
        table: the rows.
        known: the content of proven.yaml.
    """
    found = []
    table = list(table)
    for row in table:
        if not row.rendered and not row.ran:
            found.append(f"{row.kind}: no example renders it; name a test in `rendered` of tools/proven.yaml")
        if not row.accepted:
            found.append(f"{row.kind}: no API server accepted it; add a cluster test with the marker `accepted`")
        if not row.ran and not row.never:
            found.append(f"{row.kind}: add a test with the marker `ran`, or a reason to tools/proven.yaml")
        if row.ran and row.never:
            found.append(f"{row.kind}: {row.ran[0].test} runs it; remove its line from tools/proven.yaml")
    kinds = {row.kind for row in table}
    marked = {kind for marker in markers() for kind in marker.kinds}
    unknown = (marked | set(known.never) | set(known.rendered)) - kinds
    return found + [f"{kind}: kaigen does not emit it" for kind in sorted(unknown)]


def page() -> str:
    """Return the page as Markdown, with links as in a page of docs/."""
    table, known = rows(), notes()
    ran = [row for row in table if row.ran]
    lines = [
        "# What ran",
        "",
        "Made by `make docs` from the markers of the tests in `tests/cluster`. `make test-cluster` and",
        "`make test-engine` run them; a test fails if an object that its marker names did not run.",
        "",
        f"kaigen emits {len(table)} kinds of objects. {len(ran)} ran, under these parts:",
        "",
        *_parts(ran),
        "",
        "| kind | rendered by | accepted by an API server | ran |",
        "|---|---|---|---|",
        *(_line(row) for row in table),
        "",
        "Rendered: the examples and the specs of `tests/chart/specs/` are compared with golden files, as manifests",
        "and as charts. Accepted: `test_output_accepted.py` applies every object of all of them, in both forms, to a",
        "real API server in strict mode.",
        "",
        "## What never ran",
        "",
        *(f"- **{row.kind}**: {row.never}" for row in table if row.never),
        *(f"- {text}" for text in known.absent),
    ]
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    tests: dict[str, list[str]] = {}
    for marker in row.ran:
        tests.setdefault(", ".join(marker.by), []).append(f"{_link(marker.file)} `{marker.test}`")
    ran = "<br>".join(f"{by}: {'; '.join(dict.fromkeys(names))}" for by, names in tests.items())
    accepted = _link(row.accepted) if row.accepted else ""
    return f"| {row.kind} | {_rendered(row)} | {accepted} | {ran or 'never'} |"


def _rendered(row: Row) -> str:
    text = row.rendered or row.ran[0].file
    return _link(text) if text.startswith("tests/") else text


def _link(path: str) -> str:
    return f"[{Path(path).name}](../{path})"


def _parts(ran: Iterable[Row]) -> Iterator[str]:
    from kaigen.catalog.images import default_images
    from tests.cluster.tools.parts import programs

    versions = programs()
    names = dict.fromkeys(name for row in ran for marker in row.ran for name in marker.by)
    for name in sorted(names):
        if name == "node":
            yield f"- node: kubelet {versions['kubelet']} and containerd {versions['containerd']} on a real node"
        elif name in versions:
            yield f"- {name} {versions[name]}"
        else:
            yield f"- the image `{default_images()[name]}`"
