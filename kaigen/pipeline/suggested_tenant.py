"""What a tenant must be granted for the specs of a folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, ValidationError
from msgspec.structs import replace

from kaigen.check import codes
from kaigen.config.images import image_repository
from kaigen.config.tenant_lists import default_classes, delivered_tenants, tenant_settings
from kaigen.config.tenant_settings import contains, default_namespace, tenant_of_file
from kaigen.config.tenants import CLASS_KINDS, TenantBlock
from kaigen.environments.combined import combine_diagnostics
from kaigen.kinds.block import read_block
from kaigen.kubernetes.pod_security import LEVELS
from kaigen.kubernetes.rights import USUAL_KINDS
from kaigen.pipeline.run import Run
from kaigen.pipeline.sources import relative_path
from kaigen.tenancy.violations import Denied, tenant_findings

if TYPE_CHECKING:
    from kaigen.config.settings import Config
    from kaigen.config.tenant_settings import Tenant
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.diagnostics.problem import Problem
    from kaigen.pipeline.result import Compiled

_QUOTED = re.compile("`([^`]+)`")
_SERVER = re.compile("the server `([^`]+)`")
_HOST = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://)?([^/?:\s,]+)")


class Suggestion(Struct, frozen=True):
    """A tenant for a folder.

    Attributes:
        block: its fields in kaigen.yaml.
        denied: messages about what cannot be granted, or is not known how.
        environments: fields of the tenant in an environment, by its name.
        moved: the namespace of specs that name none, before and with the tenant.
    """

    block: dict[str, list[str] | str]
    denied: tuple[str, ...]
    environments: dict[str, dict[str, list[str]]] = {}
    moved: tuple[tuple[str, str], ...] = ()


def suggest_tenant(name: str, folder: str, configs: Sequence[Config]) -> Suggestion:
    """Return the smallest tenant that the specs of a folder need, in some environments.

    Args:
        name: of the tenant.
        folder: relative to the repository.
        configs: the settings of each environment.

    Raises:
        InputError: a spec is invalid.
    """
    compiled: list[tuple[Config, list[Compiled]]] = []
    moved: dict[tuple[str, str], None] = {}
    for before, namespace in zip(configs, _default_namespaces(name, folder, configs), strict=True):
        config = replace(before, namespace=namespace)
        run = Run.load((str(config.root / folder),), replace(config, tenants=()), folder=Path(), use_cache=False)
        run.raise_errors()
        items = [item for unit in run.units for item in unit.apps()]
        compiled.append((config, items))
        if tenant_of_file(folder, before.tenants) is None and any(item.app.namespace == namespace for item in items):
            moved[before.namespace, namespace] = None
    configs = [config for config, _ in compiled]
    used = {config.environment: sorted({item.app.namespace for item in items}) for config, items in compiled}
    search = _Search(name, folder, {environment: found or ["default"] for environment, found in used.items()})
    for config, items in compiled:
        for item in items:
            search.add(item, config)
    denied = {config.environment: search.check(config) for config in configs}
    messages = [item.message for item in combine_diagnostics(denied)]
    changed = tuple((old, new) for old, new in moved if old != new)
    return Suggestion(search.block(configs), tuple(dict.fromkeys(messages)), search.environments(), changed)


def _default_namespaces(name: str, folder: str, configs: Sequence[Config]) -> list[str]:
    """Return the namespace of specs of a folder that name none, in each environment.

    It is the only one of the tenant that has the folder, or that of kaigen.yaml, unless specs of other folders or
    other tenants use that: then the tenant gets one of its own. Specs of no tenant, such as a Queue, may use that of
    the tenant.
    """
    defaults: list[str] = []
    for config in configs:
        tenant = tenant_of_file(folder, config.tenants)
        others = {place for each in config.tenants if each is not tenant for place in each.namespaces}
        run = Run.load((), config, use_cache=False)
        outside = (unit for unit in run.units if not contains(folder, relative_path(unit.source.file, config.root)))
        others |= {namespace for unit in outside for _, namespace, _ in unit.defines}
        own = default_namespace(folder, config.tenants, config.namespace)
        is_its_own = tenant is not None and own in tenant.namespaces
        defaults.append("" if own in others and not is_its_own else own)
    taken = {config.namespace for config in configs}
    label = re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "team"
    several = len(taken) > 1
    return [
        own or (f"{label}-{config.environment}" if several else label)
        for own, config in zip(defaults, configs, strict=True)
    ]


class _Search:
    """Grants that are added one by one, each because nothing is refused with it that was refused before."""

    def __init__(self, name: str, folder: str, namespaces: Mapping[str, list[str]]) -> None:
        self._name = name
        self._folder = folder
        self._namespaces = namespaces
        self._grants: dict[str, list[str]] = {}
        self._level = "restricted"

    def add(self, item: Compiled, config: Config) -> None:
        """Add what the objects of an app need."""
        for each in item.objects:
            level = each.object.pod_security or item.app.pod_security
            if item.spec is not None and LEVELS.index(level) < LEVELS.index(self._level):
                self._level = level
            declared = level if item.spec is not None else ""
            tried: set[tuple[str, str]] = set()
            while found := next(self._open(each.body, item, config, declared, tried), None):
                self._grant(found, each.body, item, config, declared)
                tried.add((found.grant, found.value or found.message))

    def check(self, config: Config) -> list[Diagnostic]:
        """Return what the tenant is still refused, after adding servers that specs name in URLs."""
        while True:
            run = Run.load(
                (str(config.root / self._folder),),
                replace(config, tenants=(self._tenant(config),)),
                folder=Path(),
                use_cache=False,
            )
            denied = [item for item in run.diagnostics if item.code == codes.TENANT_NOT_GRANTED]
            urls = [url for item in denied for url in _SERVER.findall(item.message)]
            hosts = [_HOST.findall(url)[0] for url in urls]
            new = dict.fromkeys(host for host in hosts if host not in self._grants.get("servers", ()))
            if not new:
                return denied
            self._grants.setdefault("servers", []).extend(new)

    def block(self, configs: Iterable[Config]) -> dict[str, list[str] | str]:
        """Return the tenant as it is written."""
        grants = {field: [*entries] for field, entries in self._grants.items()}
        defaults = {name for config in configs for name in default_classes(config.profile)}
        if {*grants.get("storageClasses", ())} <= defaults:
            grants.pop("storageClasses", None)
        if "kinds" in grants:
            grants["kinds"] = [*USUAL_KINDS, *grants["kinds"]]
        level = {"podSecurity": self._level} if self._level != "restricted" else {}
        return {"folders": [self._folder], "namespaces": self._shared(), **grants, **level}

    def environments(self) -> dict[str, dict[str, list[str]]]:
        """Return the fields of the tenant that differ in an environment, by its name."""
        shared = self._shared()
        return {name: {"namespaces": own} for name, own in self._namespaces.items() if own != shared}

    def _shared(self) -> list[str]:
        """Return the namespaces in most environments, or those in the first of as many."""
        every = [tuple(own) for own in self._namespaces.values()]
        return [*max(every, key=every.count)]

    def _tenant(self, config: Config, field: str = "", entry: str = "") -> Tenant:
        """Return the tenant with what was found, and one entry more."""
        grants = {**self._grants, **({field: [*self._grants.get(field, ()), entry]} if field else {})}
        if "kinds" in grants:
            grants["kinds"] = [*USUAL_KINDS, *grants["kinds"]]
        places = {"folders": [self._folder], "namespaces": self._namespaces[config.environment]}
        block = read_block(TenantBlock, {**places, **grants, "podSecurity": self._level})
        made = tenant_settings({self._name: block}, config.images, config.profile, config.labels, config.annotations)
        return delivered_tenants(replace(config, tenants=made))[0]

    def _problems(self, body: object, item: Compiled, tenant: Tenant, level: str) -> Iterator[Problem]:
        assert isinstance(body, dict)
        return tenant_findings(body, item.app.namespace, item.app.source, (tenant,), level)

    def _open(
        self, body: object, item: Compiled, config: Config, level: str, tried: set[tuple[str, str]]
    ) -> Iterator[Denied]:
        """Yield what is refused, has a field and was not tried."""
        for problem in self._problems(body, item, self._tenant(config), level):
            if isinstance(problem, Denied) and problem.grant:
                if (problem.grant, problem.value or problem.message) not in tried:
                    yield problem
            elif not isinstance(problem, Denied) and self._raise_level(body, item, config, level):
                return

    def _raise_level(self, body: object, item: Compiled, config: Config, level: str) -> bool:
        """Loosen the Pod Security level by one, if that is why a plain object is refused."""
        lower = LEVELS.index(self._level) - 1
        before = len([*self._problems(body, item, self._tenant(config), level)])
        if level or lower < 0:
            return False
        old, self._level = self._level, LEVELS[lower]
        if len([*self._problems(body, item, self._tenant(config), level)]) < before:
            return True
        self._level = old
        return False

    def _grant(self, found: Denied, body: object, item: Compiled, config: Config, level: str) -> None:
        written = set(_texts(item.spec.document.data)) if item.spec is not None else set()
        for entry in _entries(found, written, item.app.built):
            try:
                wider = self._tenant(config, found.grant, entry)
            except (ValidationError, ValueError):
                continue  # It is not a valid entry of the field.
            if found not in self._problems(body, item, wider, level):
                self._grants.setdefault(found.grant, []).append(entry)
                return


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for each in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _texts(each)


def _entries(found: Denied, written: Collection[str], built: Collection[str]) -> Iterator[str]:
    """Yield what may be the entry for something that is refused, the narrowest first.

    Args:
        found: what is refused.
        written: the texts of the spec. Of a folder below a bucket's URI there, the URI is the entry, because a Job
            writes each run to another one.
        built: images that Jobs of the app push, whose tags change with their content.
    """
    quoted = _QUOTED.findall(found.value) or ([found.value] if found.value else [])
    for text in quoted:
        if found.grant == "classes":
            yield from (f"{kind}/{text}" for kind in CLASS_KINDS)
        elif found.grant == "roles":
            verbs = found.value.removeprefix("to ").partition(" `")[0]
            yield from (f"{text}={verb}" for verb in verbs.split(", "))
        elif found.grant == "buckets":
            above = (uri for uri in written if "://" in uri and text.startswith(f"{uri.rstrip('/')}/"))
            yield from sorted(above, key=len, reverse=True)
        elif text in built:
            yield f"{image_repository(text)}:*"
        elif found.grant == "servers":
            yield from _HOST.findall(text)
        yield text
    yield "*"
