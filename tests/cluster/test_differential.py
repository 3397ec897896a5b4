"""`kaigen check` gives the same verdict as a real API server, except where `api_differences.yaml` says why not.

`make api-differential` asks of thousands more.
"""

from __future__ import annotations

from kaigen.kubernetes.quantities import canonical
from tests.cluster.api_mutations import Mutation
from tests.cluster.client import Object, kind_of
from tests.cluster.differential import judge, placed, report, sample, server_refusal, unchanged, unexplained
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.unit.check import api_rules, custom_rules
from tests.unit.check.example_objects import example

OBJECTS = 1500
"""Always the same ones: their choice is by a seed, and by nothing of the process."""
CASES = (*api_rules.CASES, *custom_rules.CASES)


def test_check_and_the_api_server_agree_on_valid_and_changed_objects(plane: Plane, namespace: str) -> None:
    plane.set_pod_security(namespace, "privileged")
    verdicts = list(judge(plane.client, namespace, [*unchanged(), *sample(seed=1, count=OBJECTS)]))
    left = unexplained(verdicts)
    assert not left, f"{len(left)} of {len(verdicts)} objects differ without a reason:\n{report(left)}"
    refused = [each for each in verdicts if each.server]
    assert len(refused) > len(verdicts) // 3


def test_kaigens_verdict_is_by_the_webhooks_that_are_asked(
    plane: Plane, groups: GroupControllers, namespace: str
) -> None:
    group: Object = example("LeaderWorkerSet")
    group["spec"]["leaderWorkerTemplate"]["size"] = 0
    mutation = Mutation(kind_of(group), "size 0", placed(group))
    (before,) = judge(plane.client, namespace, [mutation])
    assert before.agree
    groups.start_leader_worker_set()
    (after,) = judge(plane.client, namespace, [mutation])
    assert after.agree
    assert after.server


def test_the_api_server_refuses_what_the_rules_of_check_refuse(plane: Plane, namespace: str) -> None:
    plane.set_pod_security(namespace, "privileged")
    accepted = [case for case in CASES if not server_refusal(plane.client, placed(case.body()), namespace)]
    assert accepted == []


QUANTITIES = (
    *("1000m", "4000M", "10240Mi", "0.5Gi", "1.5", "1500m", "1k", "1000", "1200", "100000", "16000000000"),
    *("1e3", "1.5e3", "5e6", "0.5", "512Ki", "1Ki", "1024", "0", "1.5Gi", "1Ei", "2.", "007", "1500M", "1E3"),
)


def test_quantities_are_written_as_the_api_server_stores_them(plane: Plane, namespace: str) -> None:
    amounts = {f"example.com/{text}.a": canonical(text) for text in QUANTITIES}
    obj: Object = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "quantities"},
        "spec": {"limits": [{"type": "example.com/any", "max": amounts}]},
    }
    stored = plane.client.apply(obj, namespace, dry_run=True).object["spec"]["limits"][0]["max"]
    assert stored == amounts
