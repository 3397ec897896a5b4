"""Rules for ConfigMaps and Secrets, and for the pods that use them."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.diff.formatting import listing
from kaigen.diff.model import Json
from kaigen.diff.objects import Obj, get, get_list, get_text
from kaigen.diff.pods import pod_templates
from kaigen.diff.rules.case import Case, Finding, under

CONFIG = frozenset({"ConfigMap", "Secret"})
EXTERNAL = frozenset({"ExternalSecret.external-secrets.io", "SealedSecret.bitnami.com"})


def data_changed(case: Case) -> Iterator[Finding]:
    """Data changed under the same name: only pods that mount it get the change."""
    old, new = case.pair
    fields = ("data", "binaryData", "stringData")
    changed = any(get(old.data, field) != get(new.data, field) for field in fields)
    if not changed or get(old.data, "immutable") is True:
        return
    mounted, fixed = _consumers(new, case.siblings())
    if fixed:
        yield (
            "notice",
            f"{listing(fixed)} keep{'s' if len(fixed) == 1 else ''} the old values until restarted: "
            "it is used as an environment variable or with subPath",
        )
    if mounted or not fixed:
        who = f"pods of {listing(mounted)}" if mounted else "pods that mount it"
        yield "info", f"{who} get it within minutes, without a restart (the name has no content hash)"


def _consumers(config: Obj, siblings: list[Obj]) -> tuple[list[str], list[str]]:
    """Return the objects that mount it, and those that read it only at container start."""
    kind = "configMap" if config.kind == "ConfigMap" else "secret"
    mounted: list[str] = []
    fixed: list[str] = []
    for obj in siblings:
        for template in pod_templates(obj).values():
            volumes = {
                get_text(volume, "name")
                for volume in get_list(template.spec, "volumes")
                if config.name in _volume_names(volume, kind)
            }
            for _, container in template.containers():
                reads = _reads_env(container, kind, config.name)
                for mount in get_list(container, "volumeMounts"):
                    if get_text(mount, "name") in volumes:
                        if get_text(mount, "subPath") or get_text(mount, "subPathExpr"):
                            reads = True
                        else:
                            mounted.append(str(obj))
                if reads:
                    fixed.append(str(obj))
    return list(dict.fromkeys(mounted)), list(dict.fromkeys(fixed))


def _volume_names(volume: Json, kind: str) -> set[str]:
    key = "name" if kind == "configMap" else "secretName"
    found = {get_text(volume, kind, key)}
    for source in get_list(volume, "projected", "sources"):
        found.add(get_text(source, kind, "name"))
    return found - {""}


def _reads_env(container: Json, kind: str, name: str) -> bool:
    for item in get_list(container, "env"):
        if get_text(item, "valueFrom", f"{kind}KeyRef", "name") == name:
            return True
    return any(get_text(item, f"{kind}Ref", "name") == name for item in get_list(container, "envFrom"))


def config_replaced(case: Case) -> Iterator[Finding]:
    """Data with a new name: objects that use it change as well."""
    old, new = case.pair
    if old.name != new.name:
        yield "info", f"{new} replaces {old}: pods switch to it when they are updated"


def config_removed(case: Case) -> Iterator[Finding]:
    """Data was removed."""
    mounted, fixed = _consumers(case.obj, case.siblings())
    users = [*mounted, *(name for name in fixed if name not in mounted)]
    if users:
        use = "uses" if len(users) == 1 else "use"
        yield "danger", f"is deleted, but {listing(users)} still {use} it: new pods will not start"
    else:
        yield "info", "is deleted; other pods that use it will not start again"


def secret_source(case: Case) -> Iterator[Finding]:
    """An object that creates a Secret from an external source."""
    if case.new is None:
        yield "notice", "the Secret that it created is deleted with it, unless it is set to be retained"
    elif case.old is not None and any(under(change, "spec") for change in case.fields):
        yield "notice", "the Secret's content changes; pods get it if they mount it, or after a restart"
