"""Rules for ConfigMaps and Secrets, and for the pods that use them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from kaigen.diff.formatting import listing
from kaigen.diff.objects import Obj, get
from kaigen.diff.rules.case import Case, Finding, under
from kaigen.kubernetes.manifest import Object, entries
from kaigen.kubernetes.pods import containers, pod_templates
from kaigen.kubernetes.references import references_of

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
    mounted: list[str] = []
    fixed: list[str] = []
    for obj in siblings:
        body = cast("Object", obj.data)
        paths = [
            one.path
            for one in references_of(body)
            if (one.target.type, one.target.name) == (config.type, config.name)
        ]
        for template in pod_templates(body):
            spec = template.spec_path
            volumes = {
                volume.get("name")
                for number, volume in entries(template.spec.get("volumes"))
                if any(path[: len(spec) + 2] == (*spec, "volumes", number) for path in paths)
            }
            for container in containers(template):
                reads = any(path[: len(container.path)] == container.path for path in paths)
                for _, mount in entries(container.body.get("volumeMounts")):
                    if mount.get("name") in volumes:
                        if mount.get("subPath") or mount.get("subPathExpr"):
                            reads = True
                        else:
                            mounted.append(str(obj))
                if reads:
                    fixed.append(str(obj))
    return list(dict.fromkeys(mounted)), list(dict.fromkeys(fixed))


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
