"""What a change of kaigen.yaml allows that was not allowed before."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import structs

from kaigen.catalog.images import default_images
from kaigen.config.controller_keys import common_entries
from kaigen.config.licenses import STRICTNESS, Licenses, Verdict
from kaigen.config.settings import Config
from kaigen.config.tenant_lists import default_classes, profile_classes
from kaigen.config.tenant_settings import Tenant, tenant_of_file
from kaigen.git.repository import read_file_at, read_submodules_at, read_tree_at
from kaigen.kubernetes.pod_security import LEVELS
from kaigen.kubernetes.rights import USUAL_KINDS
from kaigen.pipeline.setting_changes import raised
from kaigen.pipeline.sources import read_named, relative_path

_WILDCARD = re.compile(r"[*?\[]")
_WAYS = {"allow": "", "ask": " with a warning"}


def new_grants(before: Config, now: Config) -> list[str]:
    """Return what specs may use now and could not before.

    Args:
        before: the settings before the change; the defaults without kaigen.yaml.
        now: the settings.
    """
    allow = before.allow
    grants = [f"files {each} in the output" for each in now.allow.files if each not in allow.files]
    grants += [f"the namespace {each}" for each in now.allow.namespaces if each not in allow.namespaces]
    grants += [f"the Secret {each} of Flux" for each in now.allow.secrets if each not in allow.secrets]
    grants += [f"the server {each}" for each in now.allow.servers if each not in allow.servers]
    for grant in now.allow.volumes:
        if grant not in allow.volumes:
            named = [f"{field} {', '.join(values)}" for field, values in structs.asdict(grant).items() if values]
            grants.append(f"volumes with {'; '.join(named)}")
    if now.passthrough and not before.passthrough:
        grants.append("plain objects, with `passthrough`")
    return [*grants, *wider_licenses(before.licenses, now.licenses), *_tenant_grants(before, now)]


def replaced_images(before: Mapping[str, Config], configs: Sequence[Config]) -> list[str]:
    """Return the images that kaigen.yaml or pins newly name in place of kaigen's own, and registries of all of them.

    An image that is promoted is left out if another environment has it, and not by its own pins.

    Args:
        before: the settings before the change, by environment.
        configs: the settings of each environment.
    """
    defaults = default_images()
    approved = {*defaults.items(), *(entry for each in before.values() for entry in each.plain_images.items())}
    found: dict[str, None] = {}
    for config in configs:
        was = before.get(config.environment) or next(iter(before.values()), Config())
        registries = _registries(was)
        for name, image in config.plain_images.items():
            old = (was.plain_images.get(name), defaults.get(name))
            is_promoted = name in config.pinned_images and (
                (name, image) in approved or image in _image_names(configs, name)
            )
            if image not in old and not is_promoted:
                found[f"image {image} as kaigen's own image `{name}`"] = None
        for registry in _registries(config):
            if registry not in registries:
                found[f"kaigen's own images from registry {registry}"] = None
    return list(found)


def _image_names(configs: Sequence[Config], name: str) -> set[str | None]:
    """Return what environments without a pin of an image have for it."""
    return {config.plain_images.get(name) for config in configs if name not in config.pinned_images}


def _registries(config: Config) -> dict[str, None]:
    """Return the registries that kaigen.yaml names in place of those of kaigen's own images."""
    return {
        image.removesuffix(plain.partition("/")[2]).rstrip("/"): None
        for name, plain in config.plain_images.items()
        if (image := config.images.get(name, plain)) != plain
    }


def free_specs(config: Config, commit: str) -> list[str]:
    """Return grants for the files with specs that are new since a commit and in no tenant's folder.

    Args:
        config: the settings; without tenants, no file is in a tenant's folder, and nothing is returned.
        commit: the commit.

    Raises:
        InputError: as for `read_tree_at`.
    """
    if not config.tenants:
        return []
    sources, _ = read_named((), config)
    paths = [relative_path(source.path, config.root) for source in sources]
    free = [path for path in paths if tenant_of_file(path, config.tenants) is None]
    if not free:
        return []
    known = set(read_submodules_at(config.root, commit, config.specs))
    for folder in config.specs:
        known |= {posixpath.normpath(f"{folder}/{path}") for path in read_tree_at(config.root, commit, folder)}
    return [
        f"everything outside the tenants' namespaces in {path}, a new file in no tenant's folder"
        for path in sorted(free)
        if path not in known and read_file_at(config.root, commit, path) is None
    ]


