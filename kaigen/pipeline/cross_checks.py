"""The checks that only all apps of a run together show, in one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from kaigen.core.text import some_of
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.pipeline.config_checks import implied_namespace, unpinned_images
from kaigen.pipeline.expiry import expiry_problems
from kaigen.pipeline.host_checks import shared_hosts
from kaigen.pipeline.name_checks import clashes
from kaigen.pipeline.sync_checks import refused_train_jobs, sync_clashes
from kaigen.pipeline.tenant_checks import cost_budgets, folders_without_files, gpu_quotas
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.diagnostics.collector import Diagnostics
    from kaigen.pipeline.unit import RunApp, Unit

with lazy_imports():
    from kaigen.compile.model import volume as model_volume
    from kaigen.pipeline import queue_checks, rollout_checks


_LISTED = 5
"""Most places in a message."""


class RunApps(NamedTuple):
    """What the checks read.

    Attributes:
        units: the files that are compiled.
        apps: their apps, and those that kaigen generates.
        config: the repository's settings.
    """

    units: Sequence[Unit]
    apps: Sequence[RunApp]
    config: Config


class Check(NamedTuple):
    """A check of all apps.

    Attributes:
        find: returns the problems.
        whole: only for a run that compiles every file, because apps that are not there count too.
        sound: only if no error was found before, which would cause a false one.
    """

    find: Callable[[RunApps], Iterable[Diagnostic]]
    whole: bool = False
    sound: bool = False


def _rollout_problems(run: RunApps) -> Iterable[Diagnostic]:
    is_needed = any(app.rollout is not None for _, app in run.apps)
    return rollout_checks.rollout_problems(run.apps, run.config) if is_needed else ()


def _queue_problems(run: RunApps) -> Iterable[Diagnostic]:
    is_needed = any(app.queues is not None for _, app in run.apps)
    return queue_checks.queue_problems(run.apps) if is_needed else ()


CHECKS: tuple[Check, ...] = (
    Check(lambda run: clashes(run.apps)),
    Check(lambda run: sync_clashes(run.apps, run.config)),
    Check(lambda run: shared_hosts(run.apps, run.config.tenants)),
    Check(lambda run: refused_train_jobs(run.apps, run.config)),
    Check(lambda run: folders_without_files(run.config)),
    Check(_rollout_problems, whole=True),
    Check(lambda run: gpu_quotas(run.apps, run.config), whole=True),
    Check(lambda run: cost_budgets(run.apps, run.config), whole=True),
    Check(_queue_problems, whole=True, sound=True),
    Check(lambda run: expiry_problems(run.units, datetime.now(UTC))),
    Check(lambda run: implied_namespace(run.config, (app for _, app in run.apps)), sound=True),
    Check(lambda run: unpinned_images(run.config, (app for _, app in run.apps)), sound=True),
)


def check_apps(run: RunApps, problems: Diagnostics, *, partial: bool) -> None:
    """Report what is wrong with the apps of a run together.

    Args:
        run: the apps.
        problems: what is wrong with them one by one; receives the rest.
        partial: only some of the repository's files are compiled.
    """
    for check in CHECKS:
        if not ((check.whole and partial) or (check.sound and problems.has_errors)):
            problems.extend(check.find(run))


def once_for_each_volume(items: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Return diagnostics with one warning for each volume that may bind on the wrong node, not one for each reader."""
    readers: dict[str, list[Diagnostic]] = {}
    same = Counter(item.message for item in items)
    for item in items:
        if same[item.message] > 1 and item.code == model_volume.PINNED_VOLUME:
            readers.setdefault(item.message, []).append(item)
        else:
            yield item
    for message, (first, *others) in readers.items():
        places = [f"{each.mark.file}:{each.mark.line}" for each in others if each.mark is not None]
        more = f"; also read at {some_of(places, _LISTED)}" if places else ""
        yield replace(first, message=f"{message}{more}")
