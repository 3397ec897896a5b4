"""What labels and annotations reach, and the conditions of metadata."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kaigen.catalog.controllers import host_keys, raw_keys, words
from kaigen.config.controller_keys import free_pattern, is_free, is_raw_key, obeyed_by
from kaigen.config.globs import entry_pattern, glob_pattern, host_pattern, is_entry_granted, is_host_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.kind_table import KINDS
from kaigen.kubernetes.manifest import ALL, mapping, steps_of
from kaigen.kubernetes.queues import PRIORITY_LABEL
from kaigen.tenancy.cel import at, matches, texts
from kaigen.tenancy.conditions.values import Granted
from kaigen.tenancy.reach import PODS, TEMPLATES, Reach, Refusal
from kaigen.tenancy.rows.pods import EPHEMERAL_CLAIM

ALLOWED = "variables.allowed"
"""The labels and annotations that every tenant may have, as `KEY` or `KEY=VALUE`."""

KEPT = "variables.kept"
"""The labels and annotations of the object before an update, as `KEY=VALUE`."""

_FIELDS = (("annotations", "the annotation"), ("labels", "the label"))


class GrantedKeys(Struct, frozen=True):
    """Metadata with labels and annotations that need no grant or that the tenant is granted.

    Attributes:
        keeps: whether an update may keep what the object had before, because controllers set annotations too.
        grant: field of a tenant.
    """

    keeps: bool = False
    grant: str = "annotations"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse each other label and annotation."""
        domains, granted = tenant.granted("domains"), tenant.granted(self.grant)
        for field, noun in _FIELDS:
            for key, item in mapping(mapping(value).get(field)).items():
                name = str(key)
                if not is_free(name, item, domains) and not is_entry_granted(name, item, granted):
                    by = obeyed_by(name)
                    yield Refusal(f"`{name}`{by and f', which is read by {by}'}", (field, name), noun)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match each label and annotation, first the key alone, which is short."""
        both = ", ".join(f"{at(value, (field,))}.orValue({{}})" for field, _ in _FIELDS)
        entry = "(key + '=' + m[key])"
        free = matches("key", free_pattern(tenant.granted("domains")))
        tests = [f"({free} && !(key.lowerAscii() in {texts(words())}))", f"key in {ALLOWED}", f"{entry} in {ALLOWED}"]
        if self.keeps:
            tests.append(f"{entry} in {KEPT}")
        granted = tenant.granted(self.grant)
        if keys := [glob for glob in granted if "=" not in glob]:
            tests.append(matches("key", glob_pattern(keys)))
        if entries := [glob for glob in granted if "=" in glob]:
            tests.append(matches(entry, entry_pattern(entries)))
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


_METADATA = (("metadata",),)
_NESTED = {
    row.type: tuple((*steps_of(path), ALL, "metadata") for path in row.claim_templates if "[]" in path)
    for row in KINDS.values()
}
"""Where kinds have the metadata of claims in lists of lists."""

METADATA_REACHES: tuple[Reach, ...] = (
    Reach(
        "queue-priority",
        "the priority class",
        (),
        (("metadata", "labels", PRIORITY_LABEL),),
        Granted("priorityClasses"),
    ),
    Reach(
        "template-queue-priority",
        "the priority class",
        (TEMPLATES,),
        (("labels", PRIORITY_LABEL),),
        Granted("priorityClasses"),
    ),
    Reach("annotated-host", "the host", (), _METADATA, AnnotatedHosts()),
    Reach("template-host", "the host", (TEMPLATES,), ((),), AnnotatedHosts()),
    Reach("snippet", "the annotation", (), _METADATA, NoRawKeys()),
    Reach("annotation", "the label or annotation", (), _METADATA, GrantedKeys(keeps=True)),
    Reach("template-annotation", "the label or annotation", (TEMPLATES,), ((),), GrantedKeys()),
    Reach("claim-annotation", "the label or annotation", (PODS,), ((*EPHEMERAL_CLAIM, "metadata"),), GrantedKeys()),
    *(
        Reach(
            f"{type_.partition('.')[0].lower()}-claim-annotation",
            "the label or annotation",
            (type_,),
            paths,
            GrantedKeys(),
        )
        for type_, paths in _NESTED.items()
        if paths
    ),
)
