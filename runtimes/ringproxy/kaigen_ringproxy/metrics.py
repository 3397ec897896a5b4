"""Prometheus metrics."""

from __future__ import annotations

_HELP = {
    "requests_waiting": ("gauge", "Requests that wait for their turn."),
    "requests_running": ("gauge", "Requests that distributed-llama works on: 0 or 1."),
    "ready": ("gauge", "Whether the ring answers: 1 or 0."),
    "connections": ("gauge", "Open connections of clients."),
    "requests_total": ("counter", "Requests, by path and status."),
    "chunks_total": ("counter", "Pieces of text that were generated, one for each token at most."),
    "abandoned_total": ("counter", "Requests whose client left before the answer was complete."),
    "request_seconds_total": ("counter", "Seconds of all chats from their start to their end, summed."),
}


class Metrics:
    """Counters and gauges of one event loop."""

    def __init__(self) -> None:
        self._values: dict[str, dict[str, float]] = {name: {} for name in _HELP}
        for name, (kind, _) in _HELP.items():
            if kind == "gauge":
                self._values[name][""] = 0

    def add(self, name: str, amount: float = 1, **labels: object) -> None:
        """Increase a counter, or change a gauge."""
        values, key = self._values[name], ",".join(f'{label}="{value}"' for label, value in labels.items())
        values[key] = values.get(key, 0) + amount

    def set(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._values[name][""] = value

    def text(self) -> str:
        """Return all values in Prometheus' text format."""
        lines: list[str] = []
        for name, (kind, text) in _HELP.items():
            full = f"kaigen_ring_{name}"
            lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}"]
            for labels, value in sorted(self._values[name].items()):
                lines.append(f"{full}{{{labels}}} {value:g}" if labels else f"{full} {value:g}")
        return "\n".join(lines) + "\n"
