"""Input of the Argo CD and Flux writers: the environment to deliver and facts about each app."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from kaigen.compile.field_expressions import HashedName
from kaigen.gitops.own_kinds import DATA_KINDS
from kaigen.kubernetes.kind_table import find_kind
from kaigen.kubernetes.manifest import entries, mapping, text, type_of
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.queues import is_queued
from kaigen.kubernetes.runs import run_seconds
from kaigen.kubernetes.schemas import is_cluster_scoped

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.config.gitops_settings import ArgoCDSettings, FluxSettings, GitOpsSettings

AppKey = tuple[str, str]
"""Namespace and name of an app."""

NAME_MAX = 63
"""Longest name of an Application or Kustomization: Flux puts it into a label."""


class AppFacts(Struct, frozen=True):
    """Facts about one app that Argo CD and Flux need.

    Attributes:
        namespace: namespace of the app, and its folder in the tree.
        name: name of the app and its Helm release.
        source: file of the spec.
        version: version of its chart.
        kinds: apiVersion and kind of its objects, sorted.
        places: namespace, API group and kind of its namespaced objects, sorted.
        namespaces: namespaces of its objects, sorted; `""` for cluster-scoped objects.
        needs: apps that it waits for.
        deadline_s: longest time limit of its Jobs in seconds; 0 if one has no limit or there are none.
        start_s: longest time that its other pods may take to start, in seconds; 0 if it is not known, or a Job has no
            limit.
        queued: whether it has runs that wait in a queue of Kueue, suspended.
        scaled: apiVersion, kind and name of the objects that an autoscaler scales.
        rules: rules of its Roles, each with the namespace of the Role.
        binds: namespace of its RoleBindings, with kind and name of the roles that they refer to.
        pod_security: Pod Security level that its pods need.
        encrypted: whether it has files encrypted with SOPS; only its manifests include them.
        homeless: whether one of those files names no namespace, and no object is in another one than the app.
        replaces: whether it has Jobs with fixed names, which must be replaced to change, and no data that the
            replacement would delete.
    """

    namespace: str
    name: str
    source: str = ""
    version: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    namespaces: tuple[str, ...] = ()
    places: tuple[tuple[str, str, str], ...] = ()
    needs: tuple[AppKey, ...] = ()
    deadline_s: int = 0
    start_s: int = 0
    queued: bool = False
    scaled: tuple[tuple[str, str, str], ...] = ()
    rules: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    binds: tuple[tuple[str, str, str], ...] = ()
    pod_security: str = "restricted"
    encrypted: bool = False
    homeless: bool = False
    replaces: bool = False

    @property
    def key(self) -> AppKey:
        """The namespace and name."""
        return (self.namespace, self.name)

    @property
    def only_runs(self) -> bool:
        """Whether all its pods run to completion."""
        lifecycles = {find_kind(version, kind).lifecycle for version, kind in self.kinds} - {""}
        return lifecycles == {"run"}

    def kinds_in(self, namespace: str) -> list[tuple[str, str]]:
        """Return the group and kind of its objects in a namespace."""
        return [(group, kind) for place, group, kind in self.places if place == namespace]

    @property
    def namespaced_kinds(self) -> list[tuple[str, str]]:
        """The group and kind of its namespaced objects."""
        return sorted(
            {(group_of(version), kind) for version, kind in self.kinds if not _is_global(version, kind)}
        )

    @property
    def cluster_kinds(self) -> list[tuple[str, str]]:
        """The group and kind of its cluster-scoped objects."""
        return sorted(
            {(group_of(version), kind) for version, kind in self.kinds if _is_global(version, kind)}
        )


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


def _is_global(api_version: str, kind: str) -> bool:
    return bool(is_cluster_scoped(api_version, kind))


def facts_from(raw: Mapping[str, Any]) -> AppFacts:
    """Return facts from the JSON form of their fields."""
    pairs = {
        name: tuple(map(tuple, raw[name]))
        for name in ("kinds", "places", "needs", "scaled", "rules", "binds")
    }
    return AppFacts(**{**raw, **pairs, "namespaces": tuple(raw["namespaces"])})


def facts_digest(apps: Iterable[AppFacts]) -> str:
    """Return a digest of the facts about apps."""
    return sha256(json.dumps([to_builtins(item) for item in apps]).encode()).hexdigest()


def facts_of(
    app: App, objects: Sequence[Rendered], needs: Iterable[AppKey] = (), chart_version: str = ""
) -> AppFacts:
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
        if (limit := run_seconds(body)) is not None:
            deadlines.append(limit)
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
        egress: rules for connections to the proxies and mirrors of the environment.
    """

    environment: str
    charts: bool
    settings: GitOpsSettings
    apps: tuple[AppFacts, ...]
    egress: Sequence[Mapping[str, Any]] = ()

    @property
    def argocd(self) -> ArgoCDSettings:
        """The settings of Argo CD; requires `gitops.argocd`."""
        assert self.settings.argocd is not None
        return self.settings.argocd

    @property
    def flux(self) -> FluxSettings:
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
        return self.settings.repository

    @cached_property
    def branch(self) -> str:
        """Branch, tag or commit."""
        return self._filled(self.settings.branch)

    @cached_property
    def path(self) -> str:
        """Folder of the tree in the repository; empty for its root."""
        parts = self._filled(self.settings.path).split("/")
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
