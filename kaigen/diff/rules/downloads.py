"""Rules for the downloads of Models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.presets import find_preset
from kaigen.core.text import plural
from kaigen.diff.formatting import clip, size_text
from kaigen.diff.objects import Obj, get_list
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding

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
