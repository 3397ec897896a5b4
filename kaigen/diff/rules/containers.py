"""Rules for images, resources and placement of pods, and for upgrades of the engines that serve models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.catalog.engines import Version, engine_facts, tag_version
from kaigen.catalog.gpus import gpu_of_share
from kaigen.catalog.vllm_flags import (
    Flag,
    Minor,
    first_name,
    flags_of,
    known_range,
    minor_of,
    nearest_version,
    version_text,
)
from kaigen.compile.engines.vllm_flags import PLUGINS, Given, given_in, problem_of, unregistered_problem
from kaigen.core.json_types import Json, JsonObject
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
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


_DEPRECATED = re.compile(r"^(\[?DEPRECATED[]:]*\s*|--[\w-]+ is deprecated and )")


class _Step(Struct, frozen=True):
    """A change of the version of vLLM in a container.

    Attributes:
        old: version before.
        new: version now.
        given: the flags that the container sets now.
    """

    old: Version
    new: Version
    given: tuple[Given, ...]

    @property
    def tables(self) -> tuple[Minor, Minor]:
        """The versions whose tables of flags are the nearest to the two."""
        return nearest_version(self.old), nearest_version(self.new)

    @property
    def title(self) -> str:
        """The change in words."""
        return f"vLLM {version_text(self.old)} becomes {version_text(self.new)}"


def upgrade(case: Case) -> Iterator[Finding]:
    """The version of vLLM changed: flags that are refused or deprecated, and defaults that changed."""
    before, after = containers(case.old), containers(case.new)
    for name in after.keys() & before.keys():
        step = _upgrade_step(before[name], after[name])
        if step is not None:
            yield from _findings(step)


def _upgrade_step(old: JsonObject, new: JsonObject) -> _Step | None:
    """Return the change of version between two containers; None when both run the same, or none is known."""
    arguments = _arguments(new)
    was, now = tag_version(get_text(old, "image")), tag_version(get_text(new, "image"))
    if arguments is None or _arguments(old) is None or was is None or now is None or was == now:
        return None
    return _Step(was, now, tuple(given_in(arguments)))


def _arguments(container: JsonObject) -> list[str] | None:
    """Return the arguments of vLLM in the command line of a container; None when it does not run vLLM."""
    words = [word for field in ("command", "args") for word in get_list(container, field) if isinstance(word, str)]
    command = list(engine_facts("vllm").command)
    size = len(command)
    starts = (index for index in range(len(words) - size + 1) if words[index : index + size] == command)
    start = next(starts, None)
    return None if start is None else words[start + size :]


def _findings(step: _Step) -> Iterator[Finding]:
    old, new = step.tables
    for version, table in ((step.old, old), (step.new, new)):
        if minor_of(version) != table:
            text = f"the flags of {version_text(version)} are not known; compared as {version_text(table)}"
            yield "info", f"{step.title}: {text} (known: {known_range()})"
    refused, deprecated = _problems(step)
    if refused:
        yield "danger", f"{step.title}, and does not start: {'; '.join(refused)}"
    if deprecated:
        yield "notice", f"{step.title}: deprecated: {'; '.join(deprecated)}"
    defaults = _defaults(step)
    if defaults:
        yield "notice", f"{step.title}: other defaults of flags that are not set: {listing(defaults)}"
    if not (refused or deprecated or defaults) and old != new:
        yield "info", f"{step.title}: it accepts every flag that is set, and no default changed"


def _problems(step: _Step) -> tuple[list[str], list[str]]:
    """Return the flags that the new version refuses, and those that it deprecates, unless the old one did, too."""
    old, new = step.tables
    plugins = any(given.name in PLUGINS for given in step.given)
    refused: list[str] = []
    deprecated: list[str] = []
    for given in step.given:
        before, found = (_problem(given, version, plugins) for version in (old, new))
        if found is None or (before is not None and before.severity is found.severity):
            continue
        if found.severity is not Severity.ERROR:
            deprecated.append(f"--{given.name} ({_DEPRECATED.sub('', found.hint)})")
        elif given.name.partition(".")[0] in flags_of(new):
            refused.append(found.message.replace("`", ""))
        else:
            renamed = _renamed(given, old, new)
            refused.append(f"--{given.name} is {f'now --{renamed}' if renamed else 'gone'}")
    return refused, deprecated


def _problem(given: Given, version: Minor, plugins: bool) -> Problem | None:
    found = problem_of(given, version)
    return unregistered_problem(given, version) if found is None and not plugins else found


def _renamed(given: Given, old: Minor, new: Minor) -> str:
    """Return another name of a flag that the new version still has; empty for none."""
    flag = flags_of(old).get(given.name)
    if flag is None or given.name in flags_of(new):
        return ""
    return next((name for name in flag.names if name in flags_of(new) and not name.startswith("-")), "")


def _defaults(step: _Step) -> list[str]:
    """Return the flags that are not set and have another default."""
    before, after = map(flags_of, step.tables)
    given = {each.name.partition(".")[0] for each in step.given}
    changed: list[str] = []
    for name, now in after.items():
        was = before.get(name)
        if was is None or name != first_name(now.names) or given & {*was.names, *now.names}:
            continue
        if was.default != now.default and "no effect" not in was.deprecated + now.deprecated:
            changed.append(f"--{name} from {_shown(was)} to {_shown(now)}")
    return sorted(changed)


def _shown(flag: Flag) -> str:
    return "one that vLLM chooses" if flag.default is None else json.dumps(flag.default)
