"""Plan the next content of `kaigen.lock`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Struct

from kaigen.config.lock_file import Lock, LockedWeights, lock_of, lock_with
from kaigen.config.settings import LOCK_NAME, Config
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.errors import CheckFailed, InputError, SystemFailure
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.images import parse_image
from kaigen.lock.names import GitName, Image, SourceName, git_names, images, source_names
from kaigen.lock.servers import Servers, git_commit
from kaigen.oci.http import Unreachable

_CODE = "KG0751"
_HINT = "run it where the server can be reached; behind a proxy, set HTTPS_PROXY"
_IMAGE_HINT = f"{_HINT}. Or set `registry.mirror` in kaigen.yaml, or leave images out with --no-images"


class LockPlan(Struct, frozen=True):
    """The content of the lock, and what it was.

    Attributes:
        old: the lock as it is.
        new: the lock as it should be.
        not_built: images that were asked for, and that no build has pushed yet.
    """

    old: Lock
    new: Lock
    not_built: tuple[str, ...] = ()


class Stale(Struct, frozen=True):
    """How a lock differs from what the specs name.

    Attributes:
        missing: names without an entry.
        unused: entries that no spec names.
    """

    missing: tuple[str, ...]
    unused: tuple[str, ...]


class ServersFailed(InputError):
    """Names that cannot be resolved, at least one because a server failed. Exit code 3."""

    exit_code = SystemFailure.exit_code


def stale(configs: Sequence[Config]) -> Stale:
    """Return how the lock differs from what the specs of all environments name. No server is asked.

    Raises:
        InputError: the lock or a spec is invalid.
    """
    lock = lock_of(configs[0].root, configs[0].lock)
    names, refs = source_names(configs), git_names(configs)
    missing = [key for key in names if key not in lock.entries]
    missing += [key for key in refs if key not in lock.git]
    unused = [key for key in lock.entries if key not in names]
    unused += [key for key in lock.git if key not in refs]
    if not missing:
        # Without the facts of a model, its spec may be invalid.
        used = images(configs, lock)
        missing += [name for name in used if name not in lock.images and not used[name].is_built]
        unused += [name for name in lock.images if name not in used]
    return Stale(tuple(missing), tuple(unused))


def plan_lock(
    configs: Sequence[Config],
    servers: Servers,
    upgrade: Collection[str] | None = None,
    *,
    built: bool = False,
    asks_images: bool = True,
) -> LockPlan:
    """Return the lock with an entry for each name in the specs of all environments, and no others.

    Args:
        configs: the settings of each environment.
        servers: are asked about what has no entry.
        upgrade: names of apps, sources and images that are resolved again; all if it is empty, none if None.
        built: also ask for images that the cluster builds; those of the lock stay in any case.
        asks_images: ask for images; without it, those of the lock stay, and others get no entry.

    Raises:
        InputError: the lock or a spec is invalid, or a name does not exist; with all problems.
        ServersFailed: a server cannot be reached, or gives no valid answer; with all problems.
    """
    old = lock_of(configs[0].root, configs[0].lock)
    names, refs = source_names(configs), git_names(configs)
    answers = _Answers(servers)
    found = {
        key: answers.entry(name)
        if upgrade is not None and _is_chosen(name, upgrade)
        else old.entries.get(key) or answers.entry(name)
        for key, name in sorted(names.items())
    }
    commits = {
        key: answers.commit(ref)
        if upgrade is not None and _is_chosen(ref, upgrade)
        else old.git.get(key) or answers.commit(ref)
        for key, ref in sorted(refs.items())
    }
    answers.raise_errors()
    entries = {key: entry for key, entry in found.items() if entry is not None}
    used = images(configs, lock_with(entries, {}, commits))
    _check_names(upgrade or (), (*names.values(), *refs.values()), used.values())
    digests: dict[str, str] = {}
    not_built = []
    for name, image in used.items():
        is_kept = upgrade is None or not asks_images or not _is_chosen_image(image, upgrade)
        known = old.images.get(name, "") if is_kept or (image.is_built and not built) else ""
        if not known and image.is_built:
            known = answers.built(image) if built else ""
            if built and not known:
                not_built.append(name)
        digest = known or ("" if image.is_built or not asks_images else answers.digest(image))
        if digest:
            digests[name] = digest
    answers.raise_errors()
    return LockPlan(old, lock_with(entries, digests, commits), tuple(not_built))


class _Answers:
    """Answers of servers, and the problems of those that gave none."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._problems = Diagnostics()
        self._failed = False

    def entry(self, name: SourceName) -> LockedWeights | None:
        """Return what a source contains; None if there is a problem."""
        try:
            return self._servers.entry(name)
        except (CheckFailed, SystemFailure) as error:
            self._add(error, name.mark, name.field)
            return None

    def digest(self, image: Image) -> str:
        """Return the digest of an image, from a mirror if need be; nothing if there is a problem."""
        registries = self._servers.registries
        try:
            return registries.digest(parse_image(image.name))
        except SystemFailure as error:
            if isinstance(error, Unreachable):
                for copy in image.copies:
                    with suppress(SystemFailure):
                        return registries.digest(parse_image(copy))
                error.hint = _IMAGE_HINT
            self._add(error, None, "", f"of {', '.join(image.apps)}")
            return ""

    def built(self, image: Image) -> str:
        """Return the digest of an image that a build pushes; nothing before, or if there is a problem."""
        try:
            return self._servers.registries.find_digest(parse_image(image.name)) or ""
        except SystemFailure as error:
            self._add(error, None, "", f"of {', '.join(image.apps)}")
            return ""

    def commit(self, name: GitName) -> str:
        """Return the commit of a branch or a tag; nothing if there is a problem."""
        try:
            return git_commit(name.git.url, name.git.commit)
        except SystemFailure as error:
            self._add(error, name.mark, name.field)
            return ""

    def raise_errors(self) -> None:
        """Raise all problems."""
        if self._problems.has_errors:
            raise (ServersFailed if self._failed else InputError)(self._problems.sorted())

    def _add(self, error: CheckFailed | SystemFailure, mark: Mark | None, field: str, whose: str = "") -> None:
        self._failed |= isinstance(error, SystemFailure)
        message = f"{error} ({whose})" if whose else str(error)
        hint = error.hint or (_HINT if isinstance(error, Unreachable) else "")
        self._problems.add(Diagnostic(_CODE, message, mark, hint, path=field))


