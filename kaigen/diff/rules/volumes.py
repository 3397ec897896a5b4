"""Rules for volumes that CSI drivers mount: which bucket and folder, with which driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.config.grants import find_ungranted, wanted_volume
from kaigen.config.settings import Config
from kaigen.core.json_types import Json
from kaigen.diff.formatting import clip, listing
from kaigen.diff.objects import Obj, get_list, get_map, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding
from kaigen.kubernetes.bucket_uris import is_bucket_uri
from kaigen.kubernetes.manifest import Object

VOLUME = "PersistentVolume"

_PLAIN_FIELDS = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "csi",
        "mountOptions",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeMode",
    }
)
"""Fields of a PersistentVolume that kaigen sets for a bucket."""


def is_allowed(case: Case) -> bool:
    """Return whether a PersistentVolume is one for a claim of its app's namespace that kaigen.yaml allows."""
    spec = get_map(case.obj.data, "spec")
    claim = get_text(spec, "claimRef", "namespace")
    return (
        claim == case.place != ""
        and spec.keys() <= _PLAIN_FIELDS
        and "csi" in spec
        and not _problems(cast("Object", spec), claim, case.trees.config(case.obj.path), inline=False)
    )


def csi(case: Case) -> Iterator[Finding]:
    """A PersistentVolume or a pod mounts something with a CSI driver."""
    config = case.trees.config(case.obj.path)
    was = {text for text, _ in _mounts(case.old, case.place, config)} if case.old else set()
    found = [mount for mount in _mounts(case.obj, case.place, config) if mount[0] not in was]
    for text, problems in found:
        if problems:
            yield "danger", f"{text}: {listing(problems)}"
    plain = [text for text, problems in found if not problems]
    if plain:
        yield "notice", listing(plain)


def _mounts(obj: Obj, place: str, config: Config) -> Iterator[tuple[str, list[str]]]:
    """Yield what an object mounts, and what is wrong with it."""
    if obj.type == VOLUME:
        spec = get_map(obj.data, "spec")
        if "csi" in spec:
            claim = get_text(spec, "claimRef", "namespace")
            yield _text(spec, inline=False), _problems(cast("Object", spec), claim, config, inline=False)
        return
    for template in pod_templates(obj).values():
        for volume in get_list(template.spec, "volumes"):
            if get_map(volume, "csi"):
                yield (_text(volume, inline=True), _problems(cast("Object", volume), place, config, inline=True))


def _text(volume: Json, *, inline: bool) -> str:
    driver = get_text(volume, "csi", "driver")
    wanted = wanted_volume(cast("Object", volume), "", inline=inline)
    handle = get_text(volume, "csi", "volumeHandle")
    what = wanted.uri.removesuffix("/") or handle or "a volume"
    return f"mounts {clip(what, 200)} with driver {clip(driver, 80)}"


def _problems(volume: Object, place: str, config: Config, *, inline: bool) -> list[str]:
    wanted = wanted_volume(volume, place, inline=inline)
    found = [f"kaigen.yaml does not allow {each}" for each in find_ungranted(wanted, config.allow)]
    if wanted.uri and not is_bucket_uri(wanted.uri.partition(" at ")[0]):
        found.append("the folder may leave the bucket or its prefix")
    return found
