"""Forms of `sourceUrl`: repositories of the Hugging Face Hub and of its mirrors, and files."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

from kaigen.core.json_types import FieldPath
from kaigen.kinds.lowering import Lowering

SOURCE: FieldPath = ("spec", "sourceUrl")

_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_PAGES = frozenset(
    {
        *("api", "blog", "chat", "collections", "docs", "enterprise", "join", "learn", "login", "models", "new"),
        *("organizations", "papers", "posts", "pricing", "search", "settings", "tasks"),
    }
)
"""First segments of the paths of the Hub that are not owners."""
_OTHER_REPOSITORIES = {"datasets": "dataset", "spaces": "Space"}
_FILE = re.compile(r"\.(bin|gguf|m|pt|pth|safetensors|t|tar|zip|gz)$")
_REVISIONS = frozenset({"blob", "resolve", "tree"})
"""What precedes the revision in the path of a repository."""
_EXAMPLE = "write the repository as `https://huggingface.co/OWNER/NAME`"


class Repository(Struct, frozen=True):
    """A repository of the Hub, or of a mirror.

    Attributes:
        name: `owner/name`.
        revision: commit, tag or branch; empty for the default.
        include: glob of the files that are meant; empty for all.
        endpoint: URL of the mirror; empty for the Hub.
    """

    name: str
    revision: str = ""
    include: str = ""
    endpoint: str = ""


class File(Struct, frozen=True):
    """A file of a web server.

    Attributes:
        url: its URL.
    """

    url: str


def read_source(text: str, lowering: Lowering) -> Repository | File | None:
    """Return what a `sourceUrl` names, or None after an error.

    Args:
        text: the field.
        lowering: collects the error.
    """
    text = text.strip()
    if not text:
        lowering.error("KG0412", "`sourceUrl` is empty, so nothing would be downloaded", SOURCE, _EXAMPLE)
        return None
    if "://" not in text:
        first = text.partition("/")[0]
        text = f"https://{text}" if first in _HUB_HOSTS else f"https://huggingface.co/{text}"
    elif text.startswith("hf://"):
        text = f"https://huggingface.co/{text.removeprefix('hf://')}"
    parts = _split(text)
    if parts is None:
        lowering.error("KG0412", f"`{text}` is not the URL of a repository or of a file", SOURCE, _EXAMPLE)
        return None
    segments = [unquote(part) for part in parts.path.split("/") if part]
    of_hub = parts.hostname in _HUB_HOSTS
    if of_hub and segments and segments[0] in _OTHER_REPOSITORIES:
        what = _OTHER_REPOSITORIES[segments[0]]
        lowering.error("KG0412", f"`{text}` is a {what}, not a model", SOURCE, _EXAMPLE)
        return None
    if of_hub and (len(segments) < 2 or segments[0] in _PAGES):
        message = f"`{text}` does not name a repository `OWNER/NAME`"
        lowering.error("KG0412", message, SOURCE, _EXAMPLE)
        return None
    if not of_hub and (len(segments) < 2 or _is_file(segments)):
        return File(parts.geturl())
    if of_hub and segments[2:3] == ["raw"]:
        segments[2] = "blob"
    return _repository(segments, "" if of_hub else f"{parts.scheme}://{parts.netloc}", text, lowering)


def _split(text: str) -> SplitResult | None:
    """Return the parts of a URL of a web server without a user; None if it is none."""
    try:
        parts = urlsplit(text)
        # The port is read when it is asked for.
        valid = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return None
    return parts if valid and parts.username is None else None


def _is_file(segments: list[str]) -> bool:
    """Return whether the path of a URL is that of a file, rather than of a repository on a mirror of the Hub."""
    if len(segments) > 2 and segments[2] in _REVISIONS:
        return False
    return len(segments) > 2 or _FILE.search(segments[-1]) is not None


def _repository(segments: list[str], endpoint: str, text: str, lowering: Lowering) -> Repository | None:
    """Return the repository of a path `OWNER/NAME[@REVISION]` or `OWNER/NAME/tree/REVISION[/FOLDER]`.

    After an error it is None.
    """
    owner, name, *rest = segments
    name, _, revision = name.removesuffix(".git").partition("@")
    if not rest:
        return Repository(f"{owner}/{name}", revision, endpoint=endpoint)
    if len(rest) < 2 or rest[0] not in _REVISIONS or revision:
        message = f"`{text}` does not name one revision of a repository"
        lowering.error("KG0412", message, SOURCE, f"{_EXAMPLE}, or with `/tree/REVISION`")
        return None
    length = 3 if rest[1] == "refs" else 1
    path = "/".join(rest[1 + length :])
    include = f"{path}/*" if path and rest[0] == "tree" else path
    return Repository(f"{owner}/{name}", "/".join(rest[1 : 1 + length]), include, endpoint)
