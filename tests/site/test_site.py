"""The documentation site, built from this tree and opened from disk in a real browser."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest
from selenium.webdriver.support.ui import WebDriverWait

from kaigen.diagnostics.codes import code_url, codes
from tests.cluster.browser import browser, complaints, requests

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ROOT = Path(__file__).parents[2]
_LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}


class Html(HTMLParser):
    """The links, anchors and loaded files of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag links to, loads, and is called."""
        named = {name: value or "" for name, value in attrs}
        self.anchors.add(named.get("id", ""))
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif named.get(_LOADED.get(tag, "")):
            self.loaded.append(named[_LOADED[tag]])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Html]:
    return {path: Html(path) for path in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="session")
def running() -> Iterator[Chrome]:
    with browser() as chrome:
        yield chrome


@pytest.fixture
def chrome(running: Chrome) -> Chrome:
    running.set_window_size(1500, 950)
    running.get("about:blank")
    complaints(running)
    requests(running)
    return running


def test_every_link_leads_to_a_page_and_an_anchor(site: Path, pages: dict[Path, Html]) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or path.name == "404.html":
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            there = pages[target].anchors if target in pages else {""} if target.is_file() else set()
            if unquote(parts.fragment) not in there:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert len(pages) > 40
    assert broken == []


def test_a_page_that_only_the_site_has_is_linked_where_others_name_it(site: Path) -> None:
    text = (site / "networks.html").read_text(encoding="utf-8")
    assert '<a href="proven.html">What ran</a> in the site' in text


def test_no_page_loads_a_file_from_a_network(site: Path, pages: dict[Path, Html]) -> None:
    loaded = {(path, link) for path, page in pages.items() for link in page.loaded if path.name != "404.html"}
    missing = [link for path, link in loaded if not (path.parent / unquote(urlsplit(link).path)).is_file()]
    assert missing == []
    styles = "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert re.findall(r"url\(['\"]?(?:https?:)?//|@import", styles) == []


def test_every_code_has_an_anchor_with_its_title(
    site: Path, pages: dict[Path, Html], chrome: Chrome, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {code.lower() for code in codes()} <= pages[site / "diagnostics.html"].anchors
    monkeypatch.setenv("KAIGEN_DOCS_URL", site.as_uri())
    chrome.get(code_url("KG0570"))
    heading = chrome.find_element("css selector", "h3:target")
    assert heading.text.removesuffix("¶").strip() == f"KG0570: {codes()['KG0570'].title}"
    top = chrome.execute_script("return arguments[0].getBoundingClientRect().top", heading)
    assert 0 <= top < 200


@pytest.mark.parametrize(
    ("words", "page", "heading"),
    [
        ("contextLength", "fields/topology.html#spec.contextLength", "spec.contextLength"),
        ("KG0302", "diagnostics.html#kg0302", "KG0302: duplicate name"),
        ("fine-tune", "fine-tuning.html", "Fine-tune a model"),
        ("torchrun", "fine-tuning.html#more", "More"),
    ],
)
def test_the_search_works_from_disk(words: str, page: str, heading: str, site: Path, chrome: Chrome) -> None:
    chrome.get((site / "index.html").as_uri())
    box = chrome.find_element("css selector", ".md-search__input")
    box.click()
    box.send_keys(words)
    links = "a.md-search-result__link"
    wait = WebDriverWait(chrome, 60)
    wait.until(lambda _: chrome.find_elements("css selector", links))
    target = next(
        link
        for link in chrome.find_elements("css selector", links)
        if re.sub(r"\?[^#]*", "", str(link.get_attribute("href"))) == f"{site.as_uri()}/{page}"
    )
    target.click()
    wait.until(lambda _: page.partition("#")[0] in chrome.current_url)
    titles = [each.text for each in chrome.find_elements("css selector", "h1, h2, h3")]
    assert heading in [title.removesuffix("¶").strip() for title in titles]
    assert complaints(chrome) == []
    assert [url for url in requests(chrome) if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("autoscaling", "serving"),
        ("PDB", "serving"),
        ("embeddings", "serving"),
        ("cron", "schedules"),
        ("alerts", "operate/monitor"),
        ("dashboard", "operate/monitor"),
        ("IRSA", "pods"),
        ("quota", "operate/capacity"),
        ("rollback", "operate/recover"),
        ("rotate", "operate/rotate"),
    ],
)
def test_the_page_that_explains_a_word_is_found_first(words: str, page: str, site: Path, chrome: Chrome) -> None:
    chrome.get((site / "index.html").as_uri())
    box = chrome.find_element("css selector", ".md-search__input")
    box.click()
    box.send_keys(words)
    first = "return document.querySelector('a.md-search-result__link')?.href"
    found = WebDriverWait(chrome, 60).until(lambda _: chrome.execute_script(first))
    assert re.sub(r"[?#].*", "", str(found)) == f"{site.as_uri()}/{page}.html"


def test_the_search_leaves_out_lists_that_have_every_word(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {re.sub("#.*", "", each["location"]) for each in index["docs"]}
    assert "serving.html" in found
    assert not found & {"proven.html", "repository/CHANGELOG.html"}


@pytest.mark.parametrize("width", [1280, 1920])
def test_every_tab_is_in_the_window(width: int, site: Path, chrome: Chrome) -> None:
    chrome.set_window_size(width, 900)
    chrome.get((site / "index.html").as_uri())
    ends = chrome.execute_script(
        "return [...document.querySelectorAll('.md-tabs__link')].map(tab => [tab.innerText.trim(),"
        " tab.getBoundingClientRect().left >= 0 && tab.getBoundingClientRect().right <= innerWidth])"
    )
    assert ends == [[tab, True] for tab in ("Start", "Use", "GitOps", "Operate", "Reference", "Contribute")]


def test_copying_a_console_gives_its_commands(site: Path, chrome: Chrome) -> None:
    chrome.get((site / "start.html").as_uri())
    button = ".language-console [data-clipboard-target]"
    WebDriverWait(chrome, 60).until(lambda _: chrome.find_elements("css selector", button))
    chrome.execute_script(
        "window.taken = []; document.execCommand = () => window.taken.push(document.activeElement.value);"
        "document.querySelector(arguments[0]).click()",
        button,
    )
    (taken,) = chrome.execute_script("return window.taken")
    assert taken.splitlines()[::2] == ["git init", "kaigen init --argocd"]


@pytest.mark.parametrize("dark", [False, True])
def test_colors_follow_the_readers_system(dark: bool, site: Path) -> None:
    with browser(dark=dark) as chrome:
        chrome.get((site / "start.html").as_uri())
        paper = chrome.execute_script("return getComputedStyle(document.body).backgroundColor")
        channels = [int(number) for number in re.findall(r"\d+", str(paper))[:3]]
        assert (max(channels) < 64) if dark else (min(channels) > 230)


@pytest.mark.parametrize(
    "page",
    ["index", "start", "serving", "gitops", "diagnostics", "proven", "cli", "fields/topology", "operate/troubleshoot"],
)
def test_a_page_fits_a_narrow_window(page: str, site: Path, chrome: Chrome) -> None:
    chrome.set_window_size(390, 844)
    chrome.get((site / f"{page}.html").as_uri())
    wide, window = chrome.execute_script(
        "return [document.scrollingElement.scrollWidth, document.scrollingElement.clientWidth]"
    )
    assert wide <= window
    assert complaints(chrome) == []
