"""Changes of kaigen.yaml that a reviewer must see, whatever they do to the objects.

`DECISIONS` says what a change of each setting is: harmless, a danger, or one in one direction. A setting that it does
not have is a danger.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import UnionType
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from kaigen.config.settings import Config
from kaigen.core.credentials import redact
from kaigen.core.json_types import Json
from kaigen.diff.formatting import clip, value
from kaigen.diff.model import ABSENT, Absent
from kaigen.kubernetes.quantities import nano

Value: TypeAlias = object
"""A setting: text, number, boolean, None, a tuple or a mapping of them."""

Loss: TypeAlias = tuple[str, Value, Value]
"""A key below a setting, empty for the setting itself; its old and new value. A missing value is None."""

Judge: TypeAlias = Callable[[Value, Value], Iterator[Loss]]

_LONG = 10_000
_MOST = 200
"""Most characters of a setting that are searched for credentials, and that are shown."""


def dangerous_settings(before: Mapping[str, Config], configs: Sequence[Config]) -> list[str]:
    """Return the settings whose change may weaken what protects a cluster, with their old and new values.

    Args:
        before: the settings before the change, by environment; a new environment is compared with the first of them.
        configs: the current settings of each environment.
    """
    found: dict[str, list[str]] = {}
    for config in configs:
        was = before.get(config.environment) or next(iter(before.values()), Config())
        for text in _dangers(was, config):
            found.setdefault(text, []).append(config.environment)
    return [
        text if len(names) == len(configs) else f"{text} (environment {', '.join(names)})"
        for text, names in found.items()
    ]


def leaves(model: type[Struct], path: str = "") -> Iterator[str]:
    """Yield the path of every setting below a model that the table decides about, or must decide about."""
    for name, nested in _fields(model).items():
        place = f"{path}{name}"
        inside = f"{place}."
        has_inside = nested is not None and any(known.startswith(inside) for known in DECISIONS)
        if not has_inside or place in DECISIONS:
            yield place
        if nested is not None and has_inside:
            yield from leaves(nested, inside)


@cache
def _fields(model: type[Struct]) -> dict[str, type[Struct] | None]:
    """Return the fields of a model, each with the model of its block; None for a field that is not a block."""
    hints = typing.get_type_hints(model)
    return {each.name: _block(hints[each.name]) for each in msgspec.structs.fields(model)}


def _block(hint: object) -> type[Struct] | None:
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else (hint,)
    blocks = [each for each in options if isinstance(each, type) and issubclass(each, Struct)]
    return blocks[0] if len(blocks) == 1 else None


def _dangers(before: Config, now: Config) -> Iterator[str]:
    for path in leaves(Config):
        old, new = _at(before, path), _at(now, path)
        if old == new or _is_decided_above(path, before, now):
            continue
        decision = DECISIONS.get(path, UNKNOWN)
        for key, was, is_ in decision.judge(old, new):
            name = ".".join(part for part in (decision.name or _written_path(path), key) if part)
            yield f"{name} is {_show_setting(is_)} instead of {_show_setting(was)}"


def _is_decided_above(path: str, before: Config, now: Config) -> bool:
    """Return whether a block with a decision of its own, in which a setting is, is missing on one side."""
    parts = path.split(".")
    above = [".".join(parts[:length]) for length in range(1, len(parts))]
    return any(None in (_at(before, each), _at(now, each)) for each in above if each in DECISIONS)


def _at(config: Config, path: str) -> Value:
    """Return a setting; that of the defaults of its block, or None, where the block is missing."""
    found: object = config
    model: type[Struct] = Config
    for name in path.split("."):
        nested = _fields(model)[name]
        found = _default(model, name) if found is None else getattr(found, name)
        model = nested or model
    return found


def _default(model: type[Struct], name: str) -> Value:
    for each in msgspec.structs.fields(model):
        if each.name == name and each.default is not msgspec.NODEFAULT:
            return typing.cast("Value", each.default)
        if each.name == name and each.default_factory is not msgspec.NODEFAULT:
            return typing.cast("Value", each.default_factory())
    return None


def _written_path(path: str) -> str:
    """Return a path as in kaigen.yaml."""
    parts = []
    for name in path.split("."):
        first, *rest = name.split("_")
        parts.append(first + "".join(word.capitalize() for word in rest))
    return ".".join(parts)


def _show_setting(setting: Value) -> str:
    """Return a setting on one line, without credentials and defaults."""
    plain = {} if isinstance(setting, Struct) else msgspec.to_builtins(setting)
    if isinstance(setting, Struct):
        fields = {name: getattr(setting, name) for name in setting.__struct_fields__}
        given = {name: item for name, item in fields.items() if item != _default(type(setting), name)}
        plain = {_written_path(name): msgspec.to_builtins(item) for name, item in given.items()}
    unset = plain in (None, "", (), [], {}) and not isinstance(setting, Struct)
    shown: Json | Absent = ABSENT if unset else plain
    return clip(redact(value(shown, _LONG)), _MOST)


class Decision(NamedTuple):
    """How a change of a setting is judged.

    Attributes:
        judge: yields what is a danger in a change.
        reason: why it is harmless; empty where it may be a danger.
        name: path in kaigen.yaml, where it is not that of the setting.
    """

    judge: Judge
    reason: str = ""
    name: str = ""


def _nothing(old: Value, new: Value) -> Iterator[Loss]:
    yield from ()


def changed(old: Value, new: Value) -> Iterator[Loss]:
    """Any change is a danger."""
    if old != new:
        yield "", old, new


def set_or_changed(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to set or to change it, and harmless to remove it; of a mapping, each key."""
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        before, after = _mapping(old), _mapping(new)
        yield from ((key, before.get(key), each) for key, each in after.items() if before.get(key) != each)
    elif old != new and new not in (None, "", (), []):
        yield "", old, new


