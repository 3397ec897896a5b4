"""Rules for upgrades of serving engines: what another version of vLLM means for the flags of a container."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.catalog.engines import Version, engine_facts, tag_version
from kaigen.catalog.vllm_flags import (
    Flag,
    Minor,
    first_name,
    flags_of,
    known_versions,
    minor_of,
    nearest_version,
    version_text,
)
from kaigen.compile.engines.vllm_flags import PLUGINS, Given, given_in, problem_of, unregistered_problem
from kaigen.core.json_types import JsonObject
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.diff.formatting import listing
from kaigen.diff.objects import get_list, get_text
from kaigen.diff.rules.case import Case, Finding
from kaigen.diff.rules.containers import containers

_DEPRECATED = re.compile(r"^(\[?DEPRECATED[]:]*\s*|--[\w-]+ is deprecated and )")


class Step(Struct, frozen=True):
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
        step = _step(before[name], after[name])
        if step is not None:
            yield from _findings(step)


def _step(old: JsonObject, new: JsonObject) -> Step | None:
    """Return the change of version between two containers; None when both run the same, or none is known."""
    arguments = _arguments(new)
    was, now = tag_version(get_text(old, "image")), tag_version(get_text(new, "image"))
    if arguments is None or _arguments(old) is None or was is None or now is None or was == now:
        return None
    return Step(was, now, tuple(given_in(arguments)))


def _arguments(container: JsonObject) -> list[str] | None:
    """Return the arguments of vLLM in the command line of a container; None when it does not run vLLM."""
    words = [word for field in ("command", "args") for word in get_list(container, field) if isinstance(word, str)]
    command = list(engine_facts("vllm").command)
    size = len(command)
    starts = (index for index in range(len(words) - size + 1) if words[index : index + size] == command)
    start = next(starts, None)
    return None if start is None else words[start + size :]


def _findings(step: Step) -> Iterator[Finding]:
    old, new = step.tables
    for version, table in ((step.old, old), (step.new, new)):
        if minor_of(version) != table:
            known = listing([version_text(each) for each in known_versions()])
            text = f"the flags of {version_text(version)} are not known; compared as {version_text(table)}"
            yield "info", f"{step.title}: {text} (known: {known})"
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


def _problems(step: Step) -> tuple[list[str], list[str]]:
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


def _defaults(step: Step) -> list[str]:
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