def _is_chosen(name: SourceName | GitName, upgrade: Collection[str]) -> bool:
    return not upgrade or bool(_titles(name) & set(upgrade))


def _is_chosen_image(image: Image, upgrade: Collection[str]) -> bool:
    return not upgrade or bool(_image_titles(image) & set(upgrade))


def _titles(name: SourceName | GitName) -> set[str]:
    """Return the names by which a user may choose a source."""
    return {*name.titles, *name.apps, *_short(name.apps)}


def _image_titles(image: Image) -> set[str]:
    return {image.name, parse_image(image.name).repository, *image.apps, *_short(image.apps)}


def _short(apps: Iterable[str]) -> set[str]:
    return {app.partition("/")[2] for app in apps}


def _check_names(upgrade: Collection[str], names: Iterable[SourceName | GitName], used: Iterable[Image]) -> None:
    known = {title for name in names for title in _titles(name)}
    known |= {title for image in used for title in _image_titles(image)}
    for name in upgrade:
        if name not in known:
            hint = did_you_mean(name, known) or f"name an app, a source or an image; {LOCK_NAME} lists them"
            raise InputError.of("KG0716", f"nothing in the specs is named `{name}`", hint=hint)


def differences(plan: LockPlan) -> Mapping[str, str]:
    """Return the entries that are added, changed and removed, each with what happens."""
    found: dict[str, str] = {}
    tables: tuple[tuple[Mapping[str, object], Mapping[str, object]], ...] = (
        (plan.old.entries, plan.new.entries),
        (plan.old.images, plan.new.images),
        (plan.old.git, plan.new.git),
    )
    for old, new in tables:
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                found[key] = "added" if key not in old else "removed" if key not in new else "changed"
    return found
