"""A strict API server takes everything that kaigen writes, in both forms, and Helm's whole life of a release."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaigen.dialects.registry import own_kinds
from kaigen.kubernetes.pods import pod_templates
from kaigen.pipeline.result import Compiled
from tests import helm
from tests.cases import cases, write_chart
from tests.cluster.apps import CLAIM, JOB, POD, add_gpu_node, case, demo, job_name
from tests.cluster.client import ApiError, Object, is_true
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.team import Team, changed

LEVELS = ("restricted", "baseline", "privileged")
ALWAYS_THERE = "default"
"""A namespace that cannot be deleted, and does not enforce a level."""


@pytest.fixture
def spaces(plane: Plane, namespace: str) -> Iterator[dict[str, str]]:
    """A namespace for each Pod Security level; what else a test makes in here goes with it."""
    made = {level: namespace if level == "restricted" else f"{namespace}-{level}" for level in LEVELS}
    for level in LEVELS[1:]:
        plane.make_namespace(made[level], pod_security=level)
    yield made
    for level in LEVELS[1:]:
        plane.client.delete("v1/Namespace", made[level])


def pods_of(obj: Object) -> Iterator[Object]:
    """Yield the pods that an object's controller creates."""
    if obj["kind"] == "Pod":
        return
    spec = obj.get("spec", {})
    owner = spec.get("leaderWorkerTemplate", spec)
    # The template does not list the volumes of volumeClaimTemplates.
    claimed = [{"name": claim["metadata"]["name"], "emptyDir": {}} for claim in owner.get("volumeClaimTemplates", [])]
    for template in pod_templates(obj):
        metadata = {**template.metadata, "generateName": "probe-"}
        pod: Object = {**template.spec, "volumes": [*template.spec.get("volumes", []), *claimed]}  # type: ignore[misc]
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


def is_hook(obj: Object) -> bool:
    return "helm.sh/hook" in obj["metadata"].get("annotations", {})


def make_what_it_names(plane: Plane, pod: Object, namespace: str) -> None:
    """Create the classes and the account that a pod names, without which it would be rejected for another reason."""
    account = pod["spec"].get("serviceAccountName")
    if account and plane.client.find("v1/ServiceAccount", account, namespace) is None:
        plane.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}, namespace)
    named: dict[str, tuple[str | None, dict[str, Any]]] = {
        "scheduling.k8s.io/v1/PriorityClass": (pod["spec"].get("priorityClassName"), {"value": 10}),
        "node.k8s.io/v1/RuntimeClass": (pod["spec"].get("runtimeClassName"), {"handler": "simulated"}),
    }
    for kind, (name, fields) in named.items():
        if name and plane.client.find(kind, name) is None:
            version, _, short = kind.rpartition("/")
            plane.client.create({"apiVersion": version, "kind": short, "metadata": {"name": name}, **fields})


def is_admitted(plane: Plane, pod: Object, namespace: str) -> bool:
    """Try to create a pod; False while the API server has not yet read a new PriorityClass into its cache."""
    try:
        plane.client.create(pod, namespace, dry_run=True)
    except ApiError as error:
        if "no PriorityClass with name" in str(error):
            return False
        raise
    return True


def apply_quietly(plane: Plane, obj: Object) -> Object | None:
    """Apply an object and its pods, which must be accepted without a warning.

    Returns:
        The object as it is kept, or None when it was made by this.
    """
    applied = plane.client.apply(obj)
    assert applied.warnings == (), f"{obj['kind']} {obj['metadata']['name']}"
    for pod in pods_of(obj):
        make_what_it_names(plane, pod, obj["metadata"]["namespace"])
        wait_until(partial(is_admitted, plane, pod, obj["metadata"]["namespace"]), "the class is known")
    return None if applied.created else applied.object


def scaled_by(objects: list[Object]) -> set[tuple[str, str]]:
    """Return kind and name of what the autoscalers among some objects scale, which may change its replicas any time."""
    targets = [found["spec"]["scaleTargetRef"] for found in objects if found["kind"] == "HorizontalPodAutoscaler"]
    return {(target["kind"], target["name"]) for target in targets}


