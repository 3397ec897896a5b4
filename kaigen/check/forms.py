"""Checks of the form of single fields: names, paths, ports, amounts of storage.

Sources: the validation code of k8s.io/apimachinery and k8s.io/kubernetes v1.36.3.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import partial

from kaigen.check import codes
from kaigen.check.atoms import Check, Mismatch, int32, quantity, string, wrong_type
from kaigen.core.text import describe
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.kubernetes.names import LABEL_1123, PORT_NAME, QUALIFIED, SUBDOMAIN, is_qualified
from kaigen.kubernetes.quantities import nano
from kaigen.system.lazy_import import lazy_imports

with lazy_imports():
    import zoneinfo

FIELD_PATH = (
    r"metadata\.(?:name|namespace|uid|labels|annotations)|metadata\.(?:labels|annotations)\['[^']+'\]"
    r"|spec\.(?:nodeName|serviceAccountName)|status\.(?:hostIPs?|podIPs?)"
)
DATA_KEY = r"[-._a-zA-Z0-9]{1,253}"
SYSCTL = r"(?:[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?"


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


def share(value: object) -> list[Mismatch] | None:
    """Check for a count, or a percentage up to 100%."""
    mismatch = percent(value)
    if mismatch is None and isinstance(value, str) and int(value[:-1]) > 100:
        return [Mismatch(codes.OUT_OF_RANGE, f"must be at most 100%, not {value}")]
    return mismatch


_CRON_WORDS = re.compile("@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)")
_CRON_HINT = (
    "write minute, hour, day of the month, month and day of the week, or `@hourly`, `@daily`, `@weekly` or `@monthly`"
)
_CRON_SPAN = re.compile(r"@every (?:[0-9]+(?:\.[0-9]+)?(?:ns|us|ms|s|m|h))+")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_CRON_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)


def schedule(value: object) -> list[Mismatch] | None:
    """Check for a schedule as `cron.ParseStandard` of robfig/cron v3 reads it."""
    if not isinstance(value, str):
        return string(value)
    if "TZ" in value:
        hint = "set timeZone next to it"
        return [Mismatch(codes.BAD_VALUE, "a schedule must not have a time zone", hint)]
    if _CRON_WORDS.fullmatch(value) or _CRON_SPAN.fullmatch(value):
        return None
    fields = value.split()
    if len(fields) != 5:
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a schedule such as `0 3 * * *`", _CRON_HINT)]
    for text_, (name, least, most, words) in zip(fields, _CRON_FIELDS, strict=True):
        if not all(_is_cron_range(part, least, most, words) for part in text_.split(",")):
            return [Mismatch(codes.BAD_VALUE, f"`{text_}` is not a number from {least} to {most} ({name})")]
    return None


def _is_cron_range(text: str, least: int, most: int, words: Mapping[str, int]) -> bool:
    span, slash, step = text.partition("/")
    if slash and not (step.isdecimal() and int(step) > 0):
        return False
    if span in ("*", "?"):
        return True
    first, dash, last = span.partition("-")
    numbers = [
        words.get(part.lower(), int(part) if part.isdecimal() else -1) for part in (first, last if dash else first)
    ]
    return least <= numbers[0] <= numbers[1] <= most


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


def target(value: object) -> list[Mismatch] | None:
    """Check for the port of pods that a Service calls; an empty one is its own port (`SetDefaults_Service`)."""
    return None if value in (0, "") and value is not False else port(value)


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


def address(value: object) -> list[Mismatch] | None:
    """Check for an IP address."""
    if not isinstance(value, str):
        return string(value)
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not an IP address")]
    return None


def cluster_ip(value: object) -> list[Mismatch] | None:
    """Check for the address of a Service, or `None`."""
    return None if value == "None" else address(value)


def without_spaces(value: object) -> list[Mismatch] | None:
    """Check for a string that is not empty, and without spaces around it (`validateContainerCommon`)."""
    if isinstance(value, str) and value != value.strip():
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} has spaces around it", f"write {value.strip()}")]
    return text(value)


def provisioner(value: object) -> list[Mismatch] | None:
    """Check for the name of a provisioner: a qualified name in any case (`validateProvisioner`)."""
    if value == "":
        return text(value)
    if not isinstance(value, str) or is_qualified(value.lower()):
        return string(value)
    return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a name such as example.com/driver")]


def relative(value: object) -> list[Mismatch] | None:
    """Check for a path that does not leave its folder (`validateLocalDescendingPath`)."""
    if not isinstance(value, str):
        return string(value)
    if value.startswith("/"):
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a relative path", f"write {value.lstrip('/')}")]
    if ".." in value.split("/"):
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} leads out of its folder")]
    return text(value)


def data_key(value: object) -> list[Mismatch] | None:
    """Check for a key of a ConfigMap or a Secret (`IsConfigMapKey`)."""
    if (isinstance(value, str) and value.startswith("..")) or value == ".":
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not a key of a ConfigMap or a Secret")]
    return _data_key(value)


_data_key = text_of(DATA_KEY, 253, "a key: letters, digits, '-', '_' and '.'")


def time_zone(value: object) -> list[Mismatch] | None:
    """Check for the name of a time zone (`validateTimeZone`)."""
    if not isinstance(value, str):
        return string(value)
    if not value or value.lower() == "local":
        return [Mismatch(codes.BAD_VALUE, f"{describe(value)} is not the name of a time zone", "write Etc/UTC")]
    if _is_zone("UTC") and not _is_zone(value):  # without its files, as on some systems, every zone is unknown
        return [Mismatch(codes.BAD_VALUE, f"unknown time zone {describe(value)}", partial(_zone_hint, value))]
    return None


def _zone_hint(value: str) -> str:
    area = value.partition("/")[0].lower()
    near = [zone for zone in zoneinfo.available_timezones() if zone.partition("/")[0].lower() == area]
    return did_you_mean(value, near) or "write a name of the time zone database, such as `Europe/Berlin` or `Etc/UTC`"


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return False
    return True


FORMS: dict[str, Check] = {
    "amount": amount,
    "cidr": network,
    "clusterip": cluster_ip,
    "cron": schedule,
    "driver": text_of(rf"(?i:{SUBDOMAIN})", 63, "a DNS name"),
    "dns": text_of(SUBDOMAIN, 253, "a DNS name in lower case"),
    "field": text_of(FIELD_PATH, 1024, "a field of the pod such as metadata.name"),
    "header": text_of("[-A-Za-z0-9]+", 1024, "the name of an HTTP header: letters, digits and '-'"),
    "host": text_of(rf"(?:\*\.)?{SUBDOMAIN}", 253, "a DNS name in lower case"),
    "ip": address,
    "key": data_key,
    "label": text_of(LABEL_1123, 63, "a DNS label in lower case"),
    "manager": text_of(rf"{SUBDOMAIN}/[A-Za-z0-9/._~%!$&'()*+,;=:-]+", 63, "a name such as example.com/controller"),
    "path": text_of(r"/[^\0]*", 4096, "a path that starts with /"),
    "percent": percent,
    "pname": _port_name,
    "port": port,
    "provisioner": provisioner,
    "qname": qualified_name,
    "relative": relative,
    "segment": text_of(r"(?!\.\.?$)[^/%]+", 1024, "a name: no '/' and no '%'"),
    "share": share,
    "sysctl": text_of(SYSCTL, 253, "the name of a sysctl such as net.core.somaxconn"),
    "target": target,
    "text": text,
    "trimmed": without_spaces,
    "value": text_of(QUALIFIED, 63, "a label value: letters, digits, and '-', '_', '.' between them", empty=True),
    "zone": time_zone,
}
