"""Mermaid, SVG and HTML: their content, their determinism, and the escaping of text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kaigen.cli.main import run
from kaigen.graph import Form, render_graph
from kaigen.graph.mermaid import MOST_CHARACTERS, MOST_EDGES
from kaigen.graph.model import Graph
from tests.goldens import Goldens
from tests.unit.graph.graphs import DEMO, graph_of, made

ROOT = Path(__file__).parents[3]
FORMS: tuple[Form, ...] = ("mermaid", "svg", "html")
NASTY = [
    "</script><script>alert(1)</script>",
    "</style></title></svg><img src=x onerror=alert(1)>",
    "\"' onload='alert(1)' x=\"",
    "`${alert(1)}`",
    'a\n  b["c"]:::d\n  click a "javascript:alert(1)"',
    "a\r\u2028b\u202e\x00\x1b[31m",
    "<!--<script>]]>&lt;&amp;&#60;",
    "style:#x; end; subgraph %%{init: {}}%% #quot; |x| -->",
    "{{ 7 * 7 }}{% raw %}",
    "\ud800 lone",
    "x" * 5000,
]


@pytest.fixture(scope="module")
def demo() -> Graph:
    return graph_of(DEMO)


def nasty(word: str) -> Graph:
    return made([[0, 1], [3]], [(2, 0), (1, 0)], [0], word=word)


class Page(HTMLParser):
    """The elements of a page, their attributes, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)
        self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open[-1]][-1] += data


def test_the_demo_as_mermaid(demo: Graph, golden: Goldens) -> None:
    golden.check("demo/graph.mmd", render_graph(demo, "mermaid"))


def test_the_demo_as_svg(demo: Graph, golden: Goldens) -> None:
    golden.check("demo/graph.svg", render_graph(demo, "svg"))


def test_the_demo_as_html(demo: Graph, golden: Goldens) -> None:
    text = render_graph(demo, "html")
    text = re.sub(r"(<style>).*?(</style>)", r"\1…\2", text, flags=re.DOTALL)
    text = re.sub(r"(<script>).*?(</script>)", r"\1…\2", text, flags=re.DOTALL)
    golden.check("demo/graph.html", re.sub(r"sha256-[\w+/=]+", "sha256-…", text))


@pytest.mark.parametrize("form", FORMS)
def test_output_is_the_same_in_every_process(form: Form, demo: Graph) -> None:
    script = (
        "import sys; from pathlib import Path; from kaigen.graph import render_graph\n"
        "from tests.unit.graph.graphs import graph_of\n"
        "sys.stdout.buffer.write(render_graph(graph_of(Path(sys.argv[1])), sys.argv[2]).encode())"
    )
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run([sys.executable, "-c", script, str(DEMO), form], env=env, capture_output=True, check=True)
        assert done.stdout.decode() == render_graph(demo, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("graph", [made([], []), made([[]], []), made([[0]], [])])
def test_an_empty_or_tiny_graph_renders(form: Form, graph: Graph) -> None:
    text = render_graph(graph, form)
    assert text.endswith("\n")
    if form == "svg":
        ElementTree.fromstring(text)


@pytest.mark.parametrize("word", NASTY)
def test_text_is_escaped_in_svg(word: str) -> None:
    plain, other = (ElementTree.fromstring(render_graph(nasty(each), "svg")) for each in ("", word))
    assert [node.tag for node in plain.iter()] == [node.tag for node in other.iter()]
    assert [sorted(node.attrib) for node in plain.iter()] == [sorted(node.attrib) for node in other.iter()]


@pytest.mark.parametrize("word", NASTY)
def test_text_is_escaped_in_the_page(word: str) -> None:
    plain, other = (Page(render_graph(nasty(each), "html")) for each in ("", word))
    assert [(tag, sorted(attributes)) for tag, attributes in plain.elements] == [
        (tag, sorted(attributes)) for tag, attributes in other.elements
    ]
    assert plain.texts["script"][-1] == other.texts["script"][-1]
    assert plain.texts["style"] == other.texts["style"]


@pytest.mark.parametrize("word", NASTY)
def test_text_is_escaped_in_mermaid(word: str) -> None:
    shape = [re.sub(r'"[^"]*"|\w+', "", line) for line in render_graph(nasty(""), "mermaid").split("\n")]
    shown = render_graph(nasty(word), "mermaid")
    assert [re.sub(r'"[^"]*"|\w+', "", line) for line in shown.split("\n")] == shape
    for label in re.findall(r'"([^"]*)"', shown):
        for part in label.split("<br/>"):
            assert not re.search(r"[<>&`:;%{}|\[\]\\]", re.sub(r"#\d+;", "", part))


def test_the_page_contains_the_manifest_of_each_object(demo: Graph) -> None:
    page = Page(render_graph(demo, "html"))
    data = json.loads(page.texts["script"][0])
    shown = {item["id"]: item["yaml"] for app in data["apps"] for item in app["objects"]}
    assert shown == {node.id: node.yaml for app in demo.apps for node in app.objects}


def test_the_page_loads_nothing_and_runs_only_its_own_script(demo: Graph) -> None:
    import base64
    from hashlib import sha256

    page = Page(render_graph(demo, "html"))
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.elements
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for text in (page.texts["script"][-1], page.texts["style"][0]):
        assert f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'" in policy
    names = {name for _, attributes in page.elements for name in attributes}
    assert names.isdisjoint({"src", "href", "style", "onclick", "onload", "action", "xlink:href"})


def test_a_large_graph_becomes_a_mermaid_chart_of_its_apps() -> None:
    # 300 jobs need 300 models, 40 have no dependencies.
    apps = [[0]] * 640
    text = render_graph(made(apps, [(number + 300, number) for number in range(300)]), "mermaid")
    assert text.startswith("%% 640 apps, without their objects")
    assert len(text) <= MOST_CHARACTERS
    assert text.count("-->") == 300
    assert "object-0" not in text
    assert "40 apps without dependencies" in text


def test_a_graph_of_too_many_apps_counts_those_that_are_not_shown() -> None:
    apps = [[0]] * 1200
    text = render_graph(made(apps, [(number + 600, number) for number in range(600)]), "mermaid")
    shown = text.count("-->")
    assert 0 < shown <= MOST_EDGES
    assert f"; {600 - shown} more dependencies do not fit" in text.split("\n")[0]
    assert len(text) <= MOST_CHARACTERS


def test_mermaid_identifiers_are_readable_and_unique() -> None:
    graph = made([[0, 0], [0]], [(1, 0), (2, 0)])
    names = re.findall(r"^\s+(?:subgraph )?(\w+)\[", render_graph(graph, "mermaid"), re.MULTILINE)
    assert len(set(names)) == len(names) == 5
    assert names[0] == "app_ns_app_000"


def test_the_sample_in_the_documentation_is_the_output_for_the_demo(
    golden: Goldens, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(DEMO)
    assert run(["graph"]) == 0
    page = ROOT / "docs" / "graph.md"
    sample = f"```mermaid\n{capsys.readouterr().out}```\n"
    text, found = re.subn(
        r"^```mermaid\n.*?^```\n", lambda _: sample, page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    assert found == 1
    golden.check(page, text)
