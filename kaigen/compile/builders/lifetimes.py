"""Labels and annotations by which kaigen-reaper deletes what finished runs leave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kaigen.compile.builders.jobs import seconds
from kaigen.compile.expressions import Setting, Text, Tree
from kaigen.core.json_types import FieldPath
from kaigen.kinds.job import PodTtl, Ttl
from kaigen.kubernetes.metadata_keys import EXPIRES, FAILED_POD_TTL, POD_TTL

NEVER = "never"

_SECONDS: Mapping[str, Any] = {
    "type": ["integer", "string"],
    "anyOf": [{"type": "integer", "minimum": 0}, {"const": NEVER}],
}

EXPIRING: Mapping[str, str] = {EXPIRES: "true"}
"""Label by which kaigen-reaper finds Jobs and volumes."""


def ttl_seconds(ttl: Ttl) -> int | str:
    """Return a time after the end of a run in seconds, or `never`."""
    return ttl if isinstance(ttl, int) or ttl == NEVER else seconds(ttl)


def ttl_annotations(ttl: Ttl | PodTtl, origin: FieldPath) -> dict[str, Tree]:
    """Return the annotations of a Job whose pods expire.

    They belong to the Job and not to its pod template, so that a change of them does not start a new run.

    Args:
        ttl: the spec's field.
        origin: its path.
    """
    block = ttl if isinstance(ttl, PodTtl) else PodTtl(pods=ttl)
    short = block is not ttl
    failed = block.pods if block.failed_pods is None else block.failed_pods
    given = block.failed_pods is not None
    return {
        POD_TTL: ttl_setting(
            "ttl.pods", block.pods, "its pods are deleted after it completed", origin if short else (*origin, "pods")
        ),
        FAILED_POD_TTL: ttl_setting(
            "ttl.failedPods",
            failed,
            "its pods are deleted after it failed",
            (*origin, "failedPods") if given else origin if short else (*origin, "pods"),
        ),
    }


def ttl_setting(path: str, ttl: Ttl, what: str, origin: FieldPath) -> Text:
    """Return a setting with a time after the end of a run, as the text of an annotation.

    Args:
        path: path of the setting.
        ttl: the time.
        what: what happens then.
        origin: the spec's field.
    """
    doc = f"Seconds until {what}, or `{NEVER}`."
    return Text(Setting(path, ttl_seconds(ttl), doc, _SECONDS, origin=origin))
