"""Whether the gates of an environment passed for what the environment runs now."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from kaigen.gates.reports import Report, make_report, read_report, report_path, write_report
from kaigen.kinds.gate import GATES
from kaigen.kinds.job import Job
from kaigen.pipeline.run import Run

if TYPE_CHECKING:
    from kaigen.cluster.client import Cluster
    from kaigen.config.settings import Config
    from kaigen.pipeline.result import Compiled


class Gate(Struct, frozen=True):
    """A Job that judges a Topology, as an environment has it.

    Attributes:
        environment: the environment.
        namespace: its namespace.
        app: its name.
        run: name of the Job. It ends in a hash of the Topology's pods and of what is required, so a report about the
            Job is one about what is in Git.
        judged: namespace and name of the Topology and of what that needs.
    """

    environment: str
    namespace: str
    app: str
    run: str
    judged: tuple[tuple[str, str], ...]

    def concerns(self, apps: Collection[str]) -> bool:
        """Return whether it judges one of these apps, `NAME` or `NAMESPACE/NAME`, or is one; true of no apps."""
        own = ((self.namespace, self.app), *self.judged)
        return not apps or any(name in apps or f"{namespace}/{name}" in apps for namespace, name in own)


class Verdict(Struct, frozen=True):
    """What is known about a gate.

    Attributes:
        gate: the gate.
        state: `passed`; `failed`; `outdated`, if the report is one about an earlier run; or `missing`.
        reason: why it has not passed.
        report: the report; None without one.
    """

    gate: Gate
    state: Literal["passed", "failed", "outdated", "missing"]
    reason: str = ""
    report: Report | None = None

    @property
    def passed(self) -> bool:
        """Whether the gate lets a promotion pass."""
        return self.state == "passed"


def find_gates(config: Config, apps: Collection[str] = ()) -> list[Gate]:
    """Return the gates of an environment.

    Args:
        config: settings of the environment.
        apps: only gates that judge these apps; all when empty.

    Raises:
        InputError: the specs have errors.
    """
    compiled = Run.load((), config, use_cache=False).compilation().apps
    needs = {(item.app.namespace, item.app.name): item.needs for item in compiled}
    gates = [gate for item in compiled if (gate := _gate_of(item, config.environment)) is not None]
    found = []
    for gate in gates:
        judged = tuple(dict.fromkeys([*gate.judged, *(name for each in gate.judged for name in needs.get(each, ()))]))
        whole = Gate(gate.environment, gate.namespace, gate.app, gate.run, judged)
        if whole.concerns(apps):
            found.append(whole)
    return found


def _gate_of(item: Compiled, environment: str) -> Gate | None:
    block = item.spec.block if item.spec is not None else None
    if not isinstance(block, Job) or block.spec.workload not in GATES:
        return None
    names = [str(each.body["metadata"]["name"]) for each in item.objects if each.object.role == "job"]
    return Gate(environment, item.app.namespace, item.app.name, names[0], item.needs) if names else None


def read_verdicts(root: Path, gates: Sequence[Gate]) -> list[Verdict]:
    """Return what the reports of a repository say about gates.

    Args:
        root: the repository's folder.
        gates: the gates.

    Raises:
        InputError: a file is not a report.
    """
    found = []
    for gate in gates:
        report = read_report(report_path(root, gate.environment, gate.namespace, gate.app), root)
        if report is None:
            found.append(Verdict(gate, "missing", "there is no report"))
        elif report.run != gate.run:
            reason = f"the report is about {report.run}, and Git has {gate.run}"
            found.append(Verdict(gate, "outdated", reason, report))
        else:
            found.append(Verdict(gate, "passed" if report.passed else "failed", report.reason, report))
    return found


def collect_reports(root: Path, gates: Sequence[Gate], cluster: Cluster) -> list[Verdict]:
    """Write the reports that a cluster has to the repository; return what is known about the gates.

    Args:
        root: the repository's folder.
        gates: the gates.
        cluster: the cluster of their environment.

    Raises:
        SystemFailure: the cluster cannot be reached.
        InputError: a file is not a report.
    """
    why: dict[Gate, str] = {}
    for gate in gates:
        report, reason = _live_report(gate, cluster)
        if report is None:
            why[gate] = reason
        else:
            write_report(report_path(root, gate.environment, gate.namespace, gate.app), report)
    return list(_with_reasons(read_verdicts(root, gates), why))


def _with_reasons(verdicts: Sequence[Verdict], why: dict[Gate, str]) -> Iterator[Verdict]:
    for each in verdicts:
        is_known = each.state in ("passed", "failed") or each.gate not in why
        yield each if is_known else Verdict(each.gate, each.state, why[each.gate], each.report)


def _live_report(gate: Gate, cluster: Cluster) -> tuple[Report | None, str]:
    """Return the report about the run of a gate; without one, why."""
    from kaigen.cluster.states import job_state

    job = cluster.find("batch/v1/Job", gate.run, gate.namespace)
    if job is None:
        return None, f"Job {gate.run} is not in the cluster"
    state = job_state(job)
    if state.name not in ("ready", "failed"):
        return None, f"Job {gate.run}: {state.message or state.name}"
    facts = cluster.find("v1/ConfigMap", f"{gate.app}-facts", gate.namespace) or {}
    passed = state.name == "ready"
    report = _stored_report(gate, facts.get("data") or {})
    # The Job decides: a ConfigMap can be written by others.
    if report is not None and report.passed == passed:
        return report, ""
    reason = "" if passed else state.message or "the Job failed"
    known = {"gate": gate.app, "run": gate.run, "passed": passed, "reason": reason, "checks": []}
    return make_report(known), ""


def _stored_report(gate: Gate, stored: Mapping[str, str]) -> Report | None:
    """Return the report in the ConfigMap of a gate; None if it has none of this run, or one that cannot be read."""
    if stored.get("run") != gate.run:
        return None
    try:
        data = json.loads(stored.get("report.json", ""))
    except (ValueError, RecursionError):
        return None
    return make_report(data) if isinstance(data, dict) else None
