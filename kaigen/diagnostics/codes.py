"""Every diagnostic code with its category, title, explanation and address. The table is `codes.yaml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

import yaml
from msgspec import Struct

from kaigen import __version__
from kaigen.diagnostics.category import Category

_REPOSITORY = "https://github.com/kaigen-dev/kaigen"


def code_url(code: str) -> str:
    """Return the address of the explanation of a code.

    It is in the documentation of this version, or in the site whose address is in `KAIGEN_DOCS_URL`.
    """
    return f"{codes_url()}#{code.lower()}"


def codes_url() -> str:
    """Return the address of the page with all codes."""
    return page_url("diagnostics")


def page_url(page: str) -> str:
    """Return the address of a page of the documentation, which is named as in `operate/troubleshoot`."""
    site = os.environ.get("KAIGEN_DOCS_URL", "").rstrip("/")
    return f"{site}/{page}.html" if site else f"{_REPOSITORY}/blob/v{__version__}/docs/{page}.md"


class Code(Struct, frozen=True):
    """The meaning of a code.

    Attributes:
        title: a few words, without a full stop.
        explanation: why it is a problem and how to fix it, in whole sentences.
        category: the kind of problem.
    """

    title: str
    explanation: str
    category: Category


@cache
def codes() -> Mapping[str, Code]:
    """Return all codes, in order."""
    # Not pathlib: it would be loaded in the path of every command.
    with open(os.path.join(os.path.dirname(__file__), "codes.yaml"), encoding="utf-8") as file:
        text = file.read()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        code: Code(entry["title"], entry["explanation"], Category(entry["category"]))
        for code, entry in yaml.load(text, Loader=loader).items()
    }


def category_of(code: str) -> Category:
    """Return the category of a code.

    Raises:
        KeyError: there is no such code.
    """
    return codes()[code].category
