"""Conditions of metadata: labels and annotations that controllers obey."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.catalog.controllers import host_keys, raw_keys
from kaigen.config.controller_keys import allowed_entries, is_controller_key, is_raw_key, key_pattern
from kaigen.config.globs import entry_pattern, glob_pattern, host_pattern, is_entry_granted, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping
from kaigen.tenancy.cel import at, matches, text, texts
from kaigen.tenancy.condition import Refusal

FREE = r"^((app|apps|batch)\.kubernetes\.io|(argocd\.argoproj|kueue\.x-k8s)\.io|kaigen\.dev)/"
"""The beginning of the most frequent keys, for which no policy searches the table of controllers."""

KEPT = "variables.kept"
"""The labels and annotations of the object before an update, as `KEY=VALUE`."""

_FIELDS = (("annotations", "the annotation"), ("labels", "the label"))


class ControllerKeys(Struct, frozen=True):
    """Metadata whose labels and annotations are granted to the tenant where controllers obey them.

    Attributes:
        keeps: whether an update may keep what the object had before, because controllers set annotations too.
        grant: field of a tenant.
    """

    keeps: bool = False
    grant: str = "annotations"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each label and annotation of a controller that no entry matches."""
        granted = (*tenant.granted(self.grant), *allowed_entries())
        for field, noun in _FIELDS:
            for key, item in mapping(mapping(value).get(field)).items():
                if is_controller_key(str(key)) and not is_entry_granted(str(key), item, granted):
                    yield Refusal(f"`{key}`", (field, str(key)), noun)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each label and annotation."""
        granted = (*tenant.granted(self.grant), *allowed_entries())
        both = ", ".join(f"{at(value, (field,))}.orValue({{}})" for field, _ in _FIELDS)
        entry = "(key + '=' + m[key])"
        tests = [f"key.matches({text(FREE)})", f"!{matches('key', key_pattern())}"]
        tests.append(matches(entry, entry_pattern(granted)))
        if self.keeps:
            tests.append(f"{entry} in {KEPT}")
        return f"[{both}].all(m, m.all(key, {' || '.join(tests)}))"


class NoRawKeys(Struct, frozen=True):
    """Metadata without annotations that controllers insert into their configuration."""

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each such annotation."""
        for key in mapping(mapping(value).get("annotations")):
            if is_raw_key(str(key)):
                yield Refusal(f"`{key}`", ("annotations", str(key)))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each annotation."""
        notes = f"{at(value, ('annotations',))}.orValue({{}})"
        return f"!{notes}.exists(key, {matches('key', glob_pattern(raw_keys()))})"


class AnnotatedHosts(Struct, frozen=True):
    """Metadata whose annotations name only hosts that the tenant is granted."""

    grant: str = "hosts"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each host; what is not separated by commas is one host, which no tenant has."""
        for key, item in mapping(mapping(value).get("annotations")).items():
            if key in host_keys():
                for host in str(item).replace(", ", ",").split(","):
                    if not is_host_granted(host, tenant.granted(self.grant)):
                        yield Refusal(f"`{host}`", ("annotations", str(key)))

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each host."""
        note = f"{at(value, ('annotations',))}[?key]"
        hosts = f"{note}.value().replace(', ', ',').split(',')"
        pattern = host_pattern(tenant.granted(self.grant))
        return f"{texts(host_keys())}.all(key, !{note}.hasValue() || {hosts}.all(h, {matches('h', pattern)}))"
