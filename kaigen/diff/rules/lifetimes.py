"""Rules about what expires: pods and volumes of finished runs."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.rules.case import Case, Finding
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.manifest import Object, mapping
from kaigen.kubernetes.metadata_keys import FAILED_POD_TTL, FAILED_TTL, POD_TTL, TTL

JOBS = frozenset({"Job.batch"})

_NEVER = "never"


def pod_ttl(case: Case) -> Iterator[Finding]:
    """The pods of finished runs expire at another time."""
    old, new = case.pair
    for key, end in ((POD_TTL, "completed"), (FAILED_POD_TTL, "failed")):
        before, after = str(old.annotations.get(key, _NEVER)), str(new.annotations.get(key, _NEVER))
        if before != after:
            yield (
                "info",
                f"time until pods of a {end} run are deleted: from {_time(before)} to {_time(after)}, no new run",
            )


def volume_ttl(case: Case) -> Iterator[Finding]:
    """The volume that the Job creates expires at another time, or has another spec."""
    old, new = (created_volume(dict(side.data)) for side in case.pair)
    if old is None or new is None:
        return
    before, after = mapping(old.body.get("metadata")), mapping(new.body.get("metadata"))
    name = after.get("name")
    for key, end in ((TTL, "completed"), (FAILED_TTL, "failed")):
        was, now = _annotation(before, key), _annotation(after, key)
        if was != now:
            yield ("info", f"time until volume {name} is deleted after a {end} run: from {_time(was)} to {_time(now)}")
    if old.body.get("spec") != new.body.get("spec"):
        yield "notice", f"a volume {name} that exists keeps its size, class and access modes"


def _annotation(metadata: Object, key: str) -> str:
    return str(mapping(metadata.get("annotations")).get(key, _NEVER))


def _time(seconds: str) -> str:
    return _NEVER if seconds == _NEVER else f"{seconds} s"
