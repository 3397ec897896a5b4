"""`kaigen check` and `kaigen diff` say what the webhooks of LeaderWorkerSet, JobSet, Kueue and KEDA say.

Differences that are meant are in `api_differences.yaml`, with reasons.
"""

from __future__ import annotations

import copy
import json
import random
import re
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from kaigen.config.cluster import ClusterVersions
from kaigen.config.settings import Config
from kaigen.diff.compare import compare
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.queues import PRIORITY_LABEL, QUEUE_LABEL, is_queued
from tests.cluster.api_mutations import Mutation, Mutator, bases, values_of
from tests.cluster.client import ApiError, Client, Object, kind_of
from tests.cluster.differential import (
    judge,
    kaigen_errors,
    placed,
    report,
    sample,
    server_refusal,
    unchanged,
    unexplained,
)
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.plane import Plane
from tests.cluster.tools.parts import module_of
from tests.unit.check.controller_rules import CASES
from tests.unit.check.example_objects import example
from tests.unit.check.mutations import at, place
from tools.facts import sources

pytestmark = pytest.mark.engine

CHANGED = ("LeaderWorkerSet", "JobSet", "ClusterQueue", "LocalQueue", "ResourceFlavor")
KINDS = (*CHANGED, "ScaledObject", "TriggerAuthentication")
"""KEDA's webhooks look at an object alone, also when it changes."""
OBJECTS, UPDATES = 700, 12


@pytest.fixture
def webhooks(plane: Plane, groups: GroupControllers, namespace: str) -> str:
    """A namespace on a plane with the webhooks of all controllers, and the newer Kueue."""
    plane.set_pod_security(namespace, "privileged")
    groups.start_leader_worker_set()
    groups.start_job_set()
    groups.start_keda_webhooks()
    groups.start_kueue()
    return namespace


def test_check_and_the_webhooks_agree_on_valid_and_changed_objects(plane: Plane, webhooks: str) -> None:
    mutations = [*unchanged(*KINDS), *sample(seed=2, count=OBJECTS, kinds=KINDS)]
    verdicts = list(judge(plane.client, webhooks, mutations))
    left = unexplained(verdicts)
    assert not left, f"{len(left)} of {len(verdicts)} objects differ without a reason:\n{report(left)}"
    assert sum(bool(each.server) for each in verdicts) > len(verdicts) // 4


def test_the_webhooks_refuse_what_the_rules_of_check_refuse(plane: Plane, webhooks: str) -> None:
    accepted = [case for case in CASES if not server_refusal(plane.client, placed(case.body()), webhooks)]
    assert [(case.kind, case.field, case.message) for case in accepted] == []


def is_judged(body: Object) -> bool:
    """Return whether the controllers' webhooks see an object: one of their kinds, or in a queue."""
    return body.get("kind") in OWN_KINDS or is_queued(body)


OWN_KINDS = {*KINDS, "Topology", "WorkloadPriorityClass", "ScaledJob", "ClusterTriggerAuthentication"}


SITES = {"jobset": "v0.8.1", "kueue": "v0.6.3"}
"""The last versions whose modules have the examples of the project's site, which is a module of its own today."""


def examples(program: str, version: str = "") -> list[Mutation]:
    """Return the objects in the YAML files of a controller's module, but its own definitions.

    Args:
        program: the controller.
        version: of the module; empty for the one that it is built from.
    """
    module, built = module_of(program)
    archive, _ = sources.module_archive(module, version or built)
    found = []
    with zipfile.ZipFile(archive) as files:
        for name in (each for each in files.namelist() if each.endswith((".yaml", ".yml"))):
            try:
                bodies = list(yaml.safe_load_all(files.read(name)))
            except yaml.YAMLError:  # templates of charts
                continue
            for body in bodies:
                if isinstance(body, dict) and is_judged(body) and isinstance(body.get("metadata"), dict):
                    found.append(Mutation(kind_of(body), name, named(body, body["metadata"].get("name", "generated"))))
    return found


def served(client: Client) -> set[str]:
    """Return the API versions of custom kinds that the API server serves."""
    found = [kind["spec"] for kind in client.objects("apiextensions.k8s.io/v1/CustomResourceDefinition")]
    return {f"{spec['group']}/{each['name']}" for spec in found for each in spec["versions"] if each["served"]}


@pytest.mark.parametrize(("program", "count"), [("lws", 16), ("jobset", 20), ("kueue", 27), ("keda-webhooks", 4)])
def test_check_and_the_webhooks_agree_on_the_examples_of_the_projects(
    plane: Plane, webhooks: str, program: str, count: int
) -> None:
    every = examples(program) + (examples(program, SITES[program]) if program in SITES else [])
    versions = {"batch/v1", *served(plane.client)}
    found = [each for each in every if each.body["apiVersion"] in versions]
    assert len(found) >= count
    left = unexplained(judge(plane.client, webhooks, found))
    assert not left, report(left)


def named(body: Object, name: str) -> Object:
    metadata = {key: value for key, value in body["metadata"].items() if key not in ("namespace", "generateName")}
    return {**body, "metadata": {**metadata, "name": name}}