def lost_or_changed(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to remove or to change it, and harmless to set it: it restricts."""
    if old != new and old not in (None, "", (), []):
        yield "", old, new


def added(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to add the block."""
    if old is None and new is not None:
        yield "", old, new


def removed(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to remove the block."""
    if old is not None and new is None:
        yield "", old, new


def more(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to add an entry of a list, and harmless to remove one."""
    if set(_items(new)) - set(_items(old)):
        yield "", old, new


def fewer(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to remove an entry of a list, and harmless to add one."""
    if set(_items(old)) - set(_items(new)):
        yield "", old, new


def on(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to switch it on."""
    if new is True and old is not True:
        yield "", old, new


def off(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to switch it off."""
    if old is True and new is not True:
        yield "", old, new


def only_charts(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to render only charts: the diff compares no objects of charts."""
    if new == "chart" != old:
        yield "", old, new


def reordered(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to remove or move an entry of a list, and harmless to add one."""
    before, after = _items(old), _items(new)
    if before and [each for each in after if each in before] != before:
        yield "", old, new


def raised(old: Value, new: Value) -> Iterator[Loss]:
    """It is a danger to raise or to remove a limit of a mapping, and harmless to lower or to add one."""
    before, after = _mapping(old), _mapping(new)
    for key, was in before.items():
        now = after.get(key)
        least, most = nano(str(was)), nano(str(now))
        if now != was and (now is None or least is None or most is None or most > least):
            yield key, was, now


def _mapping(value: Value) -> Mapping[str, Value]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Value) -> list[Value]:
    return list(value) if isinstance(value, (tuple, list)) else []


def _harmless(reason: str) -> Decision:
    return Decision(_nothing, reason)


_IN_OBJECTS = "what it changes is in the objects, which are compared"
_NOT_WRITTEN = "it is not a field of kaigen.yaml"
_GRANT = "`kaigen.pipeline.grant_changes` reports what it allows"

DECISIONS: Mapping[str, Decision] = {
    "root": _harmless(_NOT_WRITTEN),
    "environment": _harmless(_NOT_WRITTEN),
    "kubernetes": _harmless(_IN_OBJECTS),
    "profile": _harmless(_IN_OBJECTS),
    "cluster": _harmless("it changes only what `kaigen diff` predicts and what is an error"),
    "namespace": _harmless(_IN_OBJECTS),
    "implied_namespace": _harmless(_NOT_WRITTEN),
    "images": _harmless("`replaced_images` reports images of others"),
    "plain_images": _harmless("`replaced_images` reports images of others"),
    "named_images": _harmless(_NOT_WRITTEN),
    "pinned_images": _harmless("`kaigen promote` writes them, and each image is in the objects"),
    "storage_classes": _harmless(_IN_OBJECTS),
    "region": _harmless("it changes only the carbon that kaigen prints"),
    "fixed_images": _harmless("it is the names of images that are compared"),
    "values": _harmless(_IN_OBJECTS),
    "overrides": _harmless(_IN_OBJECTS),
    "pins": _harmless(_IN_OBJECTS),
    "follows_commits": Decision(off, name="follows: commits"),
    "commits": _harmless(_IN_OBJECTS),
    "repository": _harmless(_NOT_WRITTEN),
    "apps": _harmless(_IN_OBJECTS),
    "syncer_secrets": _harmless("it follows from `gitops` and `allow.secrets`, which are compared"),
    "promotion": Decision(reordered),
    "origin": _harmless(_NOT_WRITTEN),
    "specs": Decision(more),
    "output": _harmless("the folder is reported, and what syncers read is in `gitops.path`"),
    "format": Decision(only_charts),
    "kustomizations": _harmless("Argo CD and Flux do not read these files"),
    "passthrough": _harmless(_GRANT),
    "external_secrets.store": Decision(set_or_changed, name="secrets.externalSecrets.store.name"),
    "external_secrets.store_kind": Decision(changed, name="secrets.externalSecrets.store.kind"),
    "external_secrets.refresh_interval": _harmless(_IN_OBJECTS),
    "external_secrets.key_template": Decision(changed, name="secrets.externalSecrets.keyTemplate"),
    "kinds": Decision(more),
    "catalog_folder": _harmless("its rows are facts for sizing, and their effect is in the objects"),
    "catalog": _harmless(_NOT_WRITTEN),
    "patches": _harmless(_IN_OBJECTS),
    "labels": Decision(set_or_changed),
    "annotations": Decision(set_or_changed),
    "external": _harmless("it creates nothing: references to these objects are not errors"),
    "dialects": Decision(set_or_changed),
    "network.hub_endpoint": Decision(changed),
    "network.http_proxy": Decision(changed),
    "network.https_proxy": Decision(changed),
    "network.no_proxy": Decision(more),
    "network.ca_bundle": Decision(set_or_changed),
    "network.package_index": Decision(changed),
    "network.download_egress": Decision(removed),
    "network.download_egress.api_server": Decision(changed),
    "network.download_egress.to": Decision(lost_or_changed),
    "network.download_egress.ports": Decision(more),
    "network.download_egress.dns": Decision(set_or_changed),
    "network.download_egress.jobs": Decision(off),
    "mirror": Decision(changed, name="registry"),
    "environments": _harmless("each environment is compared by itself"),
    "gitops.repository": Decision(set_or_changed),
    "gitops.branch": Decision(set_or_changed),
    "gitops.path": Decision(set_or_changed),
    "gitops.project": Decision(set_or_changed),
    "gitops.charts": Decision(changed),
    "gitops.labels": Decision(set_or_changed),
    "gitops.argocd": Decision(added),
    "gitops.argocd.namespace": Decision(set_or_changed),
    "gitops.argocd.applications": Decision(set_or_changed),
    "gitops.argocd.auto_sync": Decision(on),
    "gitops.argocd.signature_keys": Decision(lost_or_changed),
    "gitops.flux": Decision(added),
    "gitops.flux.namespace": Decision(set_or_changed),
    "gitops.flux.interval": _harmless(_IN_OBJECTS),
    "gitops.flux.timeout": _harmless(_IN_OBJECTS),
    "gitops.flux.oci": Decision(changed),
    "gitops.flux.tag": Decision(set_or_changed),
    "gitops.flux.secret": Decision(set_or_changed),
    "gitops.flux.charts_secret": Decision(set_or_changed),
    "gitops.flux.verify_secret": Decision(lost_or_changed),
    "gitops.flux.service_account": Decision(changed),
    "gitops.flux.decryption": Decision(added),
    "gitops.flux.decryption.secret": Decision(changed),
    "gitops.tenancy.namespaces": Decision(off),
    "gitops.tenancy.quota": Decision(raised),
    "gitops.tenancy.default_deny": Decision(fewer),
    "gitops.tenancy.ingress_from": Decision(more),
    "gitops.tenancy.service_account": Decision(lost_or_changed),
    "gitops.tenancy.admin_service_account": Decision(changed),
    "clusters": Decision(set_or_changed),
    "publish.remote": Decision(set_or_changed),
    "publish.branch": Decision(set_or_changed),
    "publish.path": Decision(set_or_changed),
    "publish.pull_request": Decision(off),
    "publish.sign": Decision(off),
    "publish.charts": Decision(set_or_changed),
    "publish.version_suffix": _harmless("a version is not a grant"),
    "publish.manifests": Decision(set_or_changed),
    "allow": _harmless(_GRANT),
    "tenants": _harmless(_GRANT),
    "lock": _harmless("`kaigen.diff.lock` reports what it stands for"),
    "licenses": _harmless(_GRANT),
    "build_registry": Decision(set_or_changed, name="builds.registry"),
}
"""The decisions by the dotted path of the setting; a block that may be missing is compared with its defaults."""

UNKNOWN = Decision(changed)
"""The decision about a setting that is not in the table."""
