"""`kaigen check` gives the same verdict as a real API server, except where `api_differences.yaml` says why not.

`make api-differential` asks of thousands more.
"""

from __future__ import annotations

from tests.cluster.differential import judge, report, sample, unchanged, unexplained
from tests.cluster.plane import Plane

OBJECTS = 1500


def test_check_and_the_api_server_agree_on_valid_and_changed_objects(plane: Plane, namespace: str) -> None:
    plane.set_pod_security(namespace, "privileged")
    verdicts = list(judge(plane.client, namespace, [*unchanged(), *sample(seed=1, count=OBJECTS)]))
    left = unexplained(verdicts)
    assert not left, f"{len(left)} of {len(verdicts)} objects differ without a reason:\n{report(left)}"
    refused = [each for each in verdicts if each.server]
    assert len(refused) > len(verdicts) // 3
