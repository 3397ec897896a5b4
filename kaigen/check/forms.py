"""Checks of the form of single fields: names, paths, ports, amounts of storage.

Sources: the validation code of k8s.io/apimachinery and k8s.io/kubernetes v1.36.3.
"""

from __future__ import annotations

import ipaddress
import re

from kaigen.check import codes
from kaigen.check.atoms import Check, Mismatch, int32, quantity, string, wrong_type
from kaigen.core.text import describe
from kaigen.kubernetes.names import LABEL_1123, PORT_NAME, QUALIFIED, SUBDOMAIN, is_qualified
from kaigen.kubernetes.quantities import nano

FIELD_PATH = (
    r"metadata\.(?:name|namespace|uid|labels|annotations)|metadata\.(?:labels|annotations)\['[^']+'\]"
    r"|spec\.(?:nodeName|serviceAccountName)|status\.(?:hostIPs?|podIPs?)"
)
CRON = r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)|@every \S+|\S+(?:\s+\S+){4}"


def text_of(pattern: str, most: int, form: str, *, empty: bool = False) -> Check:
    """Return the check for the form of a string. It remembers valid values."""
    valid: set[object] = set()

    def check(value: object) -> list[Mismatch] | None:
        if value.__class__ is str and value in valid:
            return None
        if not isinstance(value, str):
            return string(value)
        if not value:
            return None if empty else [Mismatch(codes.OUT_OF_RANGE, "must not be empty")]
        if len(value) > most:
            return [Mismatch(codes.OUT_OF_RANGE, f"must have at most {most} characters, not {len(value)}")]
        if not re.fullmatch(pattern, value):
            return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not {form}")]
        if len(valid) < 10_000:
            valid.add(value)
        return None

    return check


def text(value: object) -> list[Mismatch] | None:
    """Check for a string that is not empty."""
    if value == "":
        return [Mismatch(codes.OUT_OF_RANGE, "must not be empty")]
    return string(value)


def qualified_name(value: object) -> list[Mismatch] | None:
    """Check for the key of a label, with or without a prefix."""
    if not isinstance(value, str):
        return string(value)
    if is_qualified(value):
        return None
    return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a name such as app or example.com/app")]


def percent(value: object) -> list[Mismatch] | None:
    """Check for a count, or a percentage such as 25%."""
    if value.__class__ is int:
        if value < 0:
            return [Mismatch(codes.OUT_OF_RANGE, f"must be at least 0, not {value}")]
        return int32(value)
    if not isinstance(value, str):
        return wrong_type("an integer or a percentage such as 25%", value)
    if re.fullmatch(r"[0-9]+%", value):
        return None
    return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a percentage such as 25%")]


_port_name = text_of(PORT_NAME, 15, "a port name: lower-case letters, digits and single '-' between them")


def port(value: object) -> list[Mismatch] | None:
    """Check for the number or name of a port."""
    if value.__class__ is int:
        if 1 <= value <= 65535:
            return None
        return [Mismatch(codes.OUT_OF_RANGE, f"must be between 1 and 65535, not {value}")]
    if not isinstance(value, str):
        return wrong_type("the number or name of a port", value)
    return _port_name(value)


def amount(value: object) -> list[Mismatch] | None:
    """Check for a quantity above zero."""
    mismatch = quantity(value)
    if mismatch is None and (nano(value) or 0) <= 0:
        return [Mismatch(codes.OUT_OF_RANGE, f"must be more than 0, not {value}")]
    return mismatch


def network(value: object) -> list[Mismatch] | None:
    """Check for a range of IP addresses."""
    if not isinstance(value, str):
        return string(value)
    try:
        if "/" in value:
            ipaddress.ip_network(value, strict=False)
            return None
    except ValueError:
        pass
    return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not an address range such as 10.0.0.0/8")]


FORMS: dict[str, Check] = {
    "amount": amount,
    "cidr": network,
    "cron": text_of(CRON, 1024, "a schedule such as `0 3 * * *`"),
    "dns": text_of(SUBDOMAIN, 253, "a DNS name in lower case"),
    "field": text_of(FIELD_PATH, 1024, "a field of the pod such as metadata.name"),
    "host": text_of(rf"(?:\*\.)?{SUBDOMAIN}", 253, "a DNS name in lower case"),
    "label": text_of(LABEL_1123, 63, "a DNS label in lower case"),
    "path": text_of(r"/[^\0]*", 4096, "a path that starts with /"),
    "percent": percent,
    "pname": _port_name,
    "port": port,
    "qname": qualified_name,
    "text": text,
    "value": text_of(QUALIFIED, 63, "a label value: letters, digits, and '-', '_', '.' between them", empty=True),
}
