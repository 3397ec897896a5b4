"""Rules for images, resources and placement of pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kaigen.catalog.gpus import gpu_of_share
from kaigen.core.json_types import Json, JsonObject
from kaigen.diff.formatting import clip, listing, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.diff.objects import Obj, get, get_list, get_map, get_text
from kaigen.diff.pods import PodTemplate, pod_templates
from kaigen.diff.rules.case import Case, Finding
from kaigen.kubernetes.quantities import nano

_DIGEST = re.compile(r"@(sha256|sha512):[0-9a-f]{64,128}$")
_ORDINARY = {"cpu": "CPU", "memory": "memory", "ephemeral-storage": "ephemeral storage"}


def images(case: Case) -> Iterator[Finding]:
    """Images changed."""
    before, after = containers(case.old), containers(case.new)
    for name, container in after.items():
        old = before.get(name)
        was, now = get_text(old or {}, "image"), get_text(container, "image")
        if was and now and was != now:
            yield "info", f"image of {name}: {_image_step(was, now)}"


def _image_step(was: str, now: str) -> str:
    """Return the change of an image, with the repository only once if it is the same."""
    base, other = _repository(was), _repository(now)
    if base == other:
        return f"{clip(base, 60)} from {_version(was)} to {_version(now)}"
    return f"from {clip(_short(was), 80)} to {clip(_short(now), 80)}"


def _repository(image: str) -> str:
    name = image.partition("@")[0]
    head, colon, tag = name.rpartition(":")
    return head if colon and "/" not in tag else name


def _version(image: str) -> str:
    name, _, digest = image.partition("@")
    tag = name[len(_repository(image)) :].removeprefix(":")
    short = digest[:19] + ("…" if len(digest) > 19 else "")
    return " ".join(part for part in (tag, short) if part) or "no tag"


def _short(image: str) -> str:
    digest = _DIGEST.search(image)
    return image if digest is None else image[: digest.start() + 20] + "…"


def undigested(case: Case) -> Iterator[Finding]:
    """New images without a digest."""
    before, after = containers(case.old), containers(case.new)
    loose = []
    for name, container in after.items():
        image = get_text(container, "image")
        if image and image != get_text(before.get(name) or {}, "image") and not _DIGEST.search(image):
            loose.append(clip(image, 80))
    if loose:
        yield "info", f"no digest: {listing(loose)} may change without a commit"


def containers(obj: Obj | None) -> dict[str, JsonObject]:
    """Return every container by name, with its template's role if there are several."""
    templates = pod_templates(obj)
    return {
        f"{role}/{name}" if role else name: container
        for role, template in templates.items()
        for name, container in template.containers()
    }


def resources(case: Case) -> Iterator[Finding]:
    """GPUs, CPU or memory changed."""
    before, after = containers(case.old), containers(case.new)
    for name in [*after, *(name for name in before if name not in after)]:
        old, new = _resources(before.get(name)), _resources(after.get(name))
        for resource in sorted(old.keys() | new.keys()):
            was, now = old.get(resource, "0"), new.get(resource, "0")
            if resource in _ORDINARY or nano(was) == nano(now):
                continue
            yield "notice", f"{_device(resource)} of {name}: from {was} to {now} ({resource})"
    for name in (name for name in after if name in before):
        yield from _ordinary(name, before[name], after[name])


def _resources(container: JsonObject | None) -> dict[str, str]:
    """Return the limits of a container; for devices, limits and requests are equal."""
    found: dict[str, str] = {}
    for field in ("requests", "limits"):
        found |= {key: str(item) for key, item in get_map(container or {}, "resources", field).items()}
    return found


def _ordinary(name: str, old: JsonObject, new: JsonObject) -> Iterator[Finding]:
    for field, noun in (("limits", "limit"), ("requests", "request")):
        for resource, label in _ORDINARY.items():
            was, now = (get(side, "resources", field, resource) for side in (old, new))
            if was != now and (was is ABSENT or now is ABSENT or nano(was) != nano(now)):
                yield "info", f"{label} {noun} of {name}: from {_amount(was)} to {_amount(now)}"


def _amount(item: object) -> str:
    return "none" if isinstance(item, Absent) else str(item)


def _device(resource: str) -> str:
    name = resource.lower()
    if gpu_of_share(resource):
        return "share of a GPU"
    if "mig-" in name:
        return "GPU slices"
    return "GPUs" if "gpu" in name else "devices"


def placement(case: Case) -> Iterator[Finding]:
    """Node selection changed."""
    before = pod_templates(case.old)
    for role, template in pod_templates(case.new).items():
        old = before.get(role)
        if old is None:
            continue
        where = f" ({role})" if role else ""
        for key in sorted(_selector(old).keys() | _selector(template).keys()):
            was, now = _selector(old).get(key), _selector(template).get(key)
            if was != now:
                yield "notice", f"runs on nodes with {key}: {_step(was, now)}{where}"
        for field, label in (("runtimeClassName", "runtime class"), ("priorityClassName", "priority class")):
            was, now = get_text(old.spec, field), get_text(template.spec, field)
            if was != now:
                yield "notice", f"{label}: {_step(was, now)}{where}"
        claims = [get_list(side.spec, "resourceClaims") for side in (old, template)]
        if claims[0] != claims[1]:
            was, now = (_names(items) for items in claims)
            yield "notice", f"requests other devices (resource claims {now} instead of {was}){where}"


def _selector(template: PodTemplate) -> dict[str, str]:
    return {key: str(item) for key, item in get_map(template.spec, "nodeSelector").items()}


def _step(was: str | None, now: str | None) -> str:
    if not was:
        return f"{value(now)} from now on"
    return f"{value(now)} instead of {value(was)}" if now else f"{value(was)} no longer required"


def _names(items: list[Json]) -> str:
    return listing(get_text(item, "name") for item in items) or "none"
