"""Checks of all apps of a run: names, references and objects that clash, hosts, and GPUs and budgets of tenants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kaigen.catalog.rates import currency_of
from kaigen.config.globs import is_granted
from kaigen.config.reserved import ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA
from kaigen.config.settings import FILE_NAME
from kaigen.config.tenant_settings import tenant_of_file, tenant_of_namespace
from kaigen.core.text import series, some_of
from kaigen.diagnostics.diagnostic import Diagnostic, Mark, Severity
from kaigen.files import walk
from kaigen.pipeline.output import delivery_of
from kaigen.pipeline.summary import FOLDER, AppSummary, Missing, ObjectKey
from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.config.gitops import GitOps
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.core.json_types import FieldPath
    from kaigen.pipeline.compiler import Compiler
    from kaigen.pipeline.gpu_facts import GpuObject, ScaledKey
    from kaigen.pipeline.unit import Unit

with lazy_imports():
    from kaigen.compile.builders import buckets
    from kaigen.compile.model import mounted
    from kaigen.compile.model import volume as model_volume
    from kaigen.emit import values
    from kaigen.environments import patch as environments_patch
    from kaigen.environments import unmatched as environments_unmatched
    from kaigen.gitops import files as gitops_files
    from kaigen.kinds import job as kinds_job
    from kaigen.kinds import model as kinds_model


_GROUPS = ("argoproj.io", "toolkit.fluxcd.io")
"""The groups of Argo CD and Flux, or how they end."""

_NAMES = frozenset({ALLOW_DNS, ALLOW_NETWORK, DEFAULT_DENY, QUOTA, "argocd-cm"})

_LISTED = 5
"""Most names in a message."""
_STAGED = "--custom-apply-stage-kinds=trainer.kubeflow.org/TrainingRuntime"
"""Flag with which Flux applies TrainingRuntimes before it asks the API server about other objects."""
_HOSTS_HINT = "write `{environment}` into the host, or override it for some of them"

AppKey = tuple[str, str]
"""Namespace and name of an app."""
RunApp = tuple["Unit | None", AppSummary]
"""An app and its file; None for an app that kaigen generates."""


def duplicate_names(units: Sequence[Unit]) -> tuple[list[Diagnostic], set[tuple[Unit, int]]]:
    """Return an error for each spec whose name another has, whatever its kind, and these specs by position."""
    first: dict[AppKey, tuple[Unit, int]] = {}
    found: list[Diagnostic] = []
    duplicates: set[tuple[Unit, int]] = set()
    for unit in units:
        for position, (_, namespace, name) in enumerate(unit.defines):
            owner, other = first.setdefault((namespace, name), (unit, position))
            if (owner, other) == (unit, position):
                continue
            duplicates.add((unit, position))
            spec = owner.loaded.specs[other]
            mark = spec.document.mark(("metadata", "name"))
            found.append(
                unit.loaded.specs[position].diagnostic(
                    "KG0302",
                    f"`{name}` is the name of another app of this namespace, a {spec.block.kind} at {mark}",
                    ("metadata", "name"),
                    "rename one of them, or move it to another namespace",
                )
            )
    return found, duplicates


def unknown_overrides(compiler: Compiler, apps: Collection[AppKey]) -> list[Diagnostic]:
    """Return an error for each overridden setting of an app that does not exist."""
    if not compiler.overrides:
        return []
    return values.unknown_names(apps, compiler.overrides)


def unmatched_overrides(
    compiler: Compiler, matched: Collection[int | str], apps: Sequence[AppKey], *, partial: bool
) -> Iterator[Diagnostic]:
    """Return the problems of overrides, pins and patches that apply to no app.

    Args:
        compiler: with the settings of the run.
        matched: those that apply to an app.
        apps: namespace and name of every app.
        partial: only some of the apps were compiled.
    """
    config = compiler.config
    if config.overrides or config.pins:
        yield from environments_unmatched.warn_of_unmatched(config, matched, set(apps))
    if config.patches:
        yield from compiler.patches.unmatched(set(matched), apps, partial=partial or bool(compiler.absent))
    if (config.apps.include or config.apps.exclude) and not config.passthrough:
        yield from environments_unmatched.unknown_apps(config, set(apps))


def once_for_each_volume(items: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Return diagnostics with one warning for each volume that may bind on the wrong node, not one for each reader."""
    readers: dict[str, list[Diagnostic]] = {}
    same = Counter(item.message for item in items)
    for item in items:
        if same[item.message] > 1 and item.code == model_volume.PINNED_VOLUME:
            readers.setdefault(item.message, []).append(item)
        else:
            yield item
    for message, (first, *others) in readers.items():
        places = [f"{each.mark.file}:{each.mark.line}" for each in others if each.mark is not None]
        more = f"; also read at {some_of(places, _LISTED)}" if places else ""
        yield replace(first, message=f"{message}{more}")


