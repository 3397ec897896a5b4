"""Nothing secret in Git: no Secret with its values, no value that looks like a credential."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kaigen.check import codes
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, Path, group_of, mapping
from kaigen.kubernetes.pods import Container
from kaigen.secret_scan.detect import SHORTEST, looks_like_secret, may_contain_secret

WAYS_IN = (
    "refer to a Secret of the cluster, or write an ExternalSecret, a SealedSecret or a SOPS-encrypted Secret"
)
SECRET_NAME = (
    r"(?:\w*_)?(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|API_?KEY|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY)"
)

_harmless: set[str] = set()


def secret_findings(obj: Object) -> list[Problem]:
    """A Secret with values, and every value of any object that looks like a credential."""
    if obj.get("kind") == "Secret" and group_of(obj) == "":
        return list(_secret_values(obj))
    texts: list[str] = []
    _collect(obj, texts)
    return list(_walk(obj, ())) if may_contain_secret("\n".join(texts)) else []


def literal_findings(container: Container) -> Iterator[Problem]:
    """Variables that name a secret and hold a literal that does not look like one by itself."""
    listed = container.body.get("env")
    if not isinstance(listed, list):
        return
    for number, variable in enumerate(listed):
        if not isinstance(variable, dict):
            continue
        name, value = variable.get("name"), variable.get("value")
        if not isinstance(name, str) or not isinstance(value, str) or not value or name in _harmless:
            continue
        if not re.fullmatch(SECRET_NAME, name, re.IGNORECASE):
            if len(_harmless) < 10_000:
                _harmless.add(name)
        elif not value.startswith(("$(", "/")) and not looks_like_secret(f"{name}={value}"):
            yield Problem(
                codes.SECRET_LITERAL,
                f"the variable {name} holds a literal value",
                (*container.path, "env", number, "value"),
                f"if it is a secret, {WAYS_IN}",
                Severity.WARNING,
            )


def _secret_values(obj: Object) -> Iterator[Problem]:
    """The values of a Secret, but for those that SOPS encrypted."""
    for field in ("data", "stringData"):
        for key, value in mapping(obj.get(field)).items():
            if not ("sops" in obj and isinstance(value, str) and value.startswith("ENC[")):
                message = f"the Secret holds a value of `{key}`"
                yield Problem(codes.SECRET_OBJECT, message, (field, str(key)), WAYS_IN)


def _collect(value: dict[str, object] | list[object], texts: list[str]) -> None:
    """All strings that are long enough to hold a credential, the longest with their keys."""
    if isinstance(value, dict):
        for key, child in value.items():
            if child.__class__ is str:
                if len(child) >= SHORTEST:
                    texts.append(child if len(child) < 40 else f"{key}={child}")
            elif child.__class__ is dict or child.__class__ is list:
                _collect(child, texts)
    else:
        for child in value:
            if child.__class__ is str:
                if len(child) >= SHORTEST:
                    texts.append(child)
            elif child.__class__ is dict or child.__class__ is list:
                _collect(child, texts)


def _walk(value: object, path: Path) -> Iterator[Problem]:
    if isinstance(value, dict):
        name = value.get("name")
        for key, child in value.items():
            if isinstance(child, str):
                label = name if key == "value" and isinstance(name, str) else key
                yield from _judge(str(label), child, (*path, str(key)))
            elif isinstance(child, (dict, list)):
                yield from _walk(child, (*path, str(key)))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            if isinstance(child, str):
                yield from _judge("", child, (*path, number))
            elif isinstance(child, (dict, list)):
                yield from _walk(child, (*path, number))


def _judge(name: str, value: str, path: Path) -> Iterator[Problem]:
    if len(value) < SHORTEST:
        return
    found = looks_like_secret(value) or looks_like_secret(f"{name}={value}")
    if found:
        yield Problem(codes.SECRET_VALUE, f"looks like {found}", path, WAYS_IN)
