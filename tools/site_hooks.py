"""Hooks of MkDocs: pages of the site that are not files of docs/, and links of Markdown for a site without a server.

A page of docs/ is written for the code host. For the site, links to other files of the repository lead to pages with
their content, Mermaid is drawn (its script would come from a network), and each code has its title in its heading.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import yaml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from tools import proven, site_pages

ROOT = Path(__file__).parent.parent
WORDS = ROOT / "kaigen" / "explain" / "words.yaml"
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"^### (KG\d{4})\n\n\*\*(.+)\*\*$", re.MULTILINE)
_MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"^(!\[[^\]]*\]\((pictures/[^)]+)\))$", re.MULTILINE)
_NODE_TEXT = "e=e+s+o.id"
"""What lunr appends to the text of a node for each of its edges."""

_SHOWN = {".md": "", ".yaml": "yaml", ".py": "python", ".txt": "text", ".json": "json", ".ipynb": "json"}
"""Files that become pages, with the language of their code."""


_NOT_SEARCHED = ("CHANGELOG.md", f"docs/{proven.PAGE}")
"""Long pages that have every word, and explain none."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that only the site has, and a page for each file of the repository that a page links to."""
    for name, text in site_pages.pages().items():
        files.append(File.generated(config, name, content=text))
    for name, content in site_pages.pictures().items():
        files.append(File.generated(config, name, content=content))
    if missing := search_words().keys() - {file.src_uri for file in files.documentation_pages()}:
        raise PluginError(f"{WORDS.name}: no such page: {', '.join(sorted(missing))}")
    waiting = [(f"docs/{file.src_uri}", file.content_string) for file in files.documentation_pages()]
    waiting += [("CHANGELOG.md", ""), ("CONTRIBUTING.md", "")]
    seen = {path for path, _ in waiting if path.startswith("docs/")}
    while waiting:
        path, text = waiting.pop()
        if path not in seen:
            seen.add(path)
            text = _repository_page(path)
            files.append(File.generated(config, _page_of(path), content=text))
        waiting += [(target, "") for target in _targets(path, text) if target not in seen]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the Markdown of a page for the site."""
    source = _source_of(page.file.src_uri)
    if page.parent is None:
        page.meta["hide"] = [*page.meta.get("hide", []), "navigation"]  # A tab with one page has no list of pages.
    page.meta["tags"] = search_words().get(page.file.src_uri, [])
    if source in _NOT_SEARCHED:
        page.meta["search"] = {"exclude": True}
    if source == "docs/diagnostics.md":
        return _CODE.sub(lambda found: f"### {found[1]}: {found[2]} {{#{found[1].lower()}}}", markdown)
    if source == "docs/graph.md":
        markdown = _MERMAID.sub("![the graph of examples/demo](pictures/demo.svg)", markdown)
    markdown = _PICTURE.sub(r"[\1](\2)", markdown)  # A click shows it in full size.
    if _MERMAID.search(markdown):
        raise PluginError(f"{source}: Mermaid needs a script from a network; draw a picture in tools/pictures.py")
    return _outside_of_fences(markdown, lambda text: _linked(source, text))


def on_post_build(config: MkDocsConfig) -> None:
    """Correct the search: lunr merges different words where the numbers of its nodes follow labels that are digits.

    It compares nodes by a text without separators, so that an edge `a` to node 12 and an edge `3` to
    node 4 equal an edge `a` to node 1 and an edge `2` to node 34. Then it finds words that its index does not have.
    """
    (worker,) = Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js")
    text = worker.read_text(encoding="utf-8")
    if text.count(_NODE_TEXT) != 1:
        raise PluginError(f"{worker.name} is another version of lunr; check whether it still needs on_post_build")
    worker.write_text(text.replace(_NODE_TEXT, f'{_NODE_TEXT}+","'), encoding="utf-8")


@cache
def search_words() -> Mapping[str, list[str]]:
    """Return the words that readers search for, by the page that explains them."""
    found: Mapping[str, list[str]] = yaml.safe_load(WORDS.read_text(encoding="utf-8"))
    return found


def _outside_of_fences(markdown: str, change: site_pages.Change) -> str:
    """Return the text with everything but its code blocks changed."""
    parts, start = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[start : fence.start()]), fence[0]]
        start = fence.end()
    return "".join([*parts, change(markdown[start:])])


def _linked(source: str, text: str) -> str:
    """Return text for the site: with links to its pages, also to those that only it has."""
    text = _LINK.sub(lambda found: _link(source, found), text)
    for name, page in site_pages.NAMES.items():
        text = text.replace(name, f"[{name.strip('*')}]({_relative(source, f'docs/{page}')})")
    return text


def _link(source: str, found: re.Match[str]) -> str:
    """Return a link for the site: to a page of it, relative to the page of the source."""
    target = _resolve(source, found[1])
    if target is None or target.startswith("docs/"):
        return found[0] if source.startswith("docs/") else f"]({_relative(source, target)}{found[2] or ''})"
    return f"]({_relative(source, target)}{found[2] or ''})"


def _relative(source: str, target: str | None) -> str:
    assert target is not None
    return posixpath.relpath(_page_of(target), posixpath.dirname(_page_of(source)) or ".")


def _targets(source: str, text: str) -> list[str]:
    """Return the files of the repository that a page links to, without those of docs/."""
    links = _LINK.finditer(_FENCE.sub("", text))
    found = {_resolve(source, link[1]) for link in links}
    return sorted(target for target in found if target and not target.startswith("docs/"))


def _resolve(source: str, link: str) -> str | None:
    """Return the file of the repository that a link leads to; a folder is its README.

    Raises:
        PluginError: there is no such file, or it cannot become a page.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if target.startswith("docs/"):
        return target
    if (ROOT / target).is_dir():
        target = posixpath.join(target, "README.md")
    if not (ROOT / target).is_file():
        raise PluginError(f"{source}: {link} does not exist")
    return target


def _page_of(path: str) -> str:
    """Return the page of a file of the repository."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def _source_of(page: str) -> str:
    """Return the file of the repository that a page shows."""
    if not page.startswith("repository/"):
        return f"docs/{page}"
    path = page.removeprefix("repository/")
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def _repository_page(path: str) -> str:
    """Return the Markdown of a file of the repository. The search leaves out all but Markdown."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    suffix = posixpath.splitext(path)[1]
    if suffix not in _SHOWN:
        return f"---\nsearch: {{exclude: true}}\n---\n# {path}\n\nA file of the repository.\n"
    return (
        f"---\nsearch: {{exclude: true}}\nhide: [toc]\n---\n# {path}\n\n````{_SHOWN[suffix]}\n{text.rstrip()}\n````\n"
    )
