"""Rules for runs: when they start, what they download, when they expire."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import find_preset
from kaigen.core.text import plural
from kaigen.diff.formatting import clip, size_text, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.diff.objects import Obj, get, get_list
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.diff.rules.workloads import reasons
from kaigen.kubernetes import pods
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.kind_table import types
from kaigen.kubernetes.manifest import Object, entries, mapping
from kaigen.kubernetes.metadata_keys import FAILED_POD_TTL, FAILED_TTL, POD_TTL, TTL

RUNS = types("run")


def new_run(case: Case) -> Iterator[Finding]:
    """A run has a new name: Job templates are immutable, so a changed spec is a new Job."""
    old, new = case.pair
    why = reasons(case.fields)
    because = f" ({why})" if why else ""
    if get(new.data, "spec", "suspend") is True:
        yield "notice", f"new run: {old} ends, {new} is created suspended{because}"
    else:
        yield "notice", f"new run: {old} ends, {new} starts{because}"
    for claim in sorted(_written_claims(old.data) & _written_claims(new.data)):
        yield ("info", f"if {old} still runs, it writes to PersistentVolumeClaim {claim} until its pods have ended")


def _written_claims(data: dict[str, Any]) -> set[str]:
    """Return the claims that the containers of a run write to, except by the downloader, which locks its folder."""
    found: set[str] = set()
    for template in pods.pod_templates(data):
        claims: dict[object, str] = {}
        for _, volume in entries(template.spec.get("volumes")):
            source = mapping(volume.get("persistentVolumeClaim"))
            if not source.get("readOnly"):
                claims[volume.get("name")] = str(source.get("claimName", ""))
        for container in pods.containers(template):
            arguments = container.body.get("args")
            if isinstance(arguments, list) and arguments[:1] in (["fetch"], ["put"]):
                continue
            for _, mount in entries(container.body.get("volumeMounts")):
                found |= {claims.get(mount.get("name"), "")} if not mount.get("readOnly") else set()
    return found - {""}


def run_added(case: Case) -> Iterator[Finding]:
    """A run was added."""
    new = case.obj
    if get(new.data, "spec", "suspend") is True:
        yield "info", f"{new} is created suspended and waits to be resumed"
    else:
        yield "info", f"first run: {new} starts"


def run_removed(case: Case) -> Iterator[Finding]:
    """A run was removed."""
    yield "notice", f"{case.obj} and its pods are deleted, running or finished"


def run_controls(case: Case) -> Iterator[Finding]:
    """Fields of a run changed that can change in place."""
    old, new = case.pair
    before, after = get(old.data, "spec", "suspend") is True, get(new.data, "spec", "suspend") is True
    if before != after:
        yield "notice", "suspended: running pods are stopped" if after else "resumed: its pods start"
    for field, label in (
        ("parallelism", "parallel pods"),
        ("activeDeadlineSeconds", "deadline in seconds"),
        ("backoffLimit", "retries"),
    ):
        was, now = get(old.data, "spec", field), get(new.data, "spec", field)
        if was != now:
            yield "info", f"{label}: from {value(was)} to {value(now)}, no new run"


def run_ttl(case: Case) -> Iterator[Finding]:
    """A TTL on a Job in Git: the GitOps tool finds the finished Job missing and creates it again."""
    new = case.obj
    if _is_hook(new):
        return
    ttl = get(new.data, "spec", "ttlSecondsAfterFinished")
    was = get(case.old.data if case.old else ABSENT, "spec", "ttlSecondsAfterFinished")
    if not isinstance(ttl, Absent) and was != ttl:
        yield (
            "danger",
            f"it is deleted {value(ttl)} s after it finishes (ttlSecondsAfterFinished), and Argo CD or Flux "
            "then runs it again, endlessly",
        )


def _is_hook(obj: Obj) -> bool:
    return any(key in obj.annotations for key in ("helm.sh/hook", "argocd.argoproj.io/hook"))


def cron(case: Case) -> Iterator[Finding]:
    """A CronJob changed."""
    old, new = case.pair
    for field, label in (("schedule", "runs at"), ("timeZone", "in time zone")):
        was, now = get(old.data, "spec", field), get(new.data, "spec", field)
        if was != now:
            yield "notice", f"{label} {value(now)} instead of {value(was)}"
    if get(old.data, "spec", "suspend") != get(new.data, "spec", "suspend"):
        suspended = get(new.data, "spec", "suspend") is True
        yield "notice", "suspended: no further runs start" if suspended else "resumed: runs start again"
    changed = [change for change in case.fields if under(change, "spec", "jobTemplate")]
    if changed:
        why = reasons(changed)
        yield ("info", f"the next run uses it; a run in progress continues unchanged{f': {why}' if why else ''}")


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


_KEPT = "keep-revisions"
_LOCKED = re.compile("[0-9]+:([0-9]{1,18}):[0-9a-f]{64}")
"""Number, bytes and digest of the files in the lock."""
_COMMIT = re.compile("[0-9a-f]{40}")


def revision(case: Case) -> Iterator[Finding]:
    """A Model downloads other files: they get a folder next to the one that pods read."""
    before, after = (_download(obj) for obj in case.pair)
    if _KEPT not in after or "identity" not in before:
        return
    if before["identity"] == after["identity"]:
        if _KEPT not in before:
            yield (
                "info",
                "the files get a folder of their own next to those of other revisions: they are linked, or "
                "copied in the bucket, and not downloaded again",
            )
        return
    room = _room(after)
    stay = int(after[_KEPT]) if after[_KEPT].isdigit() else 0
    where = "bucket" if after.get("dest", "").startswith("s3:") else "volume"
    kept = f"{plural(stay, 'earlier revision')} {'stays' if stay == 1 else 'stay'} stored for a rollback"
    yield (
        "notice",
        f"{_title(after)} is downloaded next to {_title(before, after)}: the {where} needs {room} more, unless it "
        f"still has the files; pods keep the old ones until they are replaced; {kept}",
    )


def _download(obj: Obj) -> Mapping[str, str]:
    """Return the options of the container that downloads a Model; empty without one."""
    for template in pod_templates(obj).values():
        for _, container in template.containers():
            arguments = [str(each) for each in get_list(container, "args")]
            if arguments[:1] in (["fetch"], ["put"]):
                pairs = (each.removeprefix("--").partition("=") for each in arguments)
                return {name: text for name, _, text in pairs}
    return {}


def _title(options: Mapping[str, str], other: Mapping[str, str] | None = None) -> str:
    """Return the source of a download; without the repository if the other one has the same."""
    repo, commit = options.get("repo"), _commit(options)
    if repo is None:
        return "the old set of files" if other is not None else "the new set of files"
    if other is None or other.get("repo") != repo:
        return f"{clip(repo, 80)} at {commit}"
    return commit if commit != _commit(other) else "the earlier selection of files"


def _commit(options: Mapping[str, str]) -> str:
    name = options.get("revision", "")
    return name[:12] if _COMMIT.fullmatch(name) else clip(name, 40)


def _room(options: Mapping[str, str]) -> str:
    """Return how much space the files take, as far as the lock or the catalogue knows."""
    locked = _LOCKED.fullmatch(options.get("locked", ""))
    if locked is not None:
        return size_text(int(locked[1]))
    preset = find_preset(options["repo"], BUILT_IN) if "repo" in options and "include" not in options else None
    return "room for the files once" if preset is None else f"up to {preset.weights_gib:.1f} GiB"
