"""The page and the flowchart of `kaigen graph`, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest

from benchmarks.workload import write_repository
from kaigen.cli.main import run
from kaigen.config.load import load_config
from kaigen.graph import render_graph
from kaigen.graph.model import Graph
from kaigen.pipeline.run import render
from tests.cluster.browser import browser, complaints, mermaid_script, requests
from tests.unit.graph.graphs import DEMO, graph_of, made
from tests.unit.graph.test_forms import NASTY

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

ALARM = "window.alarms = []; window.alert = (text) => window.alarms.push(text);"
"""Notes when a text of the graph runs as a script."""


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(DEMO, folder / "demo")
    before = Path.cwd()
    os.chdir(folder / "demo")
    try:
        assert run(["graph", "--env", "dev", "-o", str(folder / "graph.html")]) == 0
    finally:
        os.chdir(before)
    return folder / "graph.html"


def open_page(chrome: Chrome, page: Path, fragment: str = "") -> None:
    chrome.get("about:blank")
    complaints(chrome)
    requests(chrome)
    chrome.get(page.as_uri() + fragment)


def one(chrome: Chrome, selector: str) -> WebElement:
    return chrome.find_element("css selector", selector)


def texts(chrome: Chrome, selector: str) -> list[str]:
    return [element.text for element in chrome.find_elements("css selector", selector) if element.is_displayed()]


def search(chrome: Chrome, words: str) -> None:
    box = one(chrome, "#search")
    box.clear()
    box.send_keys(words)


def test_a_reader_searches_clicks_and_sees_the_manifest_and_the_line_of_the_spec(
    chrome: Chrome, demo_page: Path
) -> None:
    open_page(chrome, demo_page)
    assert len(texts(chrome, "#list .app-item")) == 5
    search(chrome, "claim qwen")
    assert texts(chrome, "#list .object-item .who") == ["qwen-weights"]
    assert texts(chrome, "#count") == ["1 object"]
    one(chrome, '#drawing .node[data-id="ml-dev/qwen/persistentvolumeclaim"]').click()
    assert texts(chrome, "#details h2") == ["PersistentVolumeClaim qwen-weights"]
    manifest, spec = chrome.find_elements("css selector", "#details .code")
    assert "storage: 5Gi" in manifest.text
    assert "specs/qwen.yaml:2" in one(chrome, "#details").text
    row = next(row for row in manifest.find_elements("css selector", "tr") if "storage: 5Gi" in row.text)
    row.click()
    marked = spec.find_element("css selector", "tr.here")
    assert "volume: {size: 5Gi}" in marked.text
    line = (DEMO / "specs" / "qwen.yaml").read_text(encoding="utf-8").splitlines().index("    volume: {size: 5Gi}") + 1
    assert marked.find_element("css selector", ".number").text == str(line)
    assert complaints(chrome) == []
    assert requests(chrome) == []


def test_a_search_counts_and_shows_what_it_finds(chrome: Chrome, demo_page: Path) -> None:
    open_page(chrome, demo_page)
    search(chrome, "secret")
    assert texts(chrome, "#count") == ["2 objects"]
    search(chrome, "secret chat-key")
    assert texts(chrome, "#count") == ["1 object"]
    assert texts(chrome, "#list .object-item .who") == ["chat-key"]
    distances = chrome.execute_script("""
      const middle = (name) => {
        const box = document.querySelector(name).getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
      };
      const [shape, canvas] = [middle(".node.hit"), middle("#canvas")];
      return [shape[0] - canvas[0], shape[1] - canvas[1]];
    """)
    assert max(map(abs, distances)) < 5, distances
    search(chrome, "nothing of that name")
    assert texts(chrome, "#count") == ["nothing found"]


def run_of(app: str) -> str:
    """Return the name of the Job of an app of the demo, whose digest depends on the version of kaigen."""
    text = (DEMO / "rendered" / "dev" / "ml-dev" / app / "manifests" / "job.yaml").read_text(encoding="utf-8")
    (name,) = re.findall(r"^  name: (.+)$", text, re.MULTILINE)
    return str(name)


def test_what_is_needed_can_be_followed(chrome: Chrome, demo_page: Path) -> None:
    open_page(chrome, demo_page, "#object%20ml-dev%2Ffinetune%2Fjob")
    run, download = run_of("finetune"), run_of("qwen")
    assert texts(chrome, "#details h2") == [f"Job {run}"]
    lines = texts(chrome, "#details .relations li")
    assert f"waits for Job {download} (ml-dev/qwen)" in lines
    assert len(chrome.find_elements("css selector", "#drawing .edge.lit")) == 4
    links = chrome.find_elements("css selector", "#details .relations button")
    next(link for link in links if download in link.text).click()
    assert texts(chrome, "#details h2") == [f"Job {download}"]
    assert "#object%20ml-dev%2Fqwen%2Fjob" in chrome.current_url


def test_the_keyboard_is_enough(chrome: Chrome, demo_page: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    def press(*keys: str) -> None:
        ActionChains(chrome).send_keys(*keys).perform()

    open_page(chrome, demo_page)
    press("/")
    press("finetune", Keys.ARROW_DOWN)
    assert chrome.switch_to.active_element.text.startswith("ml-dev/finetune")
    press(Keys.ARROW_DOWN, Keys.ENTER)
    assert texts(chrome, "#details h2") == [f"NetworkPolicy {run_of('finetune')}"]
    press(Keys.ESCAPE)
    assert texts(chrome, "#details h2") == []
    press("0")
    before = one(chrome, "#drawing").get_dom_attribute("viewBox")
    press("+")
    assert one(chrome, "#drawing").get_dom_attribute("viewBox") != before
    press("0")
    assert one(chrome, "#drawing").get_dom_attribute("viewBox") == before


def test_copy_gives_the_manifest_as_it_is_rendered(chrome: Chrome, demo_page: Path) -> None:
    open_page(chrome, demo_page, "#object%20ml-dev%2Fqwen%2Frole")
    chrome.execute_script("window.taken = []; navigator.clipboard.writeText = async (text) => window.taken.push(text);")
    one(chrome, "#details .copy").click()
    (taken,) = chrome.execute_script("return window.taken")
    written = render((), load_config(DEMO, "dev"), form="manifests")["ml-dev/qwen/manifests/role.yaml"].decode()
    assert written.split("---\n", 1)[1] == taken


@pytest.mark.parametrize("dark", [False, True])
def test_colours_follow_the_readers_system(dark: bool, demo_page: Path) -> None:
    with browser(dark=dark) as chrome:
        open_page(chrome, demo_page)
        paper = chrome.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(11, 17, 32)" if dark else "rgb(255, 255, 255)")


def test_a_hundred_apps_open_at_once_and_can_be_searched(chrome: Chrome, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    page.write_text(render_graph(graph_of(write_repository(tmp_path / "many", 100)), "html"), encoding="utf-8")
    open_page(chrome, page)
    took = chrome.execute_script("return performance.timing.loadEventEnd - performance.timing.navigationStart")
    assert took < 5_000, "milliseconds"
    assert len(texts(chrome, "#drawing .far")) == 100
    search(chrome, "model-00042 job")
    assert texts(chrome, "#count")[0].endswith("1 object")
    assert complaints(chrome) == []


@pytest.mark.parametrize("word", NASTY)
def test_no_name_runs_as_a_script(word: str, chrome: Chrome, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    text = render_graph(made([[0, 1], [3]], [(2, 0), (1, 0)], [0], word=word), "html")
    page.write_text(text, encoding="utf-8")
    open_page(chrome, page)
    chrome.execute_script(ALARM)
    for number in range(len(chrome.find_elements("css selector", "#list button"))):
        chrome.execute_script("document.querySelectorAll('#list button')[arguments[0]].click()", number)
        assert texts(chrome, "#details h2")
    assert chrome.execute_script("return window.alarms") == []
    assert complaints(chrome) == []
    assert requests(chrome) == []


@pytest.fixture
def mermaid(chrome: Chrome, tmp_path: Path) -> Chrome:
    """The browser with a page that holds Mermaid."""
    page = tmp_path / "mermaid.html"
    shutil.copy(mermaid_script(), tmp_path / "mermaid.js")
    page.write_text('<!doctype html><meta charset="utf-8"><body><script src="mermaid.js"></script>', encoding="utf-8")
    open_page(chrome, page)
    chrome.set_script_timeout(120)
    chrome.execute_script(ALARM + "mermaid.initialize({startOnLoad: false, securityLevel: 'strict'});")
    return chrome


DRAW = """
const [text, done] = arguments;
mermaid.render("drawn", text).then(({ svg }) => {
  const folder = document.createElement("div");
  folder.innerHTML = svg;
  const edges = folder.querySelectorAll(".edgePaths path").length;
  const texts = (name) => [...folder.querySelectorAll(name)].map((node) => node.textContent.trim());
  done({ nodes: texts(".node .nodeLabel"), apps: texts(".cluster .nodeLabel"), edges });
}, (error) => done({ error: String(error) }));
"""


class Drawn(TypedDict):
    """What Mermaid drew: the texts of nodes and of apps, and the number of edges."""

    nodes: list[str]
    apps: list[str]
    edges: int


def drawn(mermaid: Chrome, graph: Graph) -> Drawn:
    found: Drawn = mermaid.execute_async_script(DRAW, render_graph(graph, "mermaid"))
    assert "error" not in found, found
    return found


def test_mermaid_draws_the_demo(mermaid: Chrome) -> None:
    graph = graph_of(DEMO)
    found = drawn(mermaid, graph)
    names = {f"{node.kind}{node.name}" for app in graph.apps for node in app.objects} | {
        "Secretchat-keynot in Git",
        "Secrethf-tokennot in Git",
    }
    assert set(found["nodes"]) == names
    assert set(found["apps"]) == {
        "ml/chat (Topology)",
        "ml/qwen (Model)",
        "ml/finetune (Job)",
        "ml/finetune-job (Job of ai.re-cinq.com/v1)",
        "ml/workspace-phi-4-mini (Workspace of kaito.sh/v1beta1)",
    }
    assert found["edges"] == len(graph.edges)


@pytest.mark.parametrize("word", NASTY)
def test_mermaid_draws_any_name_as_text(word: str, mermaid: Chrome) -> None:
    graph = made([[0, 1], [3]], [(2, 0), (1, 0)], [0], word=word)
    found = drawn(mermaid, graph)
    assert found["edges"] == len(graph.edges)
    assert len(found["nodes"]) == 4
    assert mermaid.execute_script("return window.alarms") == []


def test_mermaid_draws_an_overview_of_many_apps(mermaid: Chrome) -> None:
    graph = made([[0, 0, 0]] * 400, [(3 * (number + 200), 3 * number) for number in range(200)])
    assert drawn(mermaid, graph)["edges"] == 200


def test_mermaid_draws_as_much_as_it_is_given(mermaid: Chrome) -> None:
    graph = made([[0]] * 1000, [(number + 500, number) for number in range(500)])
    assert drawn(mermaid, graph)["edges"] >= 300
