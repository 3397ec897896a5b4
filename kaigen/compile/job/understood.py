"""The fields of a Job that have an effect, by what it runs: an image, a program of kaigen's, or a pod template."""

from __future__ import annotations

from collections.abc import Mapping, Set

from msgspec import Struct, field

from kaigen.compile.ignored_fields import ignored_fields, report_ignored_field
from kaigen.compile.job.classify import classify_settings
from kaigen.compile.problems import Problems
from kaigen.kinds.block import document_names
from kaigen.kinds.job import JobSpec
from kaigen.kinds.pod import PodFields


class Runs(Struct, frozen=True):
    """What a Job runs.

    Attributes:
        where: end of the message about a field without effect.
        understood: the fields that have one.
        hint: what to do in place of the others.
        hints: other hints, by field.
    """

    where: str
    understood: Set[str]
    hint: str
    hints: Mapping[str, str] = field(default_factory=dict)


_PODS = frozenset(
    (
        *("retries", "deadline", "ttl", "placement.queue", "security.podSecurity"),
        # A document sets exactly one of these.
        *JobSpec.exactly_one,
    )
)
_CONTAINER = _PODS | {
    *("env", "model", "inputs", "output", "resources", "placement", "security"),
    *("nodes", "shards", "parallelism", "groups"),
    *document_names(PodFields),
}

TEMPLATE = Runs("on a pod template", _PODS, "set it in the template")
IMAGE = Runs(
    "on an image of your own",
    _CONTAINER | {"command", "args", "params", "paramsFile"},
    "leave it out",
    {"classify": "set `workload: classify` in place of the image"},
)
CLASSIFY = Runs(
    "on `workload: classify`",
    _CONTAINER | {"classify", "params", "paramsFile"},
    "use the fields of `classify`, or an image of your own",
)
TUNE = Runs(
    "next to `tune`",
    _CONTAINER,
    "use the fields of `tune`, or an image of your own",
    {"classify": "set `workload: classify` in place of `tune`"},
)


def runs_of(spec: JobSpec) -> Runs:
    """Return what a Job runs."""
    if spec.template is not None:
        return TEMPLATE
    if spec.tune is not None:
        return TUNE
    return IMAGE if classify_settings(spec) is None else CLASSIFY


def check_fields(spec: JobSpec, problems: Problems) -> None:
    """Report every field that has no effect on what a Job runs."""
    runs = runs_of(spec)
    for name, path in ignored_fields(spec, runs.understood):
        report_ignored_field(problems, str(path[-1]), path, runs.where, runs.hints.get(name, runs.hint))