def versions(objects: list[Object], scaled: set[tuple[str, str]]) -> dict[tuple[str, str], object]:
    """Return the generation of each object; what it wants except replicas where an autoscaler scales it."""
    found: dict[tuple[str, str], object] = {}
    for each in objects:
        key = (each["kind"], each["metadata"]["name"])
        wanted = {field: value for field, value in each.get("spec", {}).items() if field != "replicas"}
        found[key] = wanted if key in scaled else each["metadata"].get("generation", 0)
    return found


def check_both_forms(plane: Plane, item: Compiled, folder: Path) -> list[Object]:
    """Apply an app in both forms, and return its objects and the hooks of its chart."""
    bodies = [rendered.body for rendered in item.objects]
    # Accounts and claims first, as in a folder that is applied file by file in the order of its kustomization.
    for body in bodies:
        assert apply_quietly(plane, body) is None, "it was there before"
    made = [plane.client.apply(body).object for body in bodies]

    templated = helm.template(write_chart(folder, item), item.app.name, item.app.namespace)
    plain = [found for found in templated if not is_hook(found)]
    kept = [apply_quietly(plane, found) for found in plain]
    assert len(plain) == len(bodies)
    assert None not in kept, "the chart makes an object that the manifests do not have"
    scaled = scaled_by(bodies)
    assert versions([found for found in kept if found], scaled) == versions(made, scaled)
    hooks = [found for found in templated if is_hook(found)]
    watched = any(pod_templates(body) for body in bodies)
    assert hooks or not watched or item.spec is None or item.spec.entry not in own_kinds(), "no `helm test`"
    for found in sorted(hooks, key=lambda hook: int(hook["metadata"]["annotations"].get("helm.sh/hook-weight", 0))):
        apply_quietly(plane, found)
    return [*bodies, *hooks]


def remove(plane: Plane, objects: list[Object]) -> None:
    """Delete objects, which other cases may have too. A claim stays as long as a pod that mounts it."""
    named = [
        (f"{body['apiVersion']}/{body['kind']}", body["metadata"]["name"], body["metadata"].get("namespace", ""))
        for body in objects
    ]
    for each in named:
        plane.client.delete(*each)
    for each in named:
        plane.client.wait_gone(*each)


@pytest.mark.parametrize("name", sorted(cases()))
def test_every_object_is_accepted_as_manifest_and_chart(
    plane: Plane, spaces: dict[str, str], tmp_path: Path, name: str
) -> None:
    checked = 0
    made = {*spaces.values(), ALWAYS_THERE}
    for level in LEVELS:
        apps = case(cases()[name], spaces[level]).values()
        for item in apps:
            if item.app.lowest_pod_security != level:
                continue
            if item.app.namespace not in made:
                # Another case may have had it, and it takes a while to go.
                plane.client.wait_gone("v1/Namespace", item.app.namespace)
                plane.make_namespace(item.app.namespace, pod_security=level)
                made.add(item.app.namespace)
            elif item.app.namespace not in {*spaces.values(), ALWAYS_THERE}:
                plane.set_pod_security(item.app.namespace, level)
            objects = check_both_forms(plane, item, tmp_path)
            if item.app.namespace == ALWAYS_THERE:
                remove(plane, objects)
            checked += 1
    assert checked == len(case(cases()[name], "any"))
    for other in made - {*spaces.values(), ALWAYS_THERE}:
        plane.client.delete("v1/Namespace", other)


CHARTS = {"charts": "oci://registry.invalid/charts"}
SECRETS = {"secrets": {"externalSecrets": {"store": {"name": "vault"}}}}


