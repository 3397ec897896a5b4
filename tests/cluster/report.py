"""What a namespace looks like when a test in it failed: its pods and the last events."""

from __future__ import annotations

from collections.abc import Iterator

from tests.cluster.client import Client, Object

_EVENTS = 30


def namespace_report(client: Client, namespace: str) -> str:
    """Return the state of the pods of a namespace and its last events, a line each.

    Args:
        client: A client of the cluster.
        namespace: The namespace.
    """
    pods = [line for pod in client.objects("v1/Pod", namespace) for line in _pod_lines(pod)]
    events = sorted(client.objects("v1/Event", namespace), key=_last_seen)[-_EVENTS:]
    return "\n".join([f"namespace {namespace}:", *pods, *(_event_line(event) for event in events)])


def _pod_lines(pod: Object) -> Iterator[str]:
    status = pod.get("status", {})
    unmet = [
        f"{condition['type']}: {condition.get('reason', '')} {condition.get('message', '')}".strip()
        for condition in status.get("conditions", [])
        if condition["status"] != "True"
    ]
    yield f"  pod {pod['metadata']['name']} {status.get('phase', '')} {'; '.join(unmet)}".rstrip()
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field, []):
            state = {"state": container.get("state", {}), "before": container.get("lastState", {})}
            restarts, ready = container.get("restartCount", 0), container.get("ready", False)
            yield f"    {container['name']}: ready {ready}, {restarts} restarts, {state}"


def _last_seen(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _event_line(event: Object) -> str:
    about = event["involvedObject"]
    what = f"{about.get('kind', '')}/{about.get('name', '')}"
    return (
        f"  {_last_seen(event)} {event.get('type', '')} {event.get('reason', '')} {what}: "
        f"{event.get('message', '')} (x{event.get('count') or 1})"
    )
