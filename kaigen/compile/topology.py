"""The kind `Topology`: what serves, behind a Service, on one node or many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from kaigen.catalog.engines import Engine, get_engine, startup_seconds
from kaigen.catalog.presets import Preset
from kaigen.compile.app import App, Labels, Note, Object, Setting, SpecPath, Tree, collect_settings
from kaigen.compile.bricks import settings
from kaigen.compile.bricks.devices import claim_template
from kaigen.compile.bricks.frame import POD_SECURITY, Frame
from kaigen.compile.bricks.jobs import readiness_test, seconds
from kaigen.compile.bricks.monitoring import pod_monitor
from kaigen.compile.bricks.network import headless_service, network_policy, service
from kaigen.compile.bricks.nodes import NODES_LABEL, Wanted, node_pool, nodes_value
from kaigen.compile.bricks.pods import Granted, grant, placement_fields, pod_security, pull_secrets
from kaigen.compile.bricks.routes import inference_pool, route_objects
from kaigen.compile.bricks.scaling import Target, disruption_budget, scaler
from kaigen.compile.context import Context
from kaigen.compile.finish import finish, frame_of
from kaigen.compile.problems import Problems, SpecProblem
from kaigen.compile.serving.engine import MASTER_PORT, check_arguments
from kaigen.compile.serving.fields import check_fields, without_effect
from kaigen.compile.serving.nodes import node_requirements, own_labels
from kaigen.compile.serving.parallel import Parallel, choose_ray, engine_version, gpus_of, spread
from kaigen.compile.serving.pods import LWS_PLACE, PodMaker, set_place
from kaigen.compile.serving.sizing import GIB, preset_bytes, size
from kaigen.compile.serving.weights import (
    CACHE,
    Consumer,
    Weights,
    adapter_weights,
    model_weights,
    pulled,
)
from kaigen.compile.serving.workloads import (
    SERVE,
    Fleet,
    deployment,
    groups_of_sets,
    leader_worker_set,
    stateful_set,
)
from kaigen.kinds.blocks import Image, Placement
from kaigen.kinds.compat import ServingNaming
from kaigen.kinds.serving import Karpenter, Provisioning, PulledModel, ServedModel
from kaigen.kinds.topology import Topology

_ORDER = (
    "image",
    "imagePullPolicy",
    "imagePullSecrets",
    "command",
    "args",
    "engineArgs",
    "contextLength",
    "concurrency",
    "quantization",
    "env",
    "replicas",
    "resources",
    "model",
    "download",
    "service",
    "route",
    "inferencePool",
    "autoscaling",
    "rollout",
    "disruption",
    "startup",
    "progressDeadlineSeconds",
    "podSpec",
)
_QUEUE = "kueue.x-k8s.io/queue-name"
_SPREAD: Mapping[str, Any] = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "ScheduleAnyway",
}


def compile_topology(
    topology: Topology, context: Context, problems: Problems, naming: ServingNaming | None = None
) -> App:
    """The app of a Topology.

    Args:
        topology: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: takes what is wrong with it.
        naming: names of a foreign system.
    """
    app = _TopologyCompiler(topology, context, problems).app()
    if naming is None:
        return app
    from kaigen.compile.serving.naming import renamed

    return renamed(app, naming)


class _TopologyCompiler:
    """One compilation; its methods each make one part."""

    def __init__(self, topology: Topology, context: Context, problems: Problems) -> None:
        self.metadata = topology.metadata
        self.spec = topology.spec
        self.context = context
        self.problems = problems
        self.frame: Frame = frame_of(topology.metadata)
        self.namespace = topology.metadata.namespace or context.namespace
        self.mode = "template" if self.spec.template is not None else self.spec.engine
        check_fields(self.spec, self.mode, problems)
        if self.mode in {"vllm", "transformers"}:
            check_arguments(self.spec, problems)
        self.engine: Engine = get_engine("container" if self.mode == "template" else self.spec.engine)
        own_image = self.spec.image is None
        self.sized = size(self.spec, self.mode, problems, own_image=own_image)
        self.parallel = self._parallel()
        nothing = Granted({}, {}, [], "", "", 0, False, "", "")
        self.granted = problems.attempt(self._grant, nothing)
        self.weights = problems.attempt(self._weights, Weights())
        self.adapters = adapter_weights(self.spec.adapters, self._consumer)

    # What the spec comes to.

    @cached_property
    def _image(self) -> tuple[Image, tuple[str, ...]]:
        """The engine's image, and where it stands in the spec; nowhere for kaigen's own."""
        if self.spec.image is not None:
            return self.spec.image, ("spec", "image")
        if not self.engine.image:
            self.problems.error(
                "KG0341", "a container needs an `image`", ("spec", "engine"), "name it in `image`"
            )
            return "unknown", ()
        return self.context.images[self.engine.image], ()

    @cached_property
    def _gpus(self) -> int:
        """Devices of one pod: those that are asked for, else the plan's, else the instance type's, else vLLM's one."""
        default = 1 if self.mode == "vllm" else 0
        if self.sized.plan is not None:
            default = self.sized.plan.gpus_per_node
        elif self.sized.instance is not None and self.mode != "template":
            default = self.sized.instance.count
        return gpus_of(self.spec.resources, default)

    @cached_property
    def _most(self) -> int:
        """Most copies that there may be."""
        return self.spec.autoscale.max if self.spec.autoscale else self.spec.shape.replicas

    @cached_property
    def _karpenter(self) -> Karpenter | None:
        given = self.spec.provisioning
        if isinstance(given, Provisioning):
            return given.karpenter
        return Karpenter() if given == "karpenter" else None

    def _parallel(self) -> Parallel:
        spec = self.spec
        if self.mode == "template":
            return Parallel()
        if self.mode != "vllm":
            if (spec.shape.nodes or 1) > 1:
                choose_ray(Parallel(nodes=2), spec.shape, self.engine, None, self.problems)
            return Parallel(gpus=self._gpus)
        plan = self.sized.plan
        if plan is not None:
            layout = plan.layout
            found = Parallel(layout.nodes, self._gpus, layout.tp, layout.pp, layout.dp)
        else:
            found = spread(spec.shape, spec.resources, self._gpus, self.problems)
        version = engine_version(spec.engine_version, self._image[0])
        ray = choose_ray(found, spec.shape, self.engine, version, self.problems)
        if found.nodes == 1 and spec.shape.groups is not None:
            at = ("spec", "shape", "groups")
            without_effect(self.problems, "groups", at, "on one node", "leave it out")
        return Parallel(found.nodes, found.gpus, found.tensor, found.pipeline, found.data, ray)

    def _grant(self) -> Granted:
        resources = self.spec.resources
        instance = self.sized.instance
        if instance is not None and self._gpus > instance.count:
            raise SpecProblem(
                "KG0344",
                f"{self._gpus} GPUs are asked for of nodes that have {instance.count}",
                ("spec", "resources", "gpus"),
                "spread it over several nodes with `shape.nodes`, or take a larger `instanceType`",
            )
        update: dict[str, Any] = {}
        if resources.gpus is None and self._gpus:
            update["gpus"] = self._gpus
        if self._pulled_size and resources.ephemeral_storage is None and self.spec.storage is None:
            # What is pulled into scratch space counts as the pod's; room for it must be on the node.
            update["ephemeral_storage"] = f"{-(-self._pulled_size * 11 // (10 * GIB)) + 20}Gi"
        if self.mode == "vllm" and resources.shared_memory is None:
            update["shared_memory"] = f"{2 * self._gpus if self._gpus > 1 else 1}Gi"
        cpu, memory = self._defaults()
        resource = instance.gpu.resource if instance is not None else ""
        wanted = resources.model_copy(update=update)
        return grant(wanted, self.context, cpu=cpu, memory=memory, resource=resource)

    @cached_property
    def _pulled_size(self) -> int:
        """Bytes that each pod pulls from the Hub, as far as they are known."""
        spec = self.spec
        pulls = spec.model is None or (
            isinstance(spec.model, ServedModel) and spec.model.hugging_face is not None
        )
        return preset_bytes(self.sized.preset) if self.sized.preset is not None and pulls else 0

    def _defaults(self) -> tuple[str, str]:
        """CPU and memory where the spec names none: little enough for the smallest nodes with such GPUs."""
        gpus = self._gpus
        if gpus:
            cpu, memory = 2 * gpus, 12 if gpus == 1 else 16 * gpus
        else:
            cpu, memory = (4, 16) if self.mode == "vllm" else (2, 8)
        preset = self.sized.preset
        if self.mode == "transformers" and preset is not None:
            # kaigen's server has all weights in memory before a GPU has them.
            memory = max(memory, -(-preset_bytes(preset) * 11 // (10 * GIB)) + 4)
        return str(cpu), f"{memory}Gi"

    @cached_property
    def _consumer(self) -> Consumer:
        return Consumer(
            context=self.context,
            problems=self.problems,
            namespace=self.namespace,
            engine=self.mode,
            nodes=self.parallel.nodes,
            replicas=self._most,
            has_gpu=self.granted.has_gpu,
            transfer=self.spec.transfer,
        )

    def _weights(self) -> Weights:
        spec = self.spec
        if self.mode == "template":
            return Weights()
        preset = self.sized.preset
        if spec.token_secret is not None and (spec.preset is None or spec.model is not None):
            hint = "say it where the weights are named" if spec.model is not None else "leave it out"
            at = ("spec", "tokenSecret")
            without_effect(self.problems, "tokenSecret", at, "without a `preset` that is pulled", hint)
        if spec.model is not None:
            found = model_weights(spec.model, self._consumer)
            if preset is not None:
                found = replace(found, size=preset_bytes(preset))
        elif preset is not None:
            return self._preset_weights(preset)
        elif spec.preset is not None or self.mode == "container":
            return Weights()
        else:
            raise SpecProblem(
                "KG0341",
                "it is not said what is served",
                ("spec",),
                "name a Model in `model`, or another source of weights there",
            )
        return found

    def _preset_weights(self, preset: Preset) -> Weights:
        spec, at = self.spec, ("spec", "preset")
        if preset.gated and spec.token_secret is None and "HF_TOKEN" not in spec.env:
            self.problems.error(
                "KG0355",
                f"the repository of `{preset.name}` is gated, and there is no token for it",
                at,
                "name a Secret with a Hub token in `tokenSecret`, or fetch it as a Model",
            )
        if not preset.revision:
            self.problems.warning(
                "KG0310",
                f"the catalogue pins no commit of {preset.repo}",
                at,
                "name the repository and its commit in `model.huggingFace`",
            )
        hub = PulledModel(
            repo=preset.repo, revision=preset.revision or "main", token_secret=spec.token_secret
        )
        return pulled(hub, at, self._consumer, size=preset_bytes(preset), chosen=False)

    @cached_property
    def _startup(self) -> int:
        given = self.spec.probes.startup
        return seconds(given) if given else startup_seconds(self.weights.size, self.weights.source)

    # The app.

    def app(self) -> App:
        """The app."""
        spec, frame = self.spec, self.frame
        self._check_transfer()
        objects: list[Object] = []
        karpenter = self._karpenter
        if karpenter is not None and self.mode != "template":
            pool = self.problems.attempt(lambda: self._node_pool(karpenter), None)
            objects += [pool] if pool else []
        if self.granted.device_class:
            template = claim_template(frame, self.granted.device_class, self.granted.device_count, SERVE)
            objects.append(template)
        several = self.parallel.nodes > 1
        objects.append(
            network_policy(
                frame,
                among_themselves=several,
                port=self._port,
                allow_from=spec.service.allow_from,
                origin=("spec", "service", "allowFrom"),
            )
        )
        objects.append(self._service())
        workloads = self._workloads()
        if any(item.kind == "StatefulSet" for item in workloads):
            port, name = (MASTER_PORT, "rendezvous") if several else (self._port, "http")
            objects.append(
                headless_service(frame, None if several else SERVE, port, role="service-nodes", name=name)
            )
        objects += workloads
        objects += self._scaling(workloads[0]) if workloads else []
        if spec.monitoring is not None:
            objects.append(pod_monitor(frame, SERVE, spec.monitoring, self.engine.metrics_path))
        if spec.inference_pool is not None:
            objects.append(inference_pool(frame, SERVE, spec.inference_pool, self._port))
        if spec.route is not None:
            pool_used = spec.inference_pool is not None
            objects += route_objects(frame, spec.route, service_port=self._service_port, pool=pool_used)
        minutes = -(-self._startup // 60) + 10
        objects += readiness_test(frame, workloads[0], self.context, minutes=minutes) if workloads else []
        return finish(
            "Topology",
            self.metadata,
            frame,
            self.context,
            objects,
            collect_settings(objects, _ORDER),
            self.problems,
            pod_security=spec.security.pod_security,
            summary=self._summary,
            app_version=self.weights.revision,
            notes=tuple(self._notes()),
            elsewhere=self._elsewhere(),
        )

    @property
    def _summary(self) -> str:
        if self.mode == "template":
            return "Serves what its pod template runs, behind a Service."
        what = {"vllm": "vLLM", "transformers": "kaigen's own server", "container": "a container"}[self.mode]
        return f"Serves a model by {what}, behind a Service."

    def _notes(self) -> list[Note]:
        if self.mode == "template":
            return []
        notes = []
        if self.mode == "vllm" and self._gpus:
            notes.append(Note(f"One copy is {self.parallel.words}.", ("spec", "shape")))
        if self.sized.plan is not None:
            notes.append(Note(f"It fits: {self.sized.words}.", ("spec", "preset")))
            notes += [Note(f"{_sentence(text)}.", ("spec", "preset")) for text in self.sized.plan.notes]
        size = self.weights.size
        most = "" if self.sized.preset is not None else "at most "
        known = f"{most}{size / GIB:.1f} GiB of weights" if size else "weights of a size that nobody said"
        why = "as the spec says" if self.spec.probes.startup else f"for {known}"
        notes.append(
            Note(f"A pod may take {self._startup // 60} minutes to be ready, {why}.", ("spec", "probes"))
        )
        return notes

    def _elsewhere(self) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        if self.spec.inference_pool is not None:
            found.append(("Service", self.spec.inference_pool.endpoint_picker))
        autoscale = self.spec.autoscale
        if autoscale and autoscale.prometheus and autoscale.prometheus.trigger_authentication:
            found.append(("TriggerAuthentication", autoscale.prometheus.trigger_authentication))
        return tuple(found)

    def _check_transfer(self) -> None:
        fetches = any(
            isinstance(container, Mapping) and str(container.get("name", "")).startswith("fetch-")
            for each in (self.weights, *self.adapters)
            for container in each.init
        )
        if "transfer" in self.spec.model_fields_set and not fetches and self.mode != "template":
            without_effect(
                self.problems,
                "transfer",
                ("spec", "transfer"),
                "where kaigen's downloader fetches nothing",
                "leave it out, or say it in the Model",
            )

    # Reaching it.

    @cached_property
    def _port(self) -> int:
        """The port that the engine listens on; of a template, the one that it says."""
        if self.mode != "template" or "port" in self.spec.model_fields_set:
            return self.spec.port
        for container in _containers(self.spec.template):
            ports = container.get("ports")
            for port in ports if isinstance(ports, list) else []:
                if isinstance(port, Mapping) and isinstance(port.get("containerPort"), int):
                    return int(port["containerPort"])
        self.problems.error(
            "KG0341",
            "the template names no port of a container, so nobody knows where it serves",
            ("spec", "template"),
            "add `ports: [{name: http, containerPort: …}]` to the container",
        )
        return self.spec.port

    @property
    def _service_port(self) -> Setting:
        return settings.count(
            "service.port", self.spec.service.port, "Port of the Service.", origin=("spec", "service", "port")
        )

    def _service(self) -> Object:
        given = self.spec.service
        more: dict[str, Tree] = {}
        if given.type == "LoadBalancer":
            if given.load_balancer_class:
                more["loadBalancerClass"] = given.load_balancer_class
            if given.load_balancer_source_ranges:
                more["loadBalancerSourceRanges"] = settings.strings(
                    "service.sourceRanges",
                    given.load_balancer_source_ranges,
                    "Networks that may connect.",
                    origin=("spec", "service", "loadBalancerSourceRanges"),
                )
        return service(
            self.frame,
            SERVE,
            type=Setting(
                "service.type",
                given.type,
                "Type of the Service.",
                {"enum": ["ClusterIP", "NodePort", "LoadBalancer"]},
                origin=("spec", "service", "type"),
            ),
            port=self._service_port,
            target=self._port if self.mode == "template" else "http",
            annotations=given.annotations,
            more=more,
        )

    # Nodes.

    @property
    def _nodes_value(self) -> str:
        return nodes_value(self.namespace, self.metadata.name)

    def _node_pool(self, karpenter: Karpenter) -> Object:
        spec = self.spec
        amounts = self.granted.requirements.get("limits", {})
        wanted = Wanted(
            value=self._nodes_value,
            requirements=node_requirements(spec.resources, self.granted, self.context.profile, self._gpus),
            nodes=(self._most + 1) * self.parallel.nodes,
            resource=next((name for name in amounts if "/" in name), ""),
            per_node=self._gpus,
            spot=spec.placement.spot,
            labels=own_labels(spec.placement.node_selector),
        )
        return node_pool(self.frame, karpenter, wanted, self.context)

    @cached_property
    def _scheduling(self) -> dict[str, Tree]:
        placement: Placement = self.spec.placement
        granted = self.granted
        update: dict[str, Any] = {}
        if self._karpenter is not None:
            # The nodes are told by the pool's own label; what they are like is the pool's business.
            granted = replace(
                granted,
                node_selector={NODES_LABEL: self._nodes_value},
                tolerations=[
                    *granted.tolerations,
                    {"key": NODES_LABEL, "operator": "Exists", "effect": "NoSchedule"},
                ],
            )
            update["spot"] = False
        if not placement.topology_spread and self._most > 1 and self.parallel.nodes == 1:
            update["topology_spread"] = [dict(_SPREAD)]
        if update:
            placement = placement.model_copy(update=update)
        nothing: dict[str, Tree] = {}
        return self.problems.attempt(
            lambda: placement_fields(self.frame, placement, self.context, granted), nothing
        )

    # Workloads.

    def _fleet(self) -> Fleet:
        spec = self.spec
        claims: tuple[Tree, ...] = ()
        if spec.storage is not None:
            claims = (self._claim(),)
        annotations: dict[str, str] = {}
        if spec.security.pod_security != "restricted":
            annotations[POD_SECURITY] = spec.security.pod_security
        for each in (self.weights, *self.adapters):
            annotations |= each.annotations
        pinned = self.weights.pinned or any(adapter.pinned for adapter in self.adapters)
        existing = self.granted.has_gpu and self._karpenter is None
        queue = spec.placement.queue
        return Fleet(
            frame=self.frame,
            labels={_QUEUE: queue} if queue else {},
            annotations=annotations,
            replicas=None if spec.autoscale else spec.shape.replicas,
            rollout=spec.rollout,
            # A second pod of a volume of one node, or of the only GPUs that there are, would wait for the first to go.
            surge=not pinned and not existing,
            startup=self._startup,
            claims=claims,
            retain=bool(spec.storage and spec.storage.retain),
        )

    def _claim(self) -> Tree:
        storage = self.spec.storage
        assert storage is not None
        at: SpecPath = ("spec", "storage")
        name = storage.storage_class_name
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CACHE},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": settings.text(
                    "storage.storageClassName",
                    self.context.profile.storage_class if name is None else name,
                    "StorageClass of each pod's volume; empty for the cluster's default. Cannot change in place.",
                    optional=True,
                    origin=(*at, "storageClassName"),
                ),
                "resources": {
                    "requests": {
                        "storage": settings.quantity(
                            "storage.size",
                            storage.size,
                            "Size of each pod's volume. Cannot change in place.",
                            origin=(*at, "size"),
                        )
                    }
                },
            },
        }

    def _workloads(self) -> list[Object]:
        spec, fleet = self.spec, self._fleet()
        if self.mode == "template":
            self._check_rollout("Deployment")
            return [self._from_template(fleet)]
        nothing: dict[str, Tree] = {}
        image, image_at = self._image
        images: list[Image] = [image, *([spec.transfer.image] if spec.transfer.image else [])]
        pulls = list(pull_secrets(*images))
        for each in (self.weights, *self.adapters):
            pulls += [{"name": name} for name in each.pull_secrets if {"name": name} not in pulls]
        maker = PodMaker(
            spec=spec,
            engine=self.engine,
            image=image,
            image_at=image_at,
            problems=self.problems,
            granted=self.granted,
            parallel=self.parallel,
            weights=self.weights,
            adapters=self.adapters,
            names=spec.served_names or [self.metadata.name],
            preset=self.sized.flags,
            preset_env=self.sized.env,
            startup=self._startup,
            scheduling=self._scheduling,
            security=self.problems.attempt(lambda: pod_security(spec.security), nothing),
            pull_secrets=pulls,
            owns_cache=spec.storage is not None,
        )
        if self.parallel.nodes == 1:
            self._check_rollout("StatefulSet" if fleet.claims else "Deployment")
            pod = maker.pod("single")
            return [stateful_set(fleet, pod) if fleet.claims else deployment(fleet, pod)]
        if self._by_sets:
            self._check_rollout("StatefulSet")
            copies = self._copies()
            leaders = {copy: maker.pod("leader", set_place(copy)) for copy in range(copies)}
            workers = {copy: maker.pod("worker", set_place(copy)) for copy in range(copies)}
            return groups_of_sets(fleet, self.parallel, copies, leaders, workers)
        self._check_rollout("LeaderWorkerSet")
        leader, worker = maker.pod("leader", LWS_PLACE), maker.pod("worker", LWS_PLACE)
        return [leader_worker_set(fleet, self.parallel, leader, worker)]

    @property
    def _by_sets(self) -> bool:
        groups = self.spec.shape.groups
        return not self.context.profile.leader_worker_set if groups is None else groups == "statefulSet"

    def _copies(self) -> int:
        """How many groups of StatefulSets; they cannot be scaled, since each is an object of its own."""
        spec = self.spec
        hint = "use LeaderWorkerSet: `shape.groups: leaderWorkerSet`"
        if spec.autoscale is not None:
            message = "nothing can scale copies that are StatefulSets of their own"
            self.problems.error("KG0353", message, ("spec", "autoscale"), hint)
            return 1
        if spec.shape.replicas == 0:
            message = "no copies that are StatefulSets of their own are no objects at all"
            self.problems.error("KG0353", message, ("spec", "shape", "replicas"), hint)
            return 1
        return spec.shape.replicas

    def _check_rollout(self, kind: str) -> None:
        given = self.spec.rollout
        at: SpecPath = ("spec", "rollout")
        if kind == "StatefulSet":
            for field, name in (("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable")):
                if field in given.model_fields_set:
                    on = (
                        "on pods that own a volume"
                        if self.parallel.nodes == 1
                        else "on groups of StatefulSets"
                    )
                    hint = "they are replaced one by one; leave it out"
                    without_effect(self.problems, name, (*at, name), on, hint)
        elif given.max_surge in (0, "0%") and given.max_unavailable in (0, "0%"):
            self.problems.error(
                "KG0351",
                "no pod may be added and none may go, so that no change could reach them",
                (*at, "maxUnavailable"),
                "allow one of the two",
            )

    def _from_template(self, fleet: Fleet) -> Object:
        template = self.spec.template
        assert template is not None
        metadata = template.get("metadata")
        given: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
        for part in sorted(template.keys() - {"metadata", "spec"}):
            self.problems.error(
                "KG0340",
                f"a pod template has no field `{part}`",
                ("spec", "template", part),
                "it has `metadata` and `spec`",
            )
        spec = template.get("spec")
        if not isinstance(spec, dict):
            raise_at = ("spec", "template")
            self.problems.error("KG0341", "the template has no `spec`", raise_at, "add it, with `containers`")
            spec = {}
        made = deployment(fleet, {})
        labels = self.frame.selector(SERVE)
        own = {**_texts(given.get("labels")), **labels.own}
        notes = {**_texts(given.get("annotations")), **fleet.annotations}
        pod: Setting = Setting(
            "podSpec", spec, "Spec of the pods.", settings.OBJECT, origin=("spec", "template", "spec")
        )
        whole: dict[str, Tree] = {
            "metadata": {
                "labels": Labels(labels.common, own, labels.helper),
                **({"annotations": notes} if notes else {}),
            },
            "spec": pod,
        }
        body = dict(made.body)
        body["spec"] = {**body["spec"], "template": whole}  # type: ignore[dict-item]
        return Object(role=made.role, body=body, wave=made.wave)

    def _scaling(self, workload: Object) -> list[Object]:
        spec, made = self.spec, []
        if self._most > 1:
            made.append(disruption_budget(self.frame, spec.disruption, self.parallel.nodes))
        elif spec.disruption is not None:
            on = "on one replica, whose node could not be drained"
            hint = "leave it out, or ask for more replicas"
            without_effect(self.problems, "disruption", ("spec", "disruption"), on, hint)
        autoscale = spec.autoscale
        if autoscale is not None:
            if "replicas" in spec.shape.model_fields_set:
                without_effect(
                    self.problems,
                    "replicas",
                    ("spec", "shape", "replicas"),
                    "where a scaler decides",
                    "say `autoscale.min` instead",
                )
            target = Target(str(workload.body["apiVersion"]), workload.kind, self.engine)
            made_scaler = self.problems.attempt(lambda: scaler(self.frame, autoscale, target), None)
            made += [made_scaler] if made_scaler else []
        return made


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _texts(value: object) -> dict[str, str]:
    """A mapping of texts, as labels and annotations are; the schema speaks of other values."""
    return {str(key): text for key, text in value.items()} if isinstance(value, Mapping) else {}


def _containers(template: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    spec = (template or {}).get("spec")
    found = spec.get("containers") if isinstance(spec, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []
