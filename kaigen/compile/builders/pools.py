"""What leads requests to the pools of a Topology: a Service, a route with weights, and the Job that waits for pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.compile.app import Object
from kaigen.compile.builders import settings
from kaigen.compile.builders.access import role_and_binding
from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.jobs import Run, job
from kaigen.compile.builders.kubectl import kubectl_container, kubectl_pod
from kaigen.compile.builders.network import client_service
from kaigen.compile.builders.other_apps import find_spec, other_name
from kaigen.compile.builders.routes import WAVE, Share
from kaigen.compile.builders.workloads import SERVE
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Release, Tree
from kaigen.core.json_types import FieldPath
from kaigen.kinds.alias import Alias
from kaigen.kinds.exposure import AliasService
from kaigen.kinds.topology import Topology
from kaigen.kinds.versions import canary_name
from kaigen.kubernetes.manifest import mapping
from kaigen.kubernetes.metadata_keys import ALIAS_OF

WORKLOADS = {
    "Deployment": ("apps", "v1", "deployments"),
    "StatefulSet": ("apps", "v1", "statefulsets"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets"),
}
"""API group, version and plural of the kinds that run the pods of a Topology."""

_NAME, _INSTANCE, _COMPONENT = (f"app.kubernetes.io/{key}" for key in ("name", "instance", "component"))
_JOB = "canary"
_SUFFIX = f"-{_JOB}"
_PREFIX, _WAITING = f"{_JOB}.", "the pod that waits"
_WAIT = "30m"
_DEADLINE = "40m"
"""Time of all tries: the first ones fail if the pool is not in the cluster yet."""
_RETRIES = 6


class Answering(Struct, frozen=True):
    """The pods that answer the requests of a Service.

    Attributes:
        component: value of the component label of its pods that answer.
        labels: further labels that select them.
        target: port of the pods, by name or number.
        further_ports: numbers of further ports of its Service by name.
        more: further fields of its Service.
    """

    component: str = SERVE
    labels: Mapping[str, str] = field(default_factory=dict)
    target: int | str = "http"
    further_ports: Mapping[str, int] = field(default_factory=dict)
    more: Mapping[str, Tree] = field(default_factory=dict)


class Canary(Struct, frozen=True):
    """A second pool that answers a share of the requests.

    Attributes:
        name: name of its Topology.
        weight: its percentage, at least 1.
        port: port of its Service.
        answering: its pods.
        workloads: kind and name of what runs them.
        path: the field that names it.
    """

    name: str
    weight: int
    port: int
    answering: Answering
    workloads: Sequence[tuple[str, str]]
    path: FieldPath


class Serving(Struct, frozen=True):
    """What answers the requests for a Topology.

    Attributes:
        topology: the pool that serves.
        canary: name of the Topology of its next version; empty without one.
        weight: percentage of the requests that the next version gets.
    """

    topology: Topology
    canary: str = ""
    weight: int = 0


def workloads(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield kind, name and pod template of what runs the pods of a Topology."""
    for body in objects:
        kind, spec = str(body["kind"]), mapping(body.get("spec"))
        if kind in WORKLOADS:
            group = mapping(spec.get("leaderWorkerTemplate"))
            template = mapping(spec.get("template") or group.get("leaderTemplate"))
            yield kind, str(body["metadata"]["name"]), template


def find_serving(context: Context, namespace: str, name: str, origin: FieldPath) -> Serving:
    """Return what answers the requests for a Topology, also if its pools have names of their own.

    Args:
        context: has the specs of the run.
        namespace: namespace of the Topology.
        name: its name.
        origin: the spec's field that names it.

    Raises:
        ProblemError: there is no such Topology.
    """
    front = context.specs.find(Alias, namespace, name)
    if front is not None:
        serving = find_spec(Topology, context, namespace, front.spec.topology, origin)
        canary = front.spec.canary
        return Serving(serving, canary.topology, canary.weight) if canary is not None else Serving(serving)
    topology = find_spec(Topology, context, namespace, name, origin)
    if topology.spec.canary is None:
        return Serving(topology)
    return Serving(topology, canary_name(topology), topology.spec.canary.weight)


def answering_pods(context: Context, namespace: str, topology: str) -> Answering:
    """Return the pods that the Service of a Topology leads to, as it is rendered."""
    # None, too, for a Topology with errors, which are reported there.
    objects = context.objects_of and context.objects_of(("Topology", namespace, topology), context)
    named = (each for each in objects or () if each["metadata"]["name"] == topology)
    spec = next((each["spec"] for each in named if each["kind"] == "Service"), None)
    if spec is None:
        return Answering()
    first, *further = spec["ports"]
    early = "publishNotReadyAddresses"
    return Answering(
        component=spec["selector"][_COMPONENT],
        labels={key: each for key, each in spec["selector"].items() if key not in (_NAME, _INSTANCE, _COMPONENT)},
        target=first["targetPort"],
        further_ports={port["name"]: port["port"] for port in further},
        more={early: True} if spec.get(early) else {},
    )