@pytest.mark.accepted("GitRepository", "HelmRelease", "OCIRepository", "ExternalSecret", "Application")
def test_every_object_for_syncers_is_accepted(plane: Plane, namespace: str, tmp_path: Path) -> None:
    syncers: Object = {"argocd": {"namespace": namespace}, "flux": {"namespace": namespace}}
    for form, charts in (("chart", CHARTS), ("manifests", {})):
        team = Team(tmp_path, "https://git.invalid/team.git", "prod", {**syncers, **charts}, space=namespace)
        team.settings = {**SECRETS, "format": form}
        source = {**team.specs["qwen"]["spec"]["source"]["huggingFace"], "tokenSecret": {"name": "hub"}}
        team.specs["qwen"] = changed(team.specs["qwen"], source={"huggingFace": source})
        for path, text in team.files().items():
            if path.endswith(".yaml") and not path.endswith("kustomization.yaml") and "/chart/" not in path:
                # The API server warns of Argo CD's own finalizer, so warnings are not errors here.
                plane.client.apply(yaml.safe_load(text), force=True)


def test_a_pod_that_is_not_restricted_is_refused(plane: Plane, namespace: str) -> None:
    """What the other tests rest on: the namespace refuses what it should."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/root:1"}]},
    }
    with pytest.raises(Exception, match="violates PodSecurity"):
        plane.client.create(pod, namespace)


class Release:
    """A release of an app's chart."""

    def __init__(self, plane: Plane, item: Compiled, folder: Path) -> None:
        self.plane = plane
        self.name, self.namespace = item.app.name, item.app.namespace
        self.chart = write_chart(folder, item)

    def helm(self, command: str, *arguments: str) -> str:
        """Run a command of Helm on this release."""
        return self.plane.run("helm", command, self.name, *arguments, "--namespace", self.namespace).stdout

    def jobs(self) -> list[str]:
        """The names of its Jobs that are not being deleted."""
        found = self.plane.client.objects(JOB, self.namespace, f"app.kubernetes.io/instance={self.name}")
        return [job["metadata"]["name"] for job in found if "deletionTimestamp" not in job["metadata"]]


# A setting that the pod depends on, and a value.
CHANGES = {
    "qwen": "download.image=registry.invalid/downloader:2",
    "finetune": "image=registry.invalid/tune:2",
    "finetune-job": "image=registry.invalid/tune:2",
}


@pytest.mark.parametrize("name", sorted(demo("any")))
def test_helm_installs_upgrades_rolls_back_and_uninstalls(
    plane: Plane, namespace: str, tmp_path: Path, name: str
) -> None:
    add_gpu_node(plane)
    apps = demo(namespace)
    item = apps[name]
    if name == "finetune":
        for rendered in apps["qwen"].objects:
            plane.client.apply(rendered.body)
    release = Release(plane, item, tmp_path)
    first = job_name(item)

    release.helm("install", str(release.chart))
    assert release.jobs() == [first]
    plane.client.wait(JOB, first, namespace, partial(is_true, condition="Complete"), "complete")
    tested = json.loads(release.helm("status", "--output=json")) if release.helm("test") else {}
    assert tested["info"]["status"] == "deployed"
    assert {hook["last_run"]["phase"] for hook in tested["hooks"]} == {"Succeeded"}
    # What the test made is gone again.
    assert plane.client.find(POD, f"{name}-test", namespace) is None

    # The same once more is not a new run.
    uid = plane.client.get(JOB, first, namespace)["metadata"]["uid"]
    release.helm("upgrade", str(release.chart))
    assert plane.client.get(JOB, first, namespace)["metadata"]["uid"] == uid

    release.helm("upgrade", str(release.chart), "--set", CHANGES[name])
    plane.client.wait_gone(JOB, first, namespace)
    (second,) = release.jobs()
    assert second.startswith(f"{name}-")
    plane.client.wait(JOB, second, namespace, partial(is_true, condition="Complete"), "complete")

    release.helm("rollback", "2")
    plane.client.wait_gone(JOB, second, namespace)
    assert release.jobs() == [first]

    release.helm("uninstall")
    plane.client.wait_gone(JOB, first, namespace)
    claims = plane.client.objects(CLAIM, namespace, f"app.kubernetes.io/instance={name}")
    kept = {found["metadata"]["name"] for found in claims if "deletionTimestamp" not in found["metadata"]}
    assert kept == {
        rendered.body["metadata"]["name"]
        for rendered in item.objects
        if rendered.body["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }
