"""What the documents of other systems promise: docs/promises.md with the tests that show it in kaigen, and the list in
docs/dialects.md of what is not kept, and why.

Nothing runs: promises.yaml has the promises, and the markers `promise` of the tests say which test shows which one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec
import yaml

from tests.scenarios import parse
from tools.markers import markers_in

ROOT = Path(__file__).parent.parent
_DATA = Path(__file__).parent / "promises.yaml"
PAGE = "docs/promises.md"
"""Path of the page in the repository."""
DIALECTS_PAGE = "docs/dialects.md"
"""Path of the page with the reasons of promises that are not kept."""
_BEGIN, _END = "<!-- promises.yaml: begin -->\n", "<!-- promises.yaml: end -->\n"
_TESTS = ("tests/**/test_*.py", "runtimes/*/tests/**/test_*.py")
_SCENARIOS = "tests/scenario/*/**/*.txt"
_LINE = re.compile(r"^promise: ([^:\n]+): (.+)$", re.MULTILINE)


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A promise that no test shows.

    Attributes:
        promise: the promise, in the words of the document.
        no: why it is not kept.
    """

    promise: str
    no: str = msgspec.field(name="not", default="")  # YAML reads the key `no` as false


class System(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A system and what its document promises.

    Attributes:
        document: the name of the document.
        promises: in the order of the document. One in plain words has a test.
    """

    document: str
    promises: tuple[str | Promise, ...]


class Shown(msgspec.Struct, frozen=True):
    """A test that shows a promise.

    Attributes:
        system: name of the system.
        promise: the promise.
        file: path of the test's file in the repository.
        test: name of the test; empty for a scenario, whose file is the test.
    """

    system: str
    promise: str
    file: str
    test: str = ""


class Row(msgspec.Struct, frozen=True):
    """A line of the page.

    Attributes:
        promise: the promise, with the reason if it is not kept.
        tests: the tests that show it.
    """

    promise: Promise
    tests: tuple[Shown, ...]


def systems() -> Mapping[str, System]:
    """Return the content of promises.yaml by the name of the system."""
    return msgspec.convert(yaml.safe_load(_DATA.read_text(encoding="utf-8")), dict[str, System])


def dialects() -> Mapping[str, str]:
    """Return the path of each dialect's page below docs/ by its title."""
    pages = sorted((ROOT / "docs" / "dialects").glob("*.md"))
    titles = (page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in pages)
    return dict(zip(titles, (f"dialects/{page.name}" for page in pages), strict=True))


@cache
def shown() -> tuple[Shown, ...]:
    """Return the promises that tests name.

    Raises:
        ValueError: the arguments of a marker are not two strings.
    """
    found = [
        entry for path in _files(*_TESTS) for entry in shown_in_python(path.read_text(encoding="utf-8"), _name(path))
    ]
    for path in _files(_SCENARIOS):
        found += shown_in_scenario(path.read_text(encoding="utf-8"), _name(path))
    return tuple(found)


def _files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def shown_in_python(source: str, file: str) -> Iterator[Shown]:
    """Yield the promises in the markers of a test file.

    Args:
        source: Python.
        file: its path in the repository.

    Raises:
        ValueError: the arguments of a marker are not two strings.
    """
    for found in markers_in(source, ("promise",)):
        if len(found.arguments) != 2 or found.keywords:
            raise ValueError(f"{file}: `promise` of {found.test} needs a system and a promise")
        yield Shown(*found.arguments, file, found.test)


def shown_in_scenario(text: str, file: str) -> Iterator[Shown]:
    """Yield the promises in the lines `promise: SYSTEM: WORDS` at the top of a scenario.

    Args:
        text: the scenario.
        file: its path in the repository.
    """
    for system, promise in _LINE.findall("".join(parse(text)[0].lines)) if "promise: " in text else ():
        yield Shown(system, promise, file)


def rows(system: str, known: System, tests: Iterable[Shown]) -> list[Row]:
    """Return a row for each promise of a system.

    Args:
        system: its name.
        known: its promises.
        tests: what tests show.
    """
    own = [entry for entry in tests if entry.system == system]
    promises = (Promise(entry) if isinstance(entry, str) else entry for entry in known.promises)
    return [Row(entry, tuple(test for test in own if test.promise == entry.promise)) for entry in promises]


def problems(known: Mapping[str, System], tests: Iterable[Shown]) -> list[str]:
    """Return what is wrong, in words: each promise needs a test or a reason, and not both.

    Args:
        known: the content of promises.yaml.
        tests: what tests show.
    """
    tests = tuple(tests)
    titles = dialects()
    found = [f"{name}: promises.yaml has no promise of it" for name in titles if name not in known]
    found += [f"{name}: no page of docs/dialects/ has this title" for name in known if name not in titles]
    for name, system in known.items():
        table = rows(name, system, tests)
        found += [f"{name}: promises.yaml has no promise of it"] if not table else []
        found += [f"{name}: {problem}" for row in table for problem in _problems(row)]
        counted = Counter(row.promise.promise for row in table)
        found += [f"{name}: {words}: it is listed {count} times" for words, count in counted.items() if count > 1]
    listed = {(name, row.promise.promise) for name, system in known.items() for row in rows(name, system, ())}
    return found + [
        f"{entry.file}: promises.yaml does not have `{entry.system}: {entry.promise}`"
        for entry in tests
        if (entry.system, entry.promise) not in listed
    ]


def _problems(row: Row) -> Iterator[str]:
    words, reason = row.promise.promise, row.promise.no
    if not row.tests and not reason:
        yield f"{words}: add a test with the marker `promise`, or a reason to tools/promises.yaml"
    if row.tests and reason:
        yield f"{words}: {row.tests[0].file} shows it; remove its reason from tools/promises.yaml"


def page() -> str:
    """Return the page as Markdown."""
    known, tests = systems(), shown()
    tables = {name: rows(name, known[name], tests) for name in dialects() if name in known}
    lines = [
        "# Promises of other systems",
        "",
        "What the documents of other systems promise, and whether it works in kaigen, which reads their resources.",
        "Generated by `make docs` from the markers `promise` of the tests and from `tools/promises.yaml`. Tests of",
        "`tests/cluster` run on a real control plane or node; the others compare objects, or run one program.",
        "",
        "| system | works | no |",
        "| --- | --- | --- |",
        *(_summary(name, table) for name, table in tables.items()),
    ]
    for name, table in tables.items():
        lines += [
            "",
            f"## {name}",
            "",
            f"{known[name].document}; [how kaigen reads its resources]({dialects()[name]}).",
            "",
            "| promise | verdict | shown by, or why not |",
            "| --- | --- | --- |",
            *(f"| {row.promise.promise} | {_verdict(row)} | {_reason(row)} |" for row in table),
        ]
    return "\n".join(lines) + "\n"


def refusals() -> str:
    """Return the promises that are not kept, as a table in Markdown."""
    lines = ["| system | not kept | why |", "| --- | --- | --- |"]
    for name in dialects():
        kept_not = (row.promise for row in rows(name, systems()[name], ()) if row.promise.no)
        lines += [f"| [{name}]({dialects()[name]}) | {each.promise} | {each.no} |" for each in kept_not]
    return "\n".join(lines) + "\n"


def dialects_page() -> str:
    """Return docs/dialects.md with the current list of promises that are not kept."""
    before, _, rest = (ROOT / DIALECTS_PAGE).read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n{refusals()}\n{_END}{after}"


def anchor(system: str) -> str:
    """Return the anchor of a system on the page."""
    return system.lower().replace(" ", "-")


def _summary(name: str, table: Iterable[Row]) -> str:
    counted = Counter(_verdict(row) for row in table)
    return f"| [{name}](#{anchor(name)}) | {counted['works']} | {counted['no']} |"


def _verdict(row: Row) -> str:
    return "no" if row.promise.no else "works"


def _reason(row: Row) -> str:
    return row.promise.no or "<br>".join(dict.fromkeys(_link(test) for test in row.tests))


def _link(test: Shown) -> str:
    link = f"[{Path(test.file).name}](../{test.file})"
    return f"{link} `{test.test}`" if test.test else link