def _tenant_grants(before: Config, now: Config) -> Iterator[str]:
    known = {tenant.name: tenant for tenant in before.tenants}
    for tenant in now.tenants:
        was = known.get(tenant.name)
        yield from _wider(was or Tenant(tenant.name, (), (), {"kinds": USUAL_KINDS}), tenant, now)
        if was is not None and was.gpus is not None and (tenant.gpus is None or tenant.gpus > was.gpus):
            amount = "any number of" if tenant.gpus is None else tenant.gpus
            yield f"{amount} GPUs as tenant {tenant.name}"
        limit = None if was is None else was.per_hour
        if limit is not None and (tenant.per_hour is None or tenant.per_hour > limit):
            amount = "any amount" if tenant.per_hour is None else f"{tenant.per_hour:,.2f}"
            yield f"GPUs for {amount} an hour as tenant {tenant.name}"
        for namespace, old in (was.quotas if was is not None else {}).items():
            if namespace in tenant.namespaces and [*raised(old, tenant.quotas.get(namespace, {}))]:
                yield f"more than before of what the quota of {namespace} limits, as tenant {tenant.name}"
        level = "restricted" if was is None else was.pod_security
        if LEVELS.index(tenant.pod_security) < LEVELS.index(level):
            yield f"Pod Security {tenant.pod_security} as tenant {tenant.name}"
    for was in before.tenants:
        for namespace in was.namespaces:
            if not any(namespace in tenant.namespaces for tenant in now.tenants):
                yield f"the namespace {namespace}, which is of no tenant any more"
        for folder in was.folders:
            if not any(tenant.owns(folder) for tenant in now.tenants):
                yield f"everything in folder {folder}, which is of no tenant any more"


def _wider(was: Tenant, tenant: Tenant, config: Config) -> Iterator[str]:
    """Return what a tenant is granted and was not, less kaigen's own images and what every object may have."""
    own = {
        "images": config.images.values(),
        "annotations": common_entries(config.labels, config.annotations),
        "classes": profile_classes(config.profile),
        "storageClasses": default_classes(config.profile),
    }
    for field, values in {"namespaces": tenant.namespaces, **tenant.grants}.items():
        old = was.namespaces if field == "namespaces" else was.granted(field)
        new = [value for value in values if value not in old and value not in own.get(field, ())]
        if new:
            yield f"{field} {', '.join(new)} as tenant {tenant.name}"


def wider_licenses(before: Licenses | None, now: Licenses | None) -> Iterator[str]:
    """Return what specs may use now by the licence policy and could not before.

    Args:
        before: the policy before the change; None for all licences.
        now: the policy.
    """
    if before is None:
        return
    if now is None:
        yield "sources of every licence: kaigen.yaml has no `licenses` any more"
        return
    wider = [name for name in _names(before, now) if _is_wider(_verdict(before, name), _mildest(now, name))]
    for verdict, way in _WAYS.items():
        names = [name for name in wider if _mildest(now, name) == verdict]
        if names:
            yield f"sources with the licence {', '.join(names)}{way}"
    if before.allow and not now.allow:
        yield "sources with every licence that `licenses` does not name"
    was = before.known
    for source, licence in sorted(now.known.items()):
        if was.get(source) != licence and _is_wider(before.verdict(was.get(source, "unknown")), now.verdict(licence)):
            yield f"{source}, as it has the licence {licence} in `licenses.known`"


def _names(*policies: Licenses) -> list[str]:
    """Return the names and globs of some policies, and that of files without a licence."""
    found = ["unknown"]
    for policy in policies:
        found += [*policy.allow, *policy.deny, *policy.ask]
    return list(dict.fromkeys(name.lower() for name in found))


def _is_wider(before: Verdict, now: Verdict) -> bool:
    return STRICTNESS.index(now) < STRICTNESS.index(before)


def _verdict(policy: Licenses, name: str) -> Verdict:
    """Return what a policy says about every licence of a glob, except those that it names apart."""
    if _covers(policy.deny, name):
        return "deny"
    if _covers(policy.ask, name):
        return "ask"
    return "allow" if not policy.allow or _covers(policy.allow, name) else "deny"


def _mildest(policy: Licenses, name: str) -> Verdict:
    """Return the same, or that some of the licences may be used."""
    if _covers(policy.deny, name):
        return "deny"
    if _covers(policy.ask, name):
        return "ask"
    return "allow" if not policy.allow or _meets(policy.allow, name) else "deny"


def _covers(globs: Sequence[str], name: str) -> bool:
    """Return whether one of some globs matches everything that another one matches."""
    known = [glob.lower() for glob in globs]
    if not _WILDCARD.search(name):
        return any(fnmatchcase(name, glob) for glob in known)
    return name in known or any(
        glob.endswith("*") and not _WILDCARD.search(glob[:-1]) and name.startswith(glob[:-1]) for glob in known
    )


def _meets(globs: Sequence[str], name: str) -> bool:
    """Return whether one of some globs may match something that another one matches."""
    return any(
        fnmatchcase(glob, name) or fnmatchcase(name, glob) or _may_overlap(glob, name)
        for glob in (glob.lower() for glob in globs)
    )


def _may_overlap(left: str, right: str) -> bool:
    if not (_WILDCARD.search(left) and _WILDCARD.search(right)):
        return False
    starts = [_WILDCARD.split(glob)[0] for glob in (left, right)]
    return starts[0].startswith(starts[1]) or starts[1].startswith(starts[0])
