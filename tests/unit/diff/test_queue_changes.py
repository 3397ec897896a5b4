"""What a change of a queue does to the workloads of all apps."""

from __future__ import annotations

from typing import Any

from kaigen.diff import compare
from tests import plain_yaml
from tests.unit.kubernetes.test_admission import amount, cohort, flavor, queue, run

Object = dict[str, Any]


def tree(cpu: int, *runs: Object, local: bool = True) -> dict[str, bytes]:
    """Return a tree with the queue `q` of so many CPUs, and an app for each run."""
    apps = {"q": [flavor("f"), *queue("q", ("f", [amount("cpu", cpu), amount("memory", "1Gi")]))]}
    apps |= {each["metadata"]["name"]: [each] for each in runs}
    return {
        f"ns/{app}/manifests/{number}.yaml": plain_yaml.dump(body).encode()
        for app, bodies in apps.items()
        for number, body in enumerate(bodies)
        if local or body["kind"] != "LocalQueue"
    }


def said(old: dict[str, bytes], new: dict[str, bytes], kind: str) -> list[tuple[str, str, str]]:
    """Return level, rule and text of what queues have to do with a change of objects of a kind."""
    return [
        (effect.level, effect.rule, effect.text)
        for app in compare(old, new).apps
        for item in app.objects
        if item.kind == kind
        for effect in item.effects
        if effect.rule.startswith("queue-")
    ]


def test_a_smaller_quota_names_what_no_longer_fits_and_what_waits() -> None:
    runs = run("a", 3), run("b", 3), run("c", 7)
    assert said(tree(8, *runs), tree(5, *runs), "ClusterQueue") == [
        (
            "danger",
            "queue-quota",
            "Job c no longer fits, and waits forever once it is queued: flavor f has 5 cpu for it, and it needs 7",
        ),
        ("notice", "queue-quota", "quota of flavor f: 8 → 5 cpu"),
        ("notice", "queue-quota", "Job b now waits when all of the queue are there at once"),
    ]


def test_a_larger_quota_names_what_fits_and_what_no_longer_waits() -> None:
    runs = run("a", 3), run("b", 3), run("c", 7)
    assert said(tree(5, *runs), tree(13, *runs), "ClusterQueue") == [
        ("notice", "queue-quota", "quota of flavor f: 5 → 13 cpu"),
        ("notice", "queue-quota", "Job c fits"),
        ("info", "queue-quota", "Job b no longer waits for others"),
    ]


def test_a_new_run_that_fits_names_its_flavor() -> None:
    assert said(tree(8), tree(8, run("a", 3)), "Job") == [
        ("info", "queue-holds", "fits into the queue q: 1 pod of flavor f")
    ]


def test_a_new_run_of_several_pods_names_the_label_that_they_are_placed_by() -> None:
    level = "cloud.com/rack"
    pods = run("a", 3, pods=2, annotations={"kueue.x-k8s.io/podset-required-topology": level})
    racks = {"kind": "Topology", "apiVersion": "kueue.x-k8s.io/v1beta2", "metadata": {"name": "t"}}
    new = tree(8, pods)
    new["ns/q/manifests/0.yaml"] = plain_yaml.dump(flavor("f", topologyName="t")).encode()
    new["ns/q/manifests/9.yaml"] = plain_yaml.dump({**racks, "spec": {"levels": [{"nodeLabel": level}]}}).encode()
    assert said({}, new, "Job") == [
        ("info", "queue-holds", f"fits into the queue q: 2 pods of flavor f, placed by {level}")
    ]


def test_an_unchanged_queue_says_nothing_of_changed_runs_that_still_fit() -> None:
    assert said(tree(8, run("a", 3)), tree(8, run("a", 4)), "Job") == []


def test_a_new_run_that_waits_or_never_fits_says_so() -> None:
    assert said(tree(8, run("a", 6)), tree(8, run("a", 6), run("b", 3)), "Job") == [
        ("notice", "queue-holds", "waits for quota of the queue q when all of the queue are there at once")
    ]
    assert said(tree(8), tree(8, run("a", 9)), "Job") == [
        ("danger", "queue-holds", "its queue q can never hold it: flavor f has 8 cpu for it, and it needs 9")
    ]


def test_a_run_that_fits_again_says_so() -> None:
    assert said(tree(8, run("a", 9)), tree(8, run("a", 8)), "Job") == [
        ("info", "queue-holds", "fits into the queue q: 1 pod of flavor f")
    ]


def test_queues_that_the_tree_does_not_define_are_not_judged() -> None:
    assert said(tree(8, local=False), tree(8, run("a", 9), local=False), "Job") == []
    assert said(tree(8, run("a", 9, queue="other")), tree(9, run("a", 9, queue="other")), "Job") == []


def test_a_removed_queue_names_no_runs() -> None:
    old = tree(8, run("a", 3))
    new = {path: data for path, data in old.items() if not path.startswith("ns/q/")}
    assert said(old, new, "ClusterQueue") == []


def test_a_cohort_that_leaves_another_one_names_what_no_longer_fits() -> None:
    def changed(parent: str) -> dict[str, bytes]:
        bodies = [
            flavor("f"),
            *queue("q", ("f", [amount("cpu", 4), amount("memory", "1Gi")]), cohort="a"),
            *queue("r", ("f", [amount("cpu", 6), amount("memory", "1Gi")]), cohort="b"),
            cohort("a", parent),
            cohort("b", "top"),
            run("j", 7),
        ]
        return {f"ns/q/manifests/{number}.yaml": plain_yaml.dump(body).encode() for number, body in enumerate(bodies)}

    assert said(changed("top"), changed("other"), "Cohort") == [
        (
            "danger",
            "queue-quota",
            "Job j no longer fits, and waits forever once it is queued: flavor f has 4 cpu for it, and it needs 7",
        )
    ]