def implied_namespace(config: Config, apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning if kaigen.yaml sets no namespace, and objects of specs therefore go to `default`."""
    names = [app.name for app in apps if _is_in(app, config.namespace)] if config.implied_namespace else []
    if names:
        listed = some_of(sorted(names), _LISTED)
        yield Diagnostic(
            "KG0731",
            f"no `namespace` is set, so these apps go to `{config.namespace}`: {listed}",
            Mark(str(config.root / FILE_NAME)),
            f"set `namespace` in kaigen.yaml; `namespace: {config.namespace}` if you mean that one",
            Severity.WARNING,
        )


def _is_in(app: AppSummary, namespace: str) -> bool:
    """Return whether an app of a spec has objects in a namespace; a Queue may have some of the cluster only."""
    return app.position >= 0 and any(key.namespace == namespace for key in app.objects)


def unpinned_images(config: Config, apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning of kaigen's own images that apps use and `images` of kaigen.yaml, which has others, does not
    pin."""
    users: dict[str, list[str]] = {}
    for app in apps:
        for image in app.unpinned:
            users.setdefault(image, []).append(app.name)
    if users:
        images = series([f"`{image}`" for image in sorted(users)])
        listed = some_of(sorted({name for names in users.values() for name in names}), _LISTED)
        yield Diagnostic(
            "KG0761",
            f"`images` does not pin {images}, so another version of kaigen may restart these apps: {listed}",
            environments_patch.FileEntry(config.root / FILE_NAME, ("images",)).mark(key=True),
            f"run `kaigen upgrade`, which pins {'it' if len(users) == 1 else 'them'}, or set `images.{min(users)}`",
            Severity.WARNING,
        )


def missing_objects(missing: Iterable[Missing], apps: Iterable[AppSummary]) -> Iterator[Diagnostic]:
    """Return a warning for each reference to an object that no app makes."""
    made = {
        (key.kind, namespace, key.name)
        for app in apps
        for key in app.objects
        for namespace in ("", key.namespace or app.namespace)
    }
    for item in missing:
        if (item.kind, item.namespace, item.name) not in made:
            yield item.diagnostic


def clashes(apps: Sequence[RunApp]) -> Iterator[Diagnostic]:
    """Return an error for each app whose name or object another app has already."""
    names: dict[AppKey, RunApp] = {}
    owners: dict[ObjectKey, AppSummary] = {}
    for unit, app in apps:
        first_unit, first = names.setdefault(app.key, (unit, app))
        if first is not app:
            yield _same_name(unit, app, first_unit, first)
    for unit, app in apps:
        own: set[ObjectKey] = set()
        for key in app.objects:
            owner = owners.setdefault(key, app)
            if owner is not app:
                yield _same_object(key, unit, app, owner)
            elif app.position < 0 and key in own and key.kind != FOLDER:
                yield _twice(key, unit, app)
            own.add(key)


def _twice(key: ObjectKey, unit: Unit | None, app: AppSummary) -> Diagnostic:
    """Return the error for a file with two plain objects of one name; of specs, the check of the app reports it."""
    message = f"{key.kind} `{key.name}` is twice in this file"
    mark = Mark(app.source)
    for document in unit.loaded.plain if unit is not None else ():
        if (document.kind, document.name) == (key.kind, key.name):
            mark = document.mark(("metadata", "name"))
    return Diagnostic("KG0573", message, mark, "remove one of them, or rename it")


def _same_name(unit: Unit | None, app: AppSummary, first_unit: Unit | None, first: AppSummary) -> Diagnostic:
    if unit is None and first_unit is not None:
        message = f"`{app.name}` is the name of the app with the ExternalSecrets of a namespace"
        return first_unit.diagnostic(first, "KG0302", message, ("metadata", "name"), "choose another name for this app")
    message = f"the app of this file is `{app.name}`, and so is the app of {first.source}"
    mark = unit.loaded.plain[0].mark(()) if unit is not None and unit.loaded.plain else Mark(app.source)
    return Diagnostic("KG0302", message, mark, "rename one of the files")


def _bucket_field(folder: str, unit: Unit | None, app: AppSummary) -> FieldPath:
    """Return the field of a spec with a folder of a bucket: of a Job's output, or a Model's files."""
    block = unit.loaded.specs[app.position].block if unit is not None and app.position >= 0 else None
    if isinstance(block, kinds_job.Job):
        return ("spec", "output", "bucket", "uri")
    convert = mounted.conversion(block.spec) if isinstance(block, kinds_model.Model) else None
    own = convert.store.bucket if convert is not None and convert.store is not None else None
    if own is not None and buckets.location(own) == folder:
        return ("spec", "convert", "distributedLlama", "store", "bucket", "uri")
    return ("spec", "store", "bucket", "uri")


def _same_object(key: ObjectKey, unit: Unit | None, app: AppSummary, owner: AppSummary) -> Diagnostic:
    """Return the error for an app that creates, or fills, what another one does."""
    field: FieldPath = ("metadata", "name")
    code, message = "KG0302", f"{key.kind} `{key.name}` belongs to app `{owner.name}` too"
    hint = "rename one of the two apps"
    if key.kind == FOLDER:
        code, field = "KG0318", _bucket_field(key.name, unit, app)
        message = f"app `{owner.name}` in namespace `{owner.namespace}` is stored at {key.name} too"
        hint = "choose another prefix for this one"
    if unit is None:
        return Diagnostic(code, message, Mark(app.source), hint)
    return unit.diagnostic(app, code, message, field, hint)


def shared_hosts(apps: Sequence[RunApp], tenants: Sequence[Tenant]) -> Iterator[Diagnostic]:
    """Return a warning for each app with a host of another namespace's app, unless tenants of both list it."""
    first: dict[str, RunApp] = {}
    for unit, app in apps:
        for host in app.hosts:
            _, other = first.setdefault(host, (unit, app))
            if unit is None or other.namespace == app.namespace:
                continue
            if _lists(host, app.namespace, tenants) and _lists(host, other.namespace, tenants):
                continue
            message = f"the host `{host}` is also that of app `{other.name}` in namespace `{other.namespace}`"
            hint = "choose another host for one of them, or list it in `hosts` of both tenants in kaigen.yaml"
            found = unit.diagnostic(app, "KG0384", message, ("metadata", "name"), hint)
            yield replace(found, severity=Severity.WARNING)


def refused_train_jobs(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return a warning for each app whose TrainJob is applied before its TrainingRuntime: Kubeflow Trainer refuses it.

    Source: the webhook of github.com/kubeflow/trainer v2.2.1, `ApplyAllStaged` of github.com/fluxcd/pkg/ssa v0.76.2,
    and `InstallOrder` of helm.sh/helm, which sorts kinds that it does not know by their names.
    """
    with_flux = config.gitops is not None and config.gitops.flux is not None
    for unit, app in apps:
        if unit is None or not any(each.kind == "TrainJob" for each in app.objects):
            continue
        path = ("spec", "groups")
        if config.format != "manifests":
            message = "Helm makes the TrainJob before its TrainingRuntime, so Kubeflow Trainer refuses it"
            found = unit.diagnostic(app, "KG0484", message, path, "set `format: manifests`, or `groups: jobSet`")
            yield replace(found, severity=Severity.WARNING)
        elif with_flux:
            message = "Flux asks about the TrainJob before it makes its TrainingRuntime, so Kubeflow Trainer refuses it"
            hint = f"run kustomize-controller 1.8 or newer with `{_STAGED}`, or set `groups: jobSet`"
            found = unit.diagnostic(app, "KG0484", message, path, hint)
            yield replace(found, severity=Severity.WARNING)


def hosts_of_clusters(environments: Iterable[tuple[Config, Sequence[RunApp]]]) -> Iterator[Diagnostic]:
    """Return a warning for each host that environments of different clusters have.

    Args:
        environments: the settings and the apps of each.
    """
    places: dict[str, list[Config]] = {}
    marks: dict[str, Diagnostic] = {}
    for config, apps in environments:
        for unit, app in apps:
            for host in app.hosts:
                if unit is not None and config not in places.setdefault(host, []):
                    places[host].append(config)
                    marks.setdefault(host, unit.diagnostic(app, "KG0765", "", ("spec", "route", "host"), _HOSTS_HINT))
    for host, configs in places.items():
        if any(_differ(configs[0], other) for other in configs):
            names = series([config.environment for config in configs])
            message = f"the host `{host}` is that of the environments {names}, which have different clusters"
            yield replace(marks[host], message=message, severity=Severity.WARNING)


def _differ(one: Config, other: Config) -> bool:
    """Return whether two environments have different clusters, as far as kaigen.yaml says it."""
    return one.profile != other.profile or one.clusters != other.clusters


def _lists(host: str, namespace: str, tenants: Sequence[Tenant]) -> bool:
    """Return whether the tenant of a namespace is granted a host."""
    tenant = tenant_of_namespace(namespace, tenants)
    return tenant is not None and is_granted(host, tenant.granted("hosts"))


def folders_without_files(config: Config) -> Iterator[Diagnostic]:
    """Return a warning for each folder of a tenant in which there is no file."""
    for tenant in config.tenants:
        for folder in tenant.folders:
            if not any(files for _, _, files in walk(config.root / folder)):
                yield Diagnostic(
                    "KG0743",
                    f"folder `{folder}` of tenant `{tenant.name}` has no files, so its rules apply to no spec",
                    Mark(str(config.root / FILE_NAME)),
                    f"correct `tenants.{tenant.name}.folders`, or add the specs",
                    Severity.WARNING,
                )


def gpu_quotas(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each tenant whose apps may request more GPUs than it has."""
    used: Counter[str] = Counter()
    by_app: Counter[tuple[str, str]] = Counter()
    for unit, app, each, tenant, replicas in _tenant_gpus(apps, config):
        if tenant.gpus is None:
            continue
        amount = each.most(replicas)
        used[tenant.name] += amount
        by_app[tenant.name, app.name] += amount
        if each.unlimited and unit is not None:
            _, kind, name = each.key
            message = f"{kind} {name} requests GPUs, and {each.unlimited}, so `gpus` of tenant `{tenant.name}` "
            hint = "request none, set a limit, or use another kind"
            yield unit.diagnostic(app, "KG0385", f"{message}cannot limit them", ("metadata", "name"), hint)
    for tenant in config.tenants:
        if tenant.gpus is not None and used[tenant.name] > tenant.gpus:
            largest, name = max((number, app) for (owner, app), number in by_app.items() if owner == tenant.name)
            yield Diagnostic(
                "KG0385",
                f"the apps of tenant `{tenant.name}` request {used[tenant.name]} GPUs, and it has {tenant.gpus}",
                _tenant_mark(config, tenant, "gpus"),
                f"request fewer, or raise `tenants.{tenant.name}.gpus`; app `{name}` requests most: {largest}",
            )


def cost_budgets(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each tenant whose GPUs may cost more than its budget, and for each app without a price."""
    used: dict[str, dict[str, float]] = {}
    for unit, app, each, tenant, replicas in _tenant_gpus(apps, config):
        if tenant.per_hour is None:
            continue
        cost, (_, kind, name) = each.most_an_hour(replicas), each.key
        if cost is not None:
            by_app = used.setdefault(tenant.name, {})
            by_app[app.name] = by_app.get(app.name, 0) + cost
        elif unit is not None:
            message = f"{kind} {name} requests GPUs, and kaigen knows no price of them, "
            hint = "select nodes by `instanceType`, or add its price to the catalog (`kaigen cost` says why)"
            message += f"so `budget` of tenant `{tenant.name}` cannot limit it"
            yield unit.diagnostic(app, "KG0401", message, ("metadata", "name"), hint)
    unit_of_money = currency_of(config.catalog)
    for tenant in config.tenants:
        by_app = used.get(tenant.name, {})
        total = round(sum(by_app.values()), 2)
        if tenant.per_hour is not None and total > tenant.per_hour:
            name = max(by_app, key=lambda app: (by_app[app], app))
            yield Diagnostic(
                "KG0401",
                f"the GPUs of tenant `{tenant.name}` may cost {total:,.2f} {unit_of_money} an hour, and its budget is "
                f"{tenant.per_hour:,.2f}",
                _tenant_mark(config, tenant, "budget", "perHour"),
                f"request less, or raise `tenants.{tenant.name}.budget.perHour`; "
                f"app `{name}` costs most: {by_app[name]:,.2f}",
            )


def _tenant_mark(config: Config, tenant: Tenant, *field: str) -> Mark:
    """Return the place of a tenant's field in kaigen.yaml, in the environment if it sets the field."""
    entry = environments_patch.FileEntry(config.root / FILE_NAME, ())
    own = ("environments", config.environment or "", "tenants", tenant.name, *field)
    return entry.mark(own if entry.raw(own) is not None else ("tenants", tenant.name, *field))


def _tenant_gpus(
    apps: Sequence[RunApp], config: Config
) -> Iterator[tuple[Unit | None, AppSummary, GpuObject, Tenant, int]]:
    """Yield each object of a tenant that requests GPUs: file, app, object, tenant, and the most replicas that any
    autoscaler sets.
    """
    most: dict[ScaledKey, int] = {}
    for _, app in apps:
        for key, replicas in app.gpus.replicas if app.gpus is not None else ():
            most[key] = max(most.get(key, 0), replicas)
    for unit, app in apps:
        for each in app.gpus.objects if app.gpus is not None else ():
            tenant = tenant_of_file(app.source, config.tenants) or tenant_of_namespace(each.key[0], config.tenants)
            if tenant is not None:
                yield unit, app, each, tenant, most.get(each.key, 0)


def sync_clashes(apps: Sequence[RunApp], config: Config) -> Iterator[Diagnostic]:
    """Return an error for each object of an app that kaigen writes itself."""
    if config.gitops is None:
        return
    wanted = [(unit, app, key) for unit, app in apps for key in app.objects if may_be_synced(key, config.gitops)]
    made = synced_objects(apps, config, config.gitops) if wanted else {}
    for unit, app, key in wanted:
        path = made.get(key)
        if path is not None:
            message = f"kaigen writes {key.kind} `{key.name}` itself, for `gitops` of kaigen.yaml, to {path}"
            yield _at_object(unit, app, key, message)


def may_be_synced(key: ObjectKey, gitops: GitOps) -> bool:
    """Return whether kaigen may write an object itself; True for all that it does write."""
    account = gitops.tenancy.service_account if gitops.tenancy is not None else None
    return key.kind == "Namespace" or key.group.endswith(_GROUPS) or key.name in {*_NAMES, account}


def synced_objects(apps: Sequence[RunApp], config: Config, gitops: GitOps) -> dict[ObjectKey, str]:
    """Return the paths in the output tree of the objects that kaigen writes for Argo CD, Flux and namespaces."""
    facts = [app.facts for _, app in apps if app.facts is not None]
    named = gitops_files.identities(delivery_of(facts, config, gitops, config.format))
    return {ObjectKey(group, kind, namespace, name): path for (group, kind, namespace, name), path in named.items()}


def _at_object(unit: Unit | None, app: AppSummary, key: ObjectKey, message: str) -> Diagnostic:
    """Return the error at the plain object, or at the name of the spec."""
    hint = "choose another name, or remove it"
    if unit is None:
        return Diagnostic("KG0302", message, Mark(app.source), hint)
    for document in unit.loaded.plain if app.position < 0 else ():
        if (document.kind, document.name) == (key.kind, key.name):
            return Diagnostic("KG0302", message, document.mark(("metadata", "name")), hint)
    return unit.diagnostic(app, "KG0302", message, ("metadata", "name"), hint)
