"""Input of the Argo CD and Flux writers: the environment to deliver and facts about each app."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from kaigen.compile.field_expressions import HashedName
from kaigen.gitops.facts import AppFacts, AppKey
from kaigen.kubernetes.kind_table import DATA_KINDS, find_kind
from kaigen.kubernetes.manifest import entries, mapping, text, type_of
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.queues import is_queued
from kaigen.kubernetes.requests import is_scaled_live
from kaigen.kubernetes.runs import run_seconds
from kaigen.kubernetes.schemas import is_cluster_scoped

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.config.gitops import ArgoCD, Cluster, Flux, GitOps

NAME_MAX = 63
"""Longest name of an Application or Kustomization: Flux puts it into a label."""


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


def _is_global(api_version: str, kind: str) -> bool:
    return bool(is_cluster_scoped(api_version, kind))


def only_runs(app: AppFacts) -> bool:
    """Return whether all pods of an app run to completion."""
    lifecycles = {find_kind(version, kind).lifecycle for version, kind in app.kinds} - {""}
    return lifecycles == {"run"}


def namespaced_kinds(app: AppFacts) -> list[tuple[str, str]]:
    """Return the group and kind of an app's namespaced objects."""
    return sorted({(group_of(version), kind) for version, kind in app.kinds if not _is_global(version, kind)})


def cluster_kinds(app: AppFacts) -> list[tuple[str, str]]:
    """Return the group and kind of an app's cluster-scoped objects."""
    return sorted({(group_of(version), kind) for version, kind in app.kinds if _is_global(version, kind)})


def facts_digest(apps: Iterable[AppFacts]) -> str:
    """Return a digest of the facts about apps."""
    return sha256(json.dumps([to_builtins(item) for item in apps]).encode()).hexdigest()


def facts_of(app: App, objects: Sequence[Rendered], needs: Iterable[AppKey] = (), chart_version: str = "") -> AppFacts:
    """Return the facts about an app and its objects.

    Args:
        app: the app.
        objects: its objects, as rendered; values of the wrong type are ignored.
        needs: the apps that it waits for.
        chart_version: version of its chart; the app's own version when empty.
    """
    kinds: set[tuple[str, str]] = set()
    namespaces: set[str] = set()
    places: set[tuple[str, str, str]] = set()
    scaled: set[tuple[str, str, str]] = set()
    rules: list[tuple[str, Mapping[str, Any]]] = []
    binds: set[tuple[str, str, str]] = set()
    deadlines: list[int] = []
    starts: list[int] = []
    fixed_jobs = False
    for item in objects:
        body = item.body
        kind, version = str(body["kind"]), str(body["apiVersion"])
        kinds.add((version, kind))
        place = text(mapping(body.get("metadata")).get("namespace")) or app.namespace
        if _is_global(version, kind):
            namespaces.add("")
        else:
            namespaces.add(place)
            places.add((place, group_of(version), kind))
        if is_scaled_live(body):
            scaled.add((version, kind, text(mapping(body.get("metadata")).get("name"))))
        if (limit := run_seconds(body)) is not None:
            # That of a TrainJob is in its TrainingRuntime.
            deadlines += [limit] if limit or kind != "TrainJob" else []
            metadata = item.object.body.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            fixed_jobs |= not isinstance(name, HashedName)
        elif start := _start_seconds(body):
            starts.append(start)
        elif type_of(body) in {"HorizontalPodAutoscaler.autoscaling", "ScaledObject.keda.sh"}:
            target = mapping(mapping(body.get("spec")).get("scaleTargetRef"))
            scaled.add(
                (
                    text(target.get("apiVersion")) or "apps/v1",
                    text(target.get("kind")) or "Deployment",
                    text(target.get("name")),
                )
            )
        elif type_of(body) == "Role.rbac.authorization.k8s.io":
            rules += [(place, rule) for _, rule in entries(body.get("rules"))]
        elif type_of(body) == "RoleBinding.rbac.authorization.k8s.io":
            role = mapping(body.get("roleRef"))
            binds.add((place, text(role.get("kind")), text(role.get("name"))))
    kind_names = {kind for _, kind in kinds}
    return AppFacts(
        namespace=app.namespace,
        name=app.name,
        source=app.source,
        version=chart_version or app.version,
        kinds=tuple(sorted(kinds)),
        namespaces=tuple(sorted(namespaces)),
        places=tuple(sorted(places)),
        needs=tuple(sorted(set(needs) - {(app.namespace, app.name)})),
        deadline_s=max(deadlines, default=0) if all(deadlines) else 0,
        start_s=max(starts, default=0) if all(deadlines) else 0,
        queued=any(is_queued(item.body) for item in objects),
        scaled=tuple(sorted(scaled)),
        rules=tuple(rules),
        binds=tuple(sorted(binds)),
        pod_security=app.lowest_pod_security,
        encrypted=any("sops" in item.body for item in objects),
        homeless=namespaces <= {app.namespace, ""} and any(_is_homeless(item.body) for item in objects),
        replaces=fixed_jobs and not kind_names & DATA_KINDS,
    )


