"""What the writers of Argo CD's and Flux's objects know: the description, and facts about each app."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from kaigen.compile.field_expressions import HashedName
from kaigen.gitops.own_kinds import DATA_KINDS
from kaigen.kubernetes.manifest import mapping
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.schemas import is_cluster_scoped

if TYPE_CHECKING:
    from kaigen.compile.app import App, Rendered
    from kaigen.config.gitops_settings import ArgoCDSettings, FluxSettings, GitOpsSettings

AppKey = tuple[str, str]
"""Namespace and name of an app."""

NAME_MAX = 63
"""Longest name of an Application or Kustomization: Flux puts it into a label."""


class AppFacts(Struct, frozen=True):
    """What a syncer must know of one app.

    Attributes:
        namespace: folder and home of the app.
        name: its name, and that of its Helm release.
        source: the spec's file.
        version: of its chart.
        kinds: apiVersion and kind of its objects, sorted.
        namespaces: where its objects go, sorted; `""` stands for objects of the cluster.
        needs: apps that it waits for.
        deadline_s: longest time its Jobs may take, or its other pods to start, in seconds; 0 when one has no limit
            or there is none.
        scaled: apiVersion, kind and name of objects whose replicas a scaler sets.
        rules: what the Roles among its objects allow.
        binds: kind and name of the roles that its RoleBindings refer to.
        pod_security: the level that its pods need.
        encrypted: it holds files that SOPS encrypted, which stand among its manifests only.
        replaces: it has Jobs of fixed names, which must be replaced to change, and no data that would go too.
    """

    namespace: str
    name: str
    source: str = ""
    version: str = ""
    kinds: tuple[tuple[str, str], ...] = ()
    namespaces: tuple[str, ...] = ()
    needs: tuple[AppKey, ...] = ()
    deadline_s: int = 0
    scaled: tuple[tuple[str, str, str], ...] = ()
    rules: tuple[Mapping[str, Any], ...] = ()
    binds: tuple[tuple[str, str], ...] = ()
    pod_security: str = "restricted"
    encrypted: bool = False
    replaces: bool = False

    @property
    def key(self) -> AppKey:
        """Namespace and name."""
        return (self.namespace, self.name)

    @property
    def namespaced_kinds(self) -> list[tuple[str, str]]:
        """Group and kind of the objects that live in a namespace."""
        return sorted(
            {(group_of(version), kind) for version, kind in self.kinds if not _is_global(version, kind)}
        )

    @property
    def cluster_kinds(self) -> list[tuple[str, str]]:
        """Group and kind of the objects that do not."""
        return sorted(
            {(group_of(version), kind) for version, kind in self.kinds if _is_global(version, kind)}
        )


def group_of(api_version: str) -> str:
    """The API group of an apiVersion; empty for the core."""
    return api_version.rpartition("/")[0]


def _is_global(api_version: str, kind: str) -> bool:
    return bool(is_cluster_scoped(api_version, kind))


def facts_from(raw: Mapping[str, Any]) -> AppFacts:
    """Facts that were kept as JSON of their fields."""
    pairs = {name: tuple(map(tuple, raw[name])) for name in ("kinds", "needs", "scaled", "binds")}
    return AppFacts(**{**raw, **pairs, "namespaces": tuple(raw["namespaces"]), "rules": tuple(raw["rules"])})


def facts_digest(apps: Iterable[AppFacts]) -> str:
    """Return a digest of the facts about apps."""
    return sha256(json.dumps([to_builtins(item) for item in apps]).encode()).hexdigest()


def facts_of(app: App, objects: Sequence[Rendered], needs: Iterable[AppKey] = ()) -> AppFacts:
    """What the objects of an app tell.

    Args:
        app: the app.
        objects: as they are written.
        needs: apps that it waits for.
    """
    kinds: set[tuple[str, str]] = set()
    namespaces: set[str] = set()
    scaled: set[tuple[str, str, str]] = set()
    rules: list[Mapping[str, Any]] = []
    binds: set[tuple[str, str]] = set()
    deadlines: list[int] = []
    fixed_jobs = False
    for item in objects:
        body = item.body
        kind, version = body["kind"], body["apiVersion"]
        kinds.add((version, kind))
        namespaces.add("" if _is_global(version, kind) else body["metadata"].get("namespace", app.namespace))
        spec = body.get("spec") or {}
        if kind == "Job":
            deadlines.append(spec.get("activeDeadlineSeconds") or 0)
            metadata = item.object.body.get("metadata")
            name = metadata.get("name") if isinstance(metadata, Mapping) else None
            fixed_jobs |= not isinstance(name, HashedName)
        elif start := _start_seconds(body):
            deadlines.append(start)
        elif kind == "HorizontalPodAutoscaler" or kind == "ScaledObject":
            target = spec.get("scaleTargetRef") or {}
            scaled.add(
                (
                    target.get("apiVersion", "apps/v1"),
                    target.get("kind", "Deployment"),
                    target.get("name", ""),
                )
            )
        elif kind in {"Role", "ClusterRole"}:
            rules += body.get("rules") or []
        elif kind == "RoleBinding":
            role = body.get("roleRef") or {}
            binds.add((role.get("kind", ""), role.get("name", "")))
    held = {kind for _, kind in kinds}
    return AppFacts(
        namespace=app.namespace,
        name=app.name,
        source=app.source,
        version=app.version,
        kinds=tuple(sorted(kinds)),
        namespaces=tuple(sorted(namespaces)),
        needs=tuple(sorted(set(needs) - {(app.namespace, app.name)})),
        deadline_s=max(deadlines, default=0) if all(deadlines) else 0,
        scaled=tuple(sorted(scaled)),
        rules=tuple(rules),
        binds=tuple(sorted(binds)),
        pod_security=app.pod_security,
        encrypted=any("sops" in item.body for item in objects),
        replaces=fixed_jobs and not held & DATA_KINDS,
    )


_PLACING_S = 600
"""What a pod may take before its containers run: a node is made, images are pulled."""


def _start_seconds(body: Mapping[str, Any]) -> int:
    """How long pods may take until they are ready, in seconds; 0 for what has no startup probe."""
    longest = 0
    for template in pod_templates(body):  # type: ignore[arg-type]
        for container in containers(template):
            probe = mapping(container.body.get("startupProbe"))
            attempts, period = probe.get("failureThreshold", 3), probe.get("periodSeconds", 10)
            if probe and isinstance(attempts, int) and isinstance(period, int):
                longest = max(longest, attempts * period + _PLACING_S)
    return longest


class Delivery(Struct, frozen=True, dict=True):
    """One environment on its way to its clusters.

    Attributes:
        environment: its name; empty for none.
        charts: the apps are synced as charts.
        settings: how Argo CD and Flux sync it.
        apps: every app.
    """

    environment: str
    charts: bool
    settings: GitOpsSettings
    apps: tuple[AppFacts, ...]

    @property
    def argocd(self) -> ArgoCDSettings:
        """How Argo CD syncs; only for objects of Argo CD."""
        assert self.settings.argocd is not None
        return self.settings.argocd

    @property
    def flux(self) -> FluxSettings:
        """How Flux syncs; only for objects of Flux."""
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
        """Labels of every object made here."""
        own = {"kaigen.dev/environment": self.environment} if self.environment else {}
        return {**self.settings.labels, "app.kubernetes.io/managed-by": "kaigen", **own}

    @cached_property
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that the apps use."""
        return tuple(sorted({name for app in self.apps for name in app.namespaces if name}))

    def folder(self, *parts: str) -> str:
        """A folder of the tree in the repository."""
        return "/".join(part for part in (self.path, *parts) if part) or "."

    def name(self, *parts: str) -> str:
        """A name in a namespace that all environments may share: parts with dots between, no longer than a label."""
        name = ".".join(part for part in (self.environment, *parts) if part)
        if len(name) <= NAME_MAX:
            return name
        return f"{name[: NAME_MAX - 9].rstrip('-.')}-{sha256(name.encode()).hexdigest()[:8]}"

    @cached_property
    def depths(self) -> dict[AppKey, int]:
        """How many apps stand in a row before each, by what it waits for."""
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
        """Whether an app is synced as a chart: what is encrypted is not, since no template can hold it."""
        return self.charts and not app.encrypted

    def needs(self, app: AppFacts) -> list[AppKey]:
        """The apps of this delivery that an app waits for."""
        return [key for key in app.needs if key in self.depths]