def predicted(old: Object, new: Object, kueue: str) -> str:
    """Return what `kaigen diff` says of a change if it says that it is rejected; empty if not."""
    trees = [{"n/a/manifests/a.yaml": json.dumps(body).encode()} for body in (old, new)]
    change = compare(*trees, settings={"": Config(cluster=ClusterVersions(kueue=kueue))})
    said = [effect.text for app in change.apps for obj in app.objects for effect in obj.effects]
    return "; ".join(text for text in said if "will be rejected" in text)


def refused(client: Client, body: Object, namespace: str) -> str:
    """Return why the update of an object that exists is refused; empty where it is accepted."""
    params = {"fieldManager": "kaigen-tests", "force": "true", "dryRun": "All"}
    path = client.path(kind_of(body), body["metadata"]["name"], namespace)
    try:
        client.request("PATCH", path, body, params, "application/apply-patch+yaml")
    except ApiError as error:
        return error.message
    return ""


EMPTY = re.compile(r" (null|\{\}|\[\])(;|$)|emptied")
"""Changes that a controller does not see, because it reads the value like one that is not there."""


def test_diff_and_the_webhooks_agree_on_changes(plane: Plane, webhooks: str) -> None:
    client, found = plane.client, bases()
    mutator = Mutator(values_of(found), random.Random(3))
    pairs: list[tuple[Object, Mutation]] = []
    for number, body in enumerate(each for each in found if each["kind"] in CHANGED):
        old = named(body, f"old-{number}")
        client.apply(old, webhooks)
        changes = [each for each in mutator.mutations(old, UPDATES) if not EMPTY.search(each.change)]
        pairs += [(old, each) for each in changes if not kaigen_errors(each.body) and "metadata." not in each.change]

    def ask(pair: tuple[Object, Mutation]) -> str | None:
        old, new = pair[0], pair[1].body
        if server_refusal(client, named(new, f"new-{old['metadata']['name']}"), webhooks):
            return None
        return refused(client, new, webhooks)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, pairs))
    differ = []
    for (old, new), happened in zip(pairs, answers, strict=True):
        said = predicted(old, new.body, module_of("kueue")[1][1:])
        if happened is not None and bool(said) != bool(happened):
            differ.append(f"{old['kind']}, {new.change}: diff says {said!r}, and the API server {happened!r}")
    assert not differ, "\n".join(differ)
    assert sum(bool(each) for each in answers) > 10


Change = Callable[[Object], None]


def _label(key: str, value: str | None) -> Change:
    def change(body: Object) -> None:
        labels = body["metadata"]["labels"]
        labels.pop(key)
        if value is not None:
            labels[key] = value

    return change


def _field(path: str, value: object) -> Change:
    def change(body: Object) -> None:
        whole = place(path)
        at(body, whole[:-1])[whole[-1]] = value

    return change


def _pods(path: str, value: object) -> Change:
    def change(body: Object) -> None:
        for template in pod_templates(body):
            whole = (*template.spec_path, *place(path))
            at(body, whole[:-1])[whole[-1]] = value

    return change


KUEUES = ("kueue", "kueue-0.16")
QUEUED: dict[str, Change] = {
    "another queue": _label(QUEUE_LABEL, "other"),
    "no queue": _label(QUEUE_LABEL, None),
    "another priority": _label(PRIORITY_LABEL, "low"),
    "no priority": _label(PRIORITY_LABEL, None),
    "replicas": _field("spec.replicas", 2),
    "requests": _pods("containers[0].resources.requests.memory", "3Mi"),
    "ports": _pods("containers[0].ports", [{"containerPort": 7}]),
    "arguments": _pods("containers[0].args", ["x"]),
    "nodes": _pods("nodeSelector", {"example.com/rack": "a"}),
    "requests of the pods": _pods("resources", {"requests": {"cpu": "64"}, "limits": {"cpu": "64"}}),
}
SIZE = {"size": _field("spec.leaderWorkerTemplate.size", 3)}


@pytest.mark.parametrize("program", KUEUES)
def test_diff_and_the_webhooks_of_two_versions_of_kueue_agree_on_objects_in_a_queue(
    plane: Plane, webhooks: str, groups: GroupControllers, program: str
) -> None:
    groups.start_kueue(program)
    differ = []
    for kind in ("Deployment", "StatefulSet", "LeaderWorkerSet"):
        old = named(example(kind), f"queued-{kind.lower()}")
        old["metadata"]["labels"] = {QUEUE_LABEL: "nowhere", PRIORITY_LABEL: "high"}
        plane.client.apply(old, webhooks)
        for change, apply in (QUEUED | (SIZE if kind == "LeaderWorkerSet" else {})).items():
            new = copy.deepcopy(old)
            apply(new)
            said, happened = predicted(old, new, module_of(program)[1][1:]), refused(plane.client, new, webhooks)
            if bool(said) != bool(happened):
                differ.append(f"{kind}, {change}: diff says {said!r}, and Kueue {happened!r}")
    assert not differ, "\n".join(differ)