def pods_behind(context: Context, namespace: str, topology: str) -> dict[str, str]:
    """Return the labels of the pods that the Service of a Topology leads to, in whichever release."""
    objects = context.objects_of and context.objects_of(("Topology", namespace, topology), context)
    for each in objects or ():
        if each["kind"] == "Service" and each["metadata"]["name"] == topology:
            return {key: value for key, value in each["spec"]["selector"].items() if key != _INSTANCE}
    return {_NAME: topology}


def find_canary(context: Context, namespace: str, name: str, weight: int, path: FieldPath) -> Canary | None:
    """Return the pool of a canary; None while it gets no requests, so that nothing depends on it.

    Args:
        context: has the specs of the run.
        namespace: namespace of its Topology.
        name: name of its Topology.
        weight: its percentage.
        path: the field that names it.

    Raises:
        ProblemError: there is no such Topology.
    """
    if not weight:
        # The app does not wait for the canary, but is compiled again when that is no more.
        apart = replace(context, specs=context.specs.recorder())
        find_spec(Topology, apart, namespace, name, path)
        context.specs.indirect.append(("Topology", namespace, name))
        return None
    topology = find_spec(Topology, context, namespace, name, path)
    objects = context.objects_of and context.objects_of(("Topology", namespace, name), context)
    found = tuple((kind, own) for kind, own, _ in workloads(objects or ()))
    answering = answering_pods(context, namespace, name)
    return Canary(name, weight, topology.spec.service.port, answering, found, path)


def leading_service(frame: Frame, given: AliasService, name: Tree, pods: Answering, *, wave: int = 0) -> Object:
    """Return a Service whose requests the pods of a Topology answer.

    Args:
        frame: the app that has the Service.
        given: the spec's block.
        name: value of the label of the pods with the name of the Topology.
        pods: the pods.
        wave: its sync wave.
    """
    return client_service(
        frame,
        pods.component,
        given,
        target=pods.target,
        further_ports=pods.further_ports,
        more=pods.more,
        # Without the label of the release: that of the Topology is another one, whose name the chart cannot know.
        selector={_NAME: name, _COMPONENT: pods.component, **pods.labels},
        notes={ALIAS_OF: name},
        wave=wave,
    )


def canary_service(frame: Frame, given: AliasService, canary: Canary) -> Object:
    """Return the Service of an app whose canary gets every request, after its pods are ready."""
    name = settings.text(
        "canary.topology",
        canary.name,
        f"Value of the label `{_NAME}` of the canary's pods: the name of their chart.",
        origin=canary.path,
    )
    return leading_service(frame, given, name, canary.answering, wave=WAVE)


def share_of(canary: Canary | None) -> Share | None:
    """Return the share of a route that a canary gets."""
    if canary is None:
        return None
    name = canary.name
    service = other_name("canary.service", f"Service of the Topology `{name}`", name, name, origin=canary.path)
    return Share(service, canary.port, canary.weight)


def waiting_job(frame: Frame, context: Context, canary: Canary | None) -> list[Object]:
    """Return the Job that is complete when the pods of a canary are ready: the route comes in a later sync wave.

    Its name depends on the pool and not on the weight, so that the weight of pods that fail can be lowered.
    """
    if canary is None or not canary.workloads:
        return []
    containers: list[Tree] = []
    rules: list[Tree] = []
    for number, (kind, name) in enumerate(canary.workloads, 1):
        key = "canary.workload" if number == 1 else f"canary.workload{number}"
        known = other_name(key, f"{kind} of the Topology `{canary.name}`", canary.name, name, origin=canary.path)
        containers.append(_waiting(context, number, kind, known))
        group, _, plural = WORKLOADS[kind]
        # `kubectl rollout status` lists and watches the one object.
        rules.append(
            {
                "apiGroups": [group],
                "resources": [plural],
                "resourceNames": [known],
                "verbs": ["get", "list", "watch"],
            }
        )
    account = Release(_SUFFIX)
    pod: Tree = kubectl_pod(_PREFIX, _WAITING, account, containers)
    run = Run(
        frame=frame,
        role="job-canary",
        component=_JOB,
        wave=WAVE - 1,
        pod={},
        # An Alias has no settings of its pods. The name is not that of the app, whose budget would select the pod: the
        # status of a budget with a pod of a Job is an error, and Argo CD waits until it is none.
        template={"metadata": {"labels": {_NAME: account, _COMPONENT: _JOB}}, "spec": pod},
        retries=_RETRIES,
        deadline=_DEADLINE,
        origin=(),
        prefix=_PREFIX,
        suffix=_SUFFIX,
    )
    return [
        Object(
            role="serviceaccount-canary",
            body={
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": frame.metadata(_SUFFIX, _JOB),
                "automountServiceAccountToken": False,
            },
        ),
        *role_and_binding(frame, _SUFFIX, _JOB, rules, account, role_suffix=_SUFFIX),
        job(run),
    ]


def _waiting(context: Context, number: int, kind: str, name: Expr) -> Tree:
    """Return the container that waits until a workload has all of its new pods, and these are ready."""
    word = kind.lower()
    args: list[Tree] = ["rollout", "status", f"--timeout={_WAIT}", word, name]
    if kind == "LeaderWorkerSet":
        args = ["wait", "--for=condition=Available", f"--timeout={_WAIT}", word, name]
    own = "wait" if number == 1 else f"wait-{number}"
    return kubectl_container(_PREFIX, _WAITING, own, args, context)
