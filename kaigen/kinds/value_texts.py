"""Texts about a wrong value: what it should be, what it is, and which value was probably meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kaigen.kinds import base
from kaigen.kinds.bucket import LOCATION
from kaigen.kubernetes.buckets import ACCOUNT, CONTAINER

_MEANINGS: dict[str, str] = {
    base.QUANTITY: "a quantity such as `500m`, `2` or `8Gi`",
    base.SIZE: "`auto` or a quantity such as `8Gi`",
    base.DURATION: "a duration such as `90s`, `1h30m` or `2d`",
    base.LIFETIME: "seconds, `never`, or a duration such as `90s`, `1h30m` or `2d`",
    base.DNS_LABEL: "lower-case letters, digits and dashes, starting and ending with a letter or digit",
    base.DNS_SUBDOMAIN: "lower-case letters, digits, dashes and dots, starting and ending with a letter or digit",
    base.LABEL_KEY: "a label key such as `team` or `example.com/team`",
    base.LABEL_VALUE: "letters, digits, `-`, `_` and `.`, starting and ending with a letter or digit",
    base.ENV_NAME: "letters, digits and underscores, not starting with a digit",
    base.PARAM_NAME: "letters, digits, `_`, `-` and `.`, starting with a letter or `_`",
    base.ABSOLUTE_FILE: "an absolute path of a file such as `/content/params.json`",
    base.ABSOLUTE_PATH: "an absolute path such as `/output`",
    base.NO_BLANKS: "characters other than whitespace",
    base.RELATIVE_PATH: "a relative path such as `apps/rendered`",
    LOCATION: "the URI of a bucket such as `s3://acme-models/qwen2.5-0.5b`",
}

_MOVED = {"gpt2": "openai-community/gpt2", "imdb": "stanfordnlp/imdb"}
"""Repositories from the time when they had no owner, as examples. The Hub redirects their old names."""

_QUANTITIES = (base.QUANTITY, base.SIZE)
_DURATIONS = (base.DURATION, base.LIFETIME)

TYPES = {
    "integer": "a whole number",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}
"""The types of JSON Schema in messages."""

_UNITS = {
    **{f"{letter}{end}".lower(): letter for letter in ("k", "M", "G", "T", "P") for end in ("", "B")},
    **{f"{letter}i{end}".lower(): f"{letter}i" for letter in "KMGTP" for end in ("", "b")},
}
"""Units as people write them, in lower case, with the unit of a Kubernetes quantity."""

_SPANS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("d", "day", "days"), "d"),
}


def form_problem(name: str, value: str, pattern: str, examples: Sequence[object] = ()) -> str:
    """Return the message for a text that does not match the pattern of its field.

    Args:
        name: of the field; empty for a key of a map.
        value: the text.
        pattern: regular expression that it must match.
        examples: valid values.
    """
    subject = f"`{name}: {value}`" if name else f"the key `{value}`"
    meaning = _MEANINGS.get(pattern)
    if meaning is None:
        return f"{subject} is not " + (
            f"a value such as `{examples[0]}`" if examples else f"text that matches {pattern}"
        )
    if "such as" not in meaning:
        return f"{subject} may contain only {meaning}"
    reason = _REASONS[pattern](value) if pattern in _REASONS else ""
    return f"{subject} is not {meaning}" + (f": {reason}" if reason else "")


def _path_reason(value: str) -> str:
    """Return why a text is not a relative path; empty when it is unknown."""
    if value.startswith("/"):
        return "it is absolute"
    if ".." in value.split("/"):
        return "`..` leads out of the folder"
    return "" if value.isprintable() else "it has a control character"


_AZURE_URL = re.compile(r"(https?|abfss?|wasbs?)://[^/]*\.(blob|dfs)\.core\.", re.IGNORECASE)
"""Other ways to write a container (sources: KServe, storage URIs; Azure Storage, the ABFS and WASB drivers)."""


def _location_reason(value: str) -> str:
    """Return why a text is not a URI of a bucket; empty when it is unknown."""
    scheme, separator, rest = value.partition("://")
    if _AZURE_URL.match(value):
        return "write a container of Azure as `az://ACCOUNT/CONTAINER/PREFIX`"
    if not separator or scheme not in ("s3", "gs", "az"):
        return "it must start with `s3://`, `gs://` or `az://`"
    if scheme == "az":
        account, separator, rest = rest.partition("/")
        if not separator or not re.fullmatch(ACCOUNT, account):
            return "a container of Azure is `az://ACCOUNT/CONTAINER/PREFIX`, with 3 to 24 lower-case letters and digits"
    bucket, _, prefix = rest.partition("/")
    if scheme == "az" and not re.fullmatch(CONTAINER, bucket):
        return f"the container `{bucket}` is not 3 to 63 lower-case letters, digits and single dashes between them"
    if not 3 <= len(bucket) <= 63:
        return f"the name of a bucket has 3 to 63 characters, not {len(bucket)}"
    if not re.fullmatch(r"[a-z0-9._-]+", bucket):
        return f"the bucket `{bucket}` may contain only lower-case letters, digits, dots, dashes and underscores"
    if not (bucket[0].isalnum() and bucket[-1].isalnum()):
        return f"the bucket `{bucket}` must start and end with a letter or digit"
    for folder in prefix.removesuffix("/").split("/"):
        if not folder:
            return "it has an empty folder name, between two slashes"
        if folder.strip(".") == "":
            return f"`{folder}` is not the name of a folder in a bucket"
        if not re.fullmatch(r"[A-Za-z0-9_.=+-]+", folder):
            return f"`{folder}` may contain only letters, digits, `_`, `.`, `=`, `+` and `-`"
        if not re.match(r"[A-Za-z0-9_]", folder):
            return f"`{folder}` must start with a letter, a digit or `_`"
    return ""


_REASONS = {base.RELATIVE_PATH: _path_reason, LOCATION: _location_reason}
"""Functions that return which rule of a pattern a text breaks."""


def has_meaning(pattern: str) -> bool:
    """Return whether messages describe the pattern in words."""
    return pattern in _MEANINGS


def form_hint(value: str, pattern: str, examples: Sequence[object] = ()) -> str:
    """Return a hint for a value that must become a text of a pattern, with an example of the field."""
    usual = f"a text such as `{examples[0]}`" if examples else "text"
    return nearest_form(value, pattern) or f"write {_MEANINGS.get(pattern, usual)}"


def pattern_text(pattern: str) -> str:
    """Return a description of texts that match a pattern."""
    meaning = _MEANINGS.get(pattern, f"text that matches {pattern}")
    return meaning if "such as" in meaning else f"text of {meaning}"


_VARIABLE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(:?[=-][^}]*)?\}")
"""A variable that Flux replaces in the rendered objects (`postBuild.substitute`)."""

_PLACEHOLDER = re.compile(r"<[^<>]+>")


def nearest_form(value: str, pattern: str) -> str:
    """Return a hint with the text that was probably meant; empty when there is none."""
    meant = ""
    if variable := _VARIABLE.search(value):
        return (
            f"write the value: kaigen checks it before Flux could replace `{variable[0]}`. Set what differs between "
            "clusters in `environments` of kaigen.yaml"
        )
    if _PLACEHOLDER.search(value):
        return "replace the placeholder"
    if pattern == base.REPOSITORY and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        if value in _MOVED:
            return f"did you mean `{_MOVED[value]}`?"
        return "write `owner/name`: old names without an owner have moved, such as `gpt2` to `openai-community/gpt2`"
    if pattern in _QUANTITIES and (match := re.fullmatch(r"([0-9.]+) *([A-Za-z]+)", value)):
        meant = match[1] + _UNITS[match[2].lower()] if match[2].lower() in _UNITS else ""
    elif pattern in _DURATIONS and (match := re.fullmatch(r"([0-9]+) *([A-Za-z]+)", value)):
        meant = match[1] + _SPANS[match[2].lower()] if match[2].lower() in _SPANS else ""
    elif pattern in _DURATIONS and value.isdecimal():
        meant = f"{value}s"
    elif pattern == base.DNS_LABEL:
        meant = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    elif pattern == base.DNS_SUBDOMAIN:
        meant = re.sub(r"[^a-z0-9.]+", "-", value.lower()).strip("-.")
    elif pattern == base.ENV_NAME:
        meant = re.sub(r"[^A-Za-z0-9_]+", "_", f"_{value}" if value[:1].isdigit() else value)
    elif value[:1].isdigit() and not has_meaning(pattern):
        meant = re.sub(r"\s+", "", value)
    return f"did you mean `{meant}`?" if re.search("[A-Za-z0-9]", meant) and re.fullmatch(pattern, meant) else ""


def whole_number(written: str) -> int | None:
    """Return the whole number that a text means: `1_000`, `1,000`, `1e3`, `3.0`, `007`."""
    if re.fullmatch(r"-?0*[0-9]{1,15}|-?[0-9]{1,3}([_,][0-9]{3}){1,4}", written):
        return int(re.sub("[_,]", "", written))
    if re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?([eE][+]?[0-9])?", written) and float(written).is_integer():
        return int(float(written))
    return None


def lower_first(text: str) -> str:
    """Return a sentence for the middle of another one: without its capital, unless that is part of a name or `URL`."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    return text.split(". ")[0].rstrip(".")
