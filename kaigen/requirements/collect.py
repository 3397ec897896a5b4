"""Collects what apps, and the objects for Argo CD and Flux, require of a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kaigen.catalog.catalog import Catalog
from kaigen.config.settings import FILE_NAME, Config
from kaigen.environments.patch import document_of
from kaigen.gitops.argocd.applications import IN_CLUSTER, destinations_of
from kaigen.gitops.delivery import Delivery, facts_of
from kaigen.gitops.files import sync_objects
from kaigen.gitops.layout import ARGOCD_FOLDER, FLUX_FOLDER
from kaigen.kubernetes.claims import created_volume
from kaigen.kubernetes.cluster_needs import DEFAULT_CLASS, cluster_needs, named_objects
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import Identity, Object, identity_of, mapping, text, type_of
from kaigen.kubernetes.object_kind import ObjectKind
from kaigen.kubernetes.pods import pod_templates
from kaigen.kubernetes.references import references_of
from kaigen.kubernetes.requests import most_replicas, pod_requests, requests_of
from kaigen.kubernetes.schemas import is_cluster_type
from kaigen.kubernetes.secrets import SECRET
from kaigen.pipeline.app_secrets import facts_of as secret_facts
from kaigen.requirements.model import Pod, Requirement, Requirements, Total, Use
from kaigen.secrets.expected import gather

if TYPE_CHECKING:
    from kaigen.diagnostics.diagnostic import Mark
    from kaigen.pipeline.result import Compilation, Compiled

_NAMESPACE = "Namespace"
_ACCOUNT = "ServiceAccount"
_BUILT_IN_NAMESPACES = ("default", "kube-system")
_NODE_POOL = "NodePool.karpenter.sh"
_DEFINITION = "CustomResourceDefinition.apiextensions.k8s.io"


def collect(compilation: Compilation, config: Config, apps: Sequence[str] = ()) -> Requirements:
    """Return what an environment requires of its cluster and does not create itself.

    Args:
        compilation: every app of the environment.
        config: its settings.
        apps: only what these apps require, `NAME` or `NAMESPACE/NAME`; everything when empty.
    """
    chosen = [item for item in compilation.apps if not apps or {item.app.name, _key(item)} & set(apps)]
    found = _Collector(_Provided(compilation, config))
    for item in chosen:
        found.add_app(item, config)
    for secret in gather(secret_facts(compilation.apps)):
        uses = [use for use in secret.uses if any(use.app == _key(item) for item in chosen)]
        if secret.maker is None and not secret.optional:
            for use in uses:
                found.add(SECRET, secret.name, Use(use.app, _place(use.mark)), secret.namespace, SECRET)
    if not apps:
        _add_syncers(found, compilation, config)
        found.add("Kubernetes", config.kubernetes, Use("", _config_place(config, ("kubernetes",))))
    return Requirements(
        config.environment,
        found.items(),
        tuple(_totals(chosen, compilation.apps, config.catalog)),
        tuple(_pods(chosen, config.catalog)),
        tuple(each.body for item in compilation.apps for each in item.objects if type_of(each.body) == _NODE_POOL),
    )


class _Provided:
    """What the repository creates."""

    def __init__(self, compilation: Compilation, config: Config) -> None:
        self._objects: set[Identity] = set()
        self._apis: set[tuple[str, str]] = set()
        for item in compilation.apps:
            for rendered in item.objects:
                self._objects.add(_in_namespace(identity_of(rendered.body), item.app.namespace))
                volume = created_volume(rendered.body)
                if volume is not None:
                    self._objects.add(_in_namespace(identity_of(volume.body), item.app.namespace))
                if identity_of(rendered.body).type == _DEFINITION:
                    spec = mapping(rendered.body.get("spec"))
                    kind = text(mapping(spec.get("names")).get("kind"))
                    self._apis.add((text(spec.get("group")), kind))
        tenancy = config.gitops.tenancy if config.gitops else None
        apps = [item.app.namespace for item in compilation.apps]
        self._namespaces = {*_BUILT_IN_NAMESPACES, *(apps if tenancy is not None and tenancy.namespaces else ())}
        self._account = tenancy.service_account if tenancy else None

    def __contains__(self, requirement: Requirement) -> bool:
        if requirement.kind == "API":
            version, _, kind = requirement.name.partition(" ")
            return (version.partition("/")[0], kind) in self._apis
        if requirement.kind == _NAMESPACE and requirement.name in self._namespaces:
            return True
        if requirement.kind == _ACCOUNT and requirement.name == self._account:
            return True
        type_ = requirement.type or requirement.kind
        row = KINDS.get(type_) or ObjectKind(type_)
        if requirement.name != DEFAULT_CLASS and row.has_built_in(requirement.name):
            return True
        return any(
            Identity(type_, namespace, requirement.name) in self._objects for namespace in {requirement.namespace, ""}
        )


class _Collector:
    """Requirements, each once, with the places that need them."""

    def __init__(self, provided: _Provided) -> None:
        self._provided = provided
        self._found: dict[tuple[str, str, str], Requirement] = {}
        self._uses: dict[tuple[str, str, str], dict[Use, None]] = {}

    def add(self, kind: str, name: str, use: Use, namespace: str = "", type_: str = "", supplier: str = "") -> None:
        """Add a place that requires something."""
        requirement = Requirement(kind, name, namespace, type_, supplier)
        key = (kind, namespace, name)
        if name and requirement not in self._provided:
            self._found.setdefault(key, requirement)
            self._uses.setdefault(key, {})[use] = None

    def items(self) -> tuple[Requirement, ...]:
        """Return every requirement with its places."""
        return tuple(
            Requirement(item.kind, item.name, item.namespace, item.type, item.supplier, tuple(self._uses[key]))
            for key, item in sorted(self._found.items())
        )

    def add_app(self, item: Compiled, config: Config) -> None:
        """Add what an app requires."""
        app = _key(item)
        for index, rendered in enumerate(item.objects):
            body: Object = rendered.body
            namespace = text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace
            for need in cluster_needs(body):
                mark, _ = item.written_at(index, need.path, need.text)
                self.add(need.kind, need.name, Use(app, _place(mark)), "", need.type, need.supplier)
            named = [(each.type, each.namespace, each.name, each.path) for each in named_objects(body, namespace)]
            for reference in references_of(body, item.app.namespace):
                if reference.target.type != SECRET and not reference.optional:
                    named.append((*reference.target, reference.path))
            for type_, where, name, path in named:
                mark, _ = item.written_at(index, path, name)
                self.add(type_.partition(".")[0], name, Use(app, _place(mark)), where, type_)
        self.add(_NAMESPACE, item.app.namespace, Use(app, _namespace_place(item, config)), "", _NAMESPACE)


def _add_syncers(found: _Collector, compilation: Compilation, config: Config) -> None:
    """Add the APIs, namespaces, Secrets and accounts that Argo CD and Flux require."""
    gitops = config.gitops
    if gitops is None:
        return
    facts = tuple(facts_of(item.app, item.objects, item.needs) for item in compilation.apps)
    delivery = Delivery(config.environment, config.format == "chart", gitops, facts, config.clusters)
    has_argocd = gitops.argocd is not None and _is_in_cluster(delivery)
    tools = ((ARGOCD_FOLDER, "argocd", has_argocd), (FLUX_FOLDER, "flux", gitops.flux is not None))
    places = {folder: Use("", _gitops_place(config, name)) for folder, name, is_there in tools if is_there}
    for path, (body, _) in sync_objects(delivery).items():
        use = places.get(path.partition("/")[0])
        if use is None or path.endswith("kustomization.yaml"):
            continue
        for need in cluster_needs(body):
            found.add(need.kind, need.name, use, "", need.type, need.supplier)
    if has_argocd:
        assert gitops.argocd is not None
        found.add(_NAMESPACE, gitops.argocd.namespace, places[ARGOCD_FOLDER], "", _NAMESPACE)
    if gitops.flux is not None:
        _add_flux(found, delivery, places[FLUX_FOLDER])
    admin = gitops.tenancy.admin_service_account if gitops.tenancy and has_argocd else None
    if admin:
        namespace, _, name = admin.partition(":")
        found.add(_ACCOUNT, name, Use("", _gitops_place(config, "tenancy")), namespace, _ACCOUNT)


def _add_flux(found: _Collector, delivery: Delivery, use: Use) -> None:
    """Add the namespace, the account and the Secrets that Flux reads."""
    flux = delivery.flux
    found.add(_NAMESPACE, flux.namespace, use, "", _NAMESPACE)
    found.add(_ACCOUNT, flux.service_account or "", use, flux.namespace, _ACCOUNT)
    homes = {app.namespace for app in delivery.apps} if delivery.service_account else {flux.namespace}
    for home in sorted({flux.namespace, *homes}):
        found.add(SECRET, flux.secret or "", use, home, SECRET)
    if delivery.settings.charts and delivery.charts:
        for home in sorted(homes):
            found.add(SECRET, flux.charts_secret or "", use, home, SECRET)
    for app in delivery.apps:
        if app.encrypted:
            home = app.namespace if delivery.service_account else flux.namespace
            found.add(SECRET, (flux.decryption and flux.decryption.secret) or "", use, home, SECRET)


def _is_in_cluster(delivery: Delivery) -> bool:
    """Return whether Argo CD runs in a cluster that it deploys the environment to."""
    return any(each.get("server") in {IN_CLUSTER, "*"} for each in destinations_of(delivery).values())


def _pods(items: Iterable[Compiled], catalog: Catalog) -> Iterator[Pod]:
    """Yield a pod of each template of the apps, and nothing for those that request nothing."""
    for item in items:
        for rendered in item.objects:
            for template in pod_templates(rendered.body):
                requests = pod_requests(template, catalog)
                if any(requests.values()):
                    use = Use(_key(item), item.app.source)
                    identity = identity_of(rendered.body)
                    yield Pod(use, f"{identity.type.partition('.')[0]} {identity.name}", template.spec, requests)


def _totals(items: Iterable[Compiled], all_items: Iterable[Compiled], catalog: Catalog) -> Iterator[Total]:
    most = most_replicas((_namespace_of(each.body, item), each.body) for item in all_items for each in item.objects)
    amounts: dict[str, Counter[str]] = {}
    uses: dict[tuple[str, str], dict[Use, None]] = {}
    for item in items:
        for rendered in item.objects:
            body = rendered.body
            namespace = _namespace_of(body, item)
            replicas = most.get((namespace, text(body.get("kind")), identity_of(body).name))
            own = requests_of(body, catalog, replicas)
            amounts.setdefault(namespace, Counter()).update(own)
            for name, amount in own.items():
                if amount:
                    use = Use(_key(item), item.app.source)
                    uses.setdefault((namespace, name), {})[use] = None
    for namespace, counter in sorted(amounts.items()):
        for name, amount in sorted(counter.items()):
            if amount:
                yield Total(namespace, name, amount, tuple(uses[namespace, name]))


def _namespace_of(body: Object, item: Compiled) -> str:
    return text(mapping(body.get("metadata")).get("namespace")) or item.app.namespace


def _key(item: Compiled) -> str:
    return f"{item.app.namespace}/{item.app.name}"


def _in_namespace(identity: Identity, namespace: str) -> Identity:
    kind, _, group = identity.type.partition(".")
    own = "" if is_cluster_type(kind, group) else identity.namespace or namespace
    return identity._replace(namespace=own)


def _place(mark: Mark | None) -> str:
    """Return the file and line of a place, without its column."""
    if mark is None:
        return ""
    return f"{mark.file}:{mark.line}" if mark.line else str(mark.file)


def _namespace_place(item: Compiled, config: Config) -> str:
    """Return where the namespace of an app is set: in its spec, in kaigen.yaml, or nowhere."""
    document = item.spec.document if item.spec else None
    data = document.data if document else None
    if document is not None and isinstance(data, dict) and mapping(data.get("metadata")).get("namespace"):
        return _place(document.mark(("metadata", "namespace")))
    return _config_place(config, ("namespace",)) or item.app.source


def _gitops_place(config: Config, name: str) -> str:
    return _config_place(config, ("gitops", name))


def _config_place(config: Config, path: tuple[str, ...]) -> str:
    """Return where a field is set for an environment: in the environment, in kaigen.yaml, or nowhere."""
    document = document_of(config.root / FILE_NAME)
    if document is None:
        return ""
    for full in (("environments", config.environment, *path), path):
        node: object = document.data
        for step in full:
            node = mapping(node).get(step)
        if node is not None:
            return _place(document.mark(full, key=True))
    return ""
