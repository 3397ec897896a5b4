"""Rules for volumes and their data, and for the buckets that CSI drivers mount."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.config.grants import find_ungranted, wanted_volume
from kaigen.config.settings import Config
from kaigen.core.json_types import Json
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding, flux, option
from kaigen.kubernetes.buckets import is_bucket_uri
from kaigen.kubernetes.manifest import Object
from kaigen.kubernetes.quantities import nano

PVC = "PersistentVolumeClaim"
SIZE = ("spec", "resources", "requests", "storage")
_SYNCERS = ("Argo CD", "Flux", "Helm")


def keepers(obj: Obj) -> tuple[str, ...]:
    """Return the tools that keep the object in the cluster when its file is removed.

    Argo CD prunes unless `Prune=false` (`Delete=false` counts only when the whole Application is deleted),
    kustomize-controller unless `prune` or `reconcile` is `disabled`, Helm unless its policy is `keep`.
    """
    found = []
    if option(obj, "Prune=false"):
        found.append("Argo CD")
    if flux(obj, "prune") == "disabled" or flux(obj, "reconcile") == "disabled":
        found.append("Flux")
    if get_text(obj.annotations, "helm.sh/resource-policy").strip().lower() == "keep":
        found.append("Helm")
    return tuple(found)


def kept_or_lost(obj: Obj) -> Finding:
    """Return what happens to a volume when its claim is removed from Git."""
    kept = keepers(obj)
    if len(kept) == len(_SYNCERS):
        return "notice", "volume and its data are kept (no longer managed)"
    if kept:
        others = [name for name in _SYNCERS if name not in kept]
        return "notice", (
            f"volume and its data are kept by {listing(kept)} (no longer managed); {listing(others)} would delete it"
        )
    if option(obj, "Delete=false"):
        return "danger", (
            "volume and its data are deleted: Delete=false keeps them only when Argo CD deletes the whole "
            "Application; set Prune=false to keep them here"
        )
    if volume := get_text(obj.data, "spec", "volumeName"):
        return ("notice", f"claim is deleted; data stays in volume {volume}, unless its reclaimPolicy is Delete")
    return "danger", "volume and its data are deleted, unless its storage class has reclaimPolicy Retain"


def claim_removed(case: Case) -> Iterator[Finding]:
    """A claim was removed."""
    yield kept_or_lost(case.obj)


def claim_replaced(case: Case) -> Iterator[Finding]:
    """A claim has a new name or namespace, so it gets a new, empty volume."""
    old, new = case.pair
    where = f"{old.name} in {old.namespace}" if old.namespace != new.namespace else old.name
    level, text = kept_or_lost(old)
    volume = get_text(new.data, "spec", "volumeName")
    made = f"{new.name} is a claim for volume {volume}" if volume else f"a new, empty volume {new.name} is created"
    yield level, f"{made}; for {where}: {text}"


def claim_resized(case: Case) -> Iterator[Finding]:
    """The size changed: volumes can grow but not shrink."""
    old, new = case.pair
    was, now = get(old.data, *SIZE), get(new.data, *SIZE)
    before, after = nano(was), nano(now)
    if before is None or after is None or before == after:
        return
    if after > before:
        yield ("notice", f"grows in place from {value(was)} to {value(now)} if its storage class allows expansion")
    else:
        yield (
            "danger",
            f"will be rejected: a volume cannot shrink (from {value(was)} to {value(now)}); delete "
            f"{new} first, which loses its data, or use another name",
        )


def keeping_changed(case: Case) -> Iterator[Finding]:
    """The setting that keeps the volume when its file is removed changed."""
    old, new = case.pair
    before, after = keepers(old), keepers(new)
    lost = [name for name in before if name not in after]
    if lost:
        yield ("danger", f"no longer kept by {listing(lost)}: removing it from Git will delete the volume and its data")
    won = [name for name in after if name not in before]
    if won:
        yield "info", f"from now on {listing(won)} will keep the volume when it is removed from Git"


def volume_removed(case: Case) -> Iterator[Finding]:
    """A PersistentVolume was removed."""
    if keepers(case.obj):
        yield kept_or_lost(case.obj)
    elif get_text(case.obj.data, "spec", "persistentVolumeReclaimPolicy") == "Delete":
        yield "danger", "volume and its data are deleted (reclaimPolicy Delete) once no claim uses it"
    else:
        yield "notice", "the cluster forgets this volume; the data behind it stays where it is"


def templates_of_removed_set(case: Case) -> Iterator[Finding]:
    """The claims that a StatefulSet made, once it is gone or renamed."""
    obj = case.old or case.obj
    names = [get_text(item, "metadata", "name") for item in get_list(obj.data, "spec", "volumeClaimTemplates")]
    if not names:
        return
    if get(obj.data, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete":
        yield "danger", f"its volumes ({listing(names)}) are deleted with their data (whenDeleted: Delete)"
    else:
        yield "notice", f"its volumes ({listing(names)}) and their data are kept (no longer managed)"


def scaled_down_set(case: Case) -> Iterator[Finding]:
    """The claims of replicas that go."""
    old, new = case.pair
    if not get_list(new.data, "spec", "volumeClaimTemplates"):
        return
    was, now = get(old.data, "spec", "replicas"), get(new.data, "spec", "replicas")
    retention = get(new.data, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
    if isinstance(was, int) and isinstance(now, int) and now < was and retention == "Delete":
        yield (
            "danger",
            f"the volumes of the replicas that go ({was - now}) are deleted with their data (whenScaled: Delete)",
        )


def volume_reclaim(case: Case) -> Iterator[Finding]:
    """The reclaim policy of a PersistentVolume changed."""
    old, new = case.pair
    was, now = (get(side.data, "spec", "persistentVolumeReclaimPolicy") for side in (old, new))
    was, now = ("Retain" if isinstance(policy, Absent) else policy for policy in (was, now))
    if was != now and now == "Delete":
        yield ("danger", f"reclaimPolicy goes from {value(was)} to Delete: its data will be deleted with its claim")
    elif was != now:
        yield "info", f"reclaimPolicy goes from {value(was)} to {value(now)}"


def claim_added(case: Case) -> Iterator[Finding]:
    """A claim was added."""
    new = case.obj
    size = get(new.data, *SIZE)
    class_name = get(new.data, "spec", "storageClassName")
    if get_text(new.data, "spec", "volumeName"):
        yield "info", f"a claim on the existing volume {get_text(new.data, 'spec', 'volumeName')}"
    elif size is not ABSENT:
        of = f"class {value(class_name)}"
        if class_name is ABSENT:
            of = "the cluster's default class"
        elif class_name == "":
            of = "no class (it waits for a manually created volume)"
        yield "info", f"a new, empty volume of {value(size)} from {of}"


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
