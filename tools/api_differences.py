"""Where `kaigen check` and the Kubernetes API server differ on purpose, and docs/api-differences.md."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
import yaml

_DATA = Path(__file__).parent.parent / "tests" / "cluster" / "api_differences.yaml"


class Difference(msgspec.Struct, frozen=True):
    """A difference, and its reason.

    Attributes:
        reason: one or two sentences.
        code: code of kaigen's error where only kaigen refuses the object.
        message: regular expression in the message of the error, of kaigen or of the API server.
        kinds: only these kinds; empty for all.
    """

    reason: str
    code: str = ""
    message: str = ""
    kinds: tuple[str, ...] = ()

    def explains_kaigen(self, kind: str, code: str, message: str) -> bool:
        """Return whether this is why only kaigen refuses an object of a kind."""
        return code == self.code and self._covers(kind, message)

    def explains_server(self, kind: str, message: str) -> bool:
        """Return whether this is why only the API server refuses an object of a kind."""
        return not self.code and self._covers(kind, message)

    def _covers(self, kind: str, message: str) -> bool:
        named = not self.kinds or kind.rpartition("/")[2] in self.kinds
        return named and re.search(self.message, message) is not None


@cache
def known() -> tuple[Difference, ...]:
    """Return the content of api_differences.yaml."""
    return msgspec.convert(yaml.safe_load(_DATA.read_text(encoding="utf-8")), tuple[Difference, ...])


PAGE = "docs/api-differences.md"


def page() -> str:
    """Return docs/api-differences.md: the differences with their reasons."""
    own, server = ([each for each in known() if bool(each.code) is stricter] for stricter in (True, False))
    lines = [
        "# Differences to the API server",
        "",
        "`kaigen check` gives the verdict of a real API server of Kubernetes 1.36. A test changes each field of the",
        "objects that kaigen writes and reads, asks both, also about the pods of each object, and fails for a",
        "difference that is not on this page. `make test-cluster` asks of 1500 objects, `make api-differential` of",
        "20,000.",
        "",
        "`make test-engine` asks the webhooks of LeaderWorkerSet, JobSet, Kueue and KEDA, too: of changes of their",
        "kinds, of the examples in the modules of these projects, and of changes of objects that exist, which",
        "`kaigen diff` predicts. Of objects in a queue it asks two versions of Kueue.",
        "",
        "## Errors of kaigen for objects that the API server accepts",
        "",
        "| code | kinds | reason |",
        "| --- | --- | --- |",
        *(f"| [{each.code}](diagnostics.md#{each.code.lower()}) | {_kinds(each)} | {each.reason} |" for each in own),
        "",
        "## Objects that only the API server refuses",
        "",
        "| kinds | reason |",
        "| --- | --- |",
        *(f"| {_kinds(each)} | {each.reason} |" for each in server),
    ]
    return "\n".join(lines) + "\n"


def _kinds(difference: Difference) -> str:
    return ", ".join(difference.kinds) or "all"