def _is_homeless(body: Mapping[str, Any]) -> bool:
    """Return whether an object is encrypted with SOPS and names no namespace."""
    return "sops" in body and not mapping(body.get("metadata")).get("namespace")


_SCHEDULING_S = 600
"""Seconds allowed for a pod before its containers run: the node is created and images are pulled."""


def _start_seconds(body: Mapping[str, Any]) -> int:
    """Return how long pods may take to become ready, in seconds; 0 without a startup probe."""
    longest = 0
    for template in pod_templates(body):  # type: ignore[arg-type]
        for container in containers(template):
            probe = mapping(container.body.get("startupProbe"))
            attempts, period = probe.get("failureThreshold", 3), probe.get("periodSeconds", 10)
            if probe and isinstance(attempts, int) and isinstance(period, int):
                longest = max(longest, attempts * period + _SCHEDULING_S)
    return longest


class Delivery(Struct, frozen=True, dict=True):
    """One environment to deliver to its clusters.

    Attributes:
        environment: its name; empty for none.
        charts: whether the apps are synced as charts.
        settings: how Argo CD and Flux sync it.
        apps: every app.
        clusters: its clusters by name; empty for the cluster that Argo CD runs in.
        egress: rules for connections to the proxies and mirrors of the environment.
        quotas: hard limits of namespaces of tenants.
    """

    environment: str
    charts: bool
    settings: GitOps
    apps: tuple[AppFacts, ...]
    clusters: Mapping[str, Cluster]
    egress: Sequence[Mapping[str, Any]] = ()
    quotas: Mapping[str, Mapping[str, Any]] = {}

    @property
    def argocd(self) -> ArgoCD:
        """The settings of Argo CD; requires `gitops.argocd`."""
        assert self.settings.argocd is not None
        return self.settings.argocd

    @property
    def flux(self) -> Flux:
        """The settings of Flux; requires `gitops.flux`."""
        assert self.settings.flux is not None
        return self.settings.flux

    @property
    def service_account(self) -> str:
        """The account that syncs the apps of a namespace; empty for the account of Argo CD or Flux."""
        tenancy = self.settings.tenancy
        return (tenancy.service_account if tenancy else None) or ""

    def _filled(self, text: str) -> str:
        return text.replace("{env}", self.environment)

    @cached_property
    def repository(self) -> str:
        """URL of the Git repository."""
        return self.settings.repository or ""

    @cached_property
    def branch(self) -> str:
        """Branch, tag or commit."""
        return self._filled(self.settings.branch)

    @cached_property
    def path(self) -> str:
        """Folder of the tree in the repository; empty for its root."""
        parts = self._filled(self.settings.path or "").split("/")
        return "/".join(part for part in parts if part not in {"", "."})

    @cached_property
    def project(self) -> str:
        """Name of the Argo CD project."""
        return "-".join(part for part in (self.settings.project, self.environment) if part)

    @cached_property
    def labels(self) -> dict[str, str]:
        """Labels of every Argo CD and Flux object."""
        own = {"kaigen.dev/environment": self.environment} if self.environment else {}
        return {**self.settings.labels, "app.kubernetes.io/managed-by": "kaigen", **own}

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that the apps use."""
        return tuple(sorted({name for app in self.apps for name in app.namespaces if name}))

    def folder(self, *parts: str) -> str:
        """Return the path of a folder of the tree in the repository."""
        return "/".join(part for part in (self.path, *parts) if part) or "."

    def name(self, *parts: str) -> str:
        """Return a name with the environment as its first part, joined with dots and at most as long as a label."""
        name = ".".join(part for part in (self.environment, *parts) if part)
        if len(name) <= NAME_MAX:
            return name
        return f"{name[: NAME_MAX - 9].rstrip('-.')}-{sha256(name.encode()).hexdigest()[:8]}"

    @cached_property
    def depths(self) -> dict[AppKey, int]:
        """Length of the longest chain of apps that each app waits for."""
        needs = {app.key: app.needs for app in self.apps}
        depths: dict[AppKey, int] = {}

        def depth(key: AppKey, above: frozenset[AppKey]) -> int:
            if key not in depths:
                before = [each for each in needs[key] if each in needs and each not in above]
                depths[key] = 1 + max((depth(each, above | {key}) for each in before), default=-1)
            return depths[key]

        for key in needs:
            depth(key, frozenset())
        return depths

    def as_chart(self, app: AppFacts) -> bool:
        """Return whether an app is synced as a chart; encrypted apps are not, since no template can contain them."""
        return self.charts and not app.encrypted

    def needs(self, app: AppFacts) -> list[AppKey]:
        """Return the apps of this delivery that an app waits for."""
        return [key for key in app.needs if key in self.depths]
