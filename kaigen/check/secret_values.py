"""Checks that no secret is in Git: no Secret with values, no value that looks like a credential."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from kaigen.check import codes
from kaigen.core.credentials import SHORTEST, looks_like_secret, may_contain_secret
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import Problem
from kaigen.kubernetes.manifest import Object, entries, group_of, mapping
from kaigen.kubernetes.pods import Container

ALTERNATIVES = "refer to a Secret in the cluster, or use an ExternalSecret, a SealedSecret or a SOPS-encrypted Secret"
SECRET_NAME = r"(?:\w*_)?(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|SECRET|API_?KEY|SECRET_KEY|ACCESS_KEY|PRIVATE_KEY)"


def secret_findings(obj: Object) -> list[Problem]:
    """Report the values of a Secret, and every value of another object that looks like a credential."""
    if obj.get("kind") == "Secret" and group_of(obj) == "":
        return list(_secret_values(obj))
    texts: list[str] = []
    _collect(obj, texts)
    return list(_long_strings(obj, ())) if may_contain_secret("\n".join(texts)) else []


def literal_findings(container: Container) -> Iterator[Problem]:
    """Report variables with the name of a secret and a literal value that does not look like a credential."""
    for number, variable in entries(container.body.get("env")):
        name, value = variable.get("name"), variable.get("value")
        if not isinstance(name, str) or not isinstance(value, str) or not value or not _is_secret_name(name):
            continue
        if not value.startswith(("$(", "/")) and not looks_like_secret(f"{name}={value}"):
            yield Problem(
                codes.SECRET_LITERAL,
                f"the variable {name} has a literal value",
                (*container.path, "env", number, "value"),
                f"if the value is secret, {ALTERNATIVES}",
                Severity.WARNING,
            )


@lru_cache(maxsize=10_000)
def _is_secret_name(name: str) -> bool:
    return re.fullmatch(SECRET_NAME, name, re.IGNORECASE) is not None


def _secret_values(obj: Object) -> Iterator[Problem]:
    """Report the values of a Secret, except those that SOPS encrypted."""
    for field in ("data", "stringData"):
        for key, value in mapping(obj.get(field)).items():
            if not ("sops" in obj and isinstance(value, str) and value.startswith("ENC[")):
                message = f"the Secret contains a value for `{key}`"
                yield Problem(codes.SECRET_OBJECT, message, (field, str(key)), ALTERNATIVES)


def _collect(value: dict[str, object] | list[object], texts: list[str]) -> None:
    """Collect all strings long enough for a credential, the longest with their keys."""
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


def _long_strings(value: object, path: FieldPath) -> Iterator[Problem]:
    if isinstance(value, dict):
        name = value.get("name")
        for key, child in value.items():
            if isinstance(child, str):
                label = name if key == "value" and isinstance(name, str) else key
                yield from _credential(str(label), child, (*path, str(key)))
            elif isinstance(child, (dict, list)):
                yield from _long_strings(child, (*path, str(key)))
    elif isinstance(value, list):
        for number, child in enumerate(value):
            if isinstance(child, str):
                yield from _credential("", child, (*path, number))
            elif isinstance(child, (dict, list)):
                yield from _long_strings(child, (*path, number))


def _credential(name: str, value: str, path: FieldPath) -> Iterator[Problem]:
    if len(value) < SHORTEST:
        return
    found = looks_like_secret(value) or looks_like_secret(f"{name}={value}")
    if found:
        yield Problem(codes.SECRET_VALUE, f"looks like {found}", path, ALTERNATIVES)
