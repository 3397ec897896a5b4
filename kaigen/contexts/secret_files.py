"""Files of a folder that look like credentials, which a registry would show to all who may read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

from kaigen.contexts.folder import IGNORE_FILE, Entry
from kaigen.core.credentials import looks_like_secret, may_contain_secret
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity

CODE = "KG0912"
_LARGEST_TEXT = 4 << 20
"""Bytes of a file that are searched: larger ones are data."""
_BINARY_START = 8192
_NAMES = (
    ".env",
    ".env.*",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".aws/credentials",
    ".docker/config.json",
    ".kube/config",
    "kubeconfig",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.p12",
    "*.pfx",
    "*.kdbx",
)
_EXAMPLES = ("*.example", "*.sample", "*.template", "*.dist")
_HINT = f"name it in {IGNORE_FILE}"


def find_secret_files(entries: Iterable[Entry]) -> Iterator[Diagnostic]:
    """Yield a warning (KG0912) for each file whose name or text is that of a credential."""
    for entry in entries:
        if not entry.is_file:
            continue
        if _has_secret_name(entry.name):
            yield _warning(entry, 0, "the name is that of a file with credentials")
            continue
        number, kind = _first_secret(entry)
        if kind:
            yield _warning(entry, number, f"this looks like {kind}")


def _warning(entry: Entry, line: int, problem: str) -> Diagnostic:
    message = f"{entry.name}: {problem}, and it becomes part of the artifact"
    return Diagnostic(CODE, message, Mark(str(entry.path), line), _HINT, Severity.WARNING)


def _has_secret_name(name: str) -> bool:
    own = name.rpartition("/")[2]
    if any(fnmatchcase(own, glob) for glob in _EXAMPLES):
        return False
    return any(fnmatchcase(own, glob) if "/" not in glob else f"/{name}".endswith(f"/{glob}") for glob in _NAMES)


def _first_secret(entry: Entry) -> tuple[int, str]:
    """Return the line of the first credential and its kind; an empty kind without one."""
    if not 0 < entry.size <= _LARGEST_TEXT:
        return 0, ""
    content = entry.path.read_bytes()
    if b"\0" in content[:_BINARY_START]:
        return 0, ""
    text = content.decode("utf-8", "replace")
    if not may_contain_secret(text):
        return 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        kind = looks_like_secret(line)
        if kind is not None:
            return number, kind
    return 0, looks_like_secret(text) or ""
