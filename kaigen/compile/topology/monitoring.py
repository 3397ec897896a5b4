"""What the Prometheus operator and Grafana know of a Topology, and what they cannot know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kaigen.catalog.vllm_flags import (
    has_metric,
    has_package,
    known_versions,
    minor_of,
    nearest_version,
    version_text,
)
from kaigen.compile.app import Object
from kaigen.compile.builders.alerts import RUNBOOK, left_out, prometheus_rule
from kaigen.compile.builders.dashboard import ROUTER_PANELS, dashboard, engine_panels
from kaigen.compile.builders.network import pod_monitor
from kaigen.compile.builders.pods import image_ref
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.problems import Problems
from kaigen.compile.topology.resolution import TopologyResolution
from kaigen.core.json_types import FieldPath
from kaigen.core.text import plural
from kaigen.diagnostics.codes import page_url
from kaigen.kubernetes.images import parse_image

_AT: FieldPath = ("spec", "monitoring")
_TRACED = ("opentelemetry-sdk", "opentelemetry-exporter-otlp")
"""Packages without which vLLM does not start with a collector of traces (vllm/config/observability.py)."""


def monitoring_objects(resolution: TopologyResolution, objects: Sequence[Object]) -> list[Object]:
    """Return the PodMonitor, the alert rules and the dashboard of a Topology.

    Args:
        resolution: what was decided.
        objects: its other objects.
    """
    spec, frame = resolution.spec, resolution.frame
    block = spec.monitoring
    if block is None:
        return []
    found = [pod_monitor(frame, SERVE, block, resolution.engine.facts.metrics_path)]
    if block.alerts is not None:
        found += prometheus_rule(
            frame,
            resolution.context,
            resolution.namespace,
            block.alerts,
            block.labels,
            objects,
            metrics=engine_metrics(resolution),
            slo=block.slo,
            dashboard=block.dashboard,
            startup=resolution.startup,
        )
    if block.dashboard is not None:
        panels = [*engine_panels(engine_metrics(resolution)), *(ROUTER_PANELS if spec.router is not None else ())]
        found.append(dashboard(frame, block.dashboard, resolution.namespace, panels, page_url(RUNBOOK)))
    return found


def engine_metrics(resolution: TopologyResolution) -> Mapping[str, str]:
    """Return the names of the metrics that the engine's version has, by what they measure."""
    engine = resolution.engine
    metrics = engine.facts.metrics or {}
    version = engine.version(resolution.spec, resolution.image)
    if engine.name != "vllm" or version is None or minor_of(version) != nearest_version(version):
        return metrics
    minor = minor_of(version)
    return {key: name for key, name in metrics.items() if not name.startswith("vllm:") or has_metric(name, minor)}


def check_monitoring(resolution: TopologyResolution, problems: Problems) -> None:
    """Report alerts that are left out, objectives that no alert watches, and an engine that cannot send traces."""
    block = resolution.spec.monitoring
    if block is None:
        return
    if block.traces is not None:
        _check_traces(resolution, problems)
    if block.slo is not None and block.alerts is None:
        problems.warning(
            "KG0440",
            "`slo` has no effect without `alerts`",
            (*_AT, "slo"),
            "set `monitoring.alerts: {}` for the alerts",
        )
    missing = [] if block.alerts is None else left_out(block.alerts, block.slo, engine_metrics(resolution))
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        version = resolution.engine.version(resolution.spec, resolution.image)
        shown = "".join(f" {part}" for part in ([".".join(map(str, version))] if version is not None else []))
        problems.warning(
            "KG0441",
            f"{resolution.engine.label}{shown} has no metric for {plural(len(missing), 'alert')}, which "
            f"{'is' if len(missing) == 1 else 'are'} left out: {names}",
            (*_AT, "alerts"),
            f"switch {'it' if len(missing) == 1 else 'them'} off: `rules: {{{missing[0]}: {{enabled: false}}}}`",
        )


def _check_traces(resolution: TopologyResolution, problems: Problems) -> None:
    """Report an image of vLLM's own that lacks the packages of OpenTelemetry."""
    version = resolution.engine.version(resolution.spec, resolution.image)
    own = parse_image(image_ref(resolution.image)).repository.rpartition("/")[2].startswith("vllm-openai")
    if resolution.engine.name != "vllm" or version is None or not own:
        return
    if all(has_package(name, nearest_version(version)) for name in _TRACED):
        return
    first = next(each for each in known_versions() if all(has_package(name, each) for name in _TRACED))
    problems.error(
        "KG0442",
        f"vLLM {'.'.join(map(str, version))} does not start with `traces`: its image lacks OpenTelemetry",
        (*_AT, "traces"),
        f"use vLLM {version_text(first)} or newer, or an image of your own with {' and '.join(_TRACED)}",
    )
