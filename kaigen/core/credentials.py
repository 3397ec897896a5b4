"""Finds and hides credentials in text: in what is about to reach Git, and in what people read.

Only unmistakable forms count: a known prefix with the right alphabet and length, a key block, or a key after a name
that identifies it. Digests, UUIDs and model names pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from msgspec import Struct

SHORTEST = 12
"""Length of the shortest credential that is recognised."""


class _Form(Struct, frozen=True):
    """One form of credential.

    Attributes:
        name: as messages show it.
        hints: a text without any of these contains no such credential.
        pattern: regular expression of the credential.
        accepts: checks the first group of a match, or all of it.
    """

    name: str
    hints: tuple[str, ...]
    pattern: str
    accepts: Callable[[str], bool] | None = None


def _mixed(token: str) -> bool:
    """Return whether a token has both letters and digits, as random text does."""
    return any(c.isdigit() for c in token) and any(c.isalpha() for c in token)


def _upper_and_lower(token: str) -> bool:
    return token not in (token.lower(), token.upper())


def _upper_lower_digit(token: str) -> bool:
    return _mixed(token) and token != token.lower() and token != token.upper()


def _no_example(token: str) -> bool:
    """Return whether a key is not the one in the vendor's documentation."""
    return not token.endswith("EXAMPLE")


def _literal_password(part: str) -> bool:
    """Return whether a password is not masked and not a placeholder word."""
    return part.strip("*xX.") != "" and part.lower() not in ("password", "pass", "token", "secret")


# Sources: the vendors' documentation of their key formats.
_FORMS = (
    _Form("a private key", ("-----BEGIN",), r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    _Form("a Hugging Face token", ("hf_",), r"hf_([A-Za-z0-9]{30,})", _upper_and_lower),
    _Form("a Hugging Face token", ("api_org_",), r"(?<!\w)api_org_[A-Za-z0-9]{30,}(?!\w)"),
    _Form(
        "an AWS access key ID",
        ("AKIA", "ASIA"),
        r"(?<![A-Za-z0-9/+])(A[KS]IA[A-Z2-7]{16})(?![A-Za-z0-9/+=])",
        _no_example,
    ),
    _Form("a GitHub token", ("gh",), r"gh[pousr]_([A-Za-z0-9]{36,255})", _upper_and_lower),
    _Form("a GitHub token", ("github_pat_",), r"(?<!\w)github_pat_[A-Za-z0-9_]{22,255}"),
    _Form("a GitLab token", ("gl",), r"(?<![\w-])gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent|oas)-([\w-]{20,})", _mixed),
    _Form("a Slack token", ("xox",), r"(?<![\w-])xox[abeoprs]-([A-Za-z0-9-]{10,})", _mixed),
    _Form("a Slack token", ("xapp-",), r"(?<![\w-])xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    _Form("a Slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/T\w+/B\w+/[A-Za-z0-9]{16,}"),
    _Form("a JSON Web Token", ("eyJ",), r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}"),
    _Form("an Anthropic key", ("sk-ant-",), r"(?<![\w-])sk-ant-([\w-]{20,})", _mixed),
    _Form("an OpenAI key", ("sk-",), r"(?<![\w-])sk-(?:proj|svcacct|admin|None)-([\w-]{20,})", _upper_lower_digit),
    _Form("an API key", ("sk-",), r"(?<![\w-])sk-(?:or-v1-)?([A-Za-z0-9]{20,})(?![\w-])", _mixed),
    _Form("an NVIDIA key", ("nvapi-",), r"(?<![\w-])nvapi-[\w-]{40,}"),
    _Form("a Google API key", ("AIza",), r"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
    _Form(
        "an Azure storage key",
        ("AccountKey", "accountKey", "accountkey", "account_key", "ACCOUNT_KEY", "STORAGE_KEY", "storage_key"),
        r"(?i:account_?key|storage_key)[\"']?\s*[:=]\s*[\"']?[A-Za-z0-9+/]{86}==",
    ),
    _Form("an Azure shared access signature", ("sig=",), r"(?<![\w-])sig=(?:[A-Za-z0-9+/]|%2[BbFf]){43}(?:%3[Dd]|=)"),
    _Form("a Docker Hub token", ("dckr_",), r"(?<!\w)dckr_(?:pat|oat)_[\w-]{27,}"),
    _Form("an npm token", ("npm_",), r"(?<!\w)npm_([A-Za-z0-9]{36})(?!\w)", _mixed),
    _Form("a PyPI token", ("pypi-AgE",), r"(?<![\w-])pypi-AgE[\w-]{40,}"),
    _Form(
        "a password in a URL",
        ("@",),
        # Only the end of the scheme: a search for its beginning would take quadratic time.
        r"(?<=[A-Za-z0-9+.-])://[^\s/:@$<{(]*:([^\s/:@$<{(]{3,})@[A-Za-z0-9\[]",
        _literal_password,
    ),
)
# A key that only its name identifies: 40 characters of base64.
_SECRET_KEY_NAME = r"secret[_-]?(?:access[_-]?)?key(?!ref)"
_SECRET_KEY = rf"(?i:{_SECRET_KEY_NAME}\w{{0,10}})[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9/+]{{40}})(?![\w/+=])"

# Hints that ordinary text contains too, each with what follows it in a credential; for the fast check.
_COMMON = {
    "@": r"://[^\s/:@$<{(]*:[^\s/:@$<{(]{3,}@",
    "gh": r"gh[pousr]_",
    "gl": r"gl[a-z]{2,5}-",
    "sk-": r"sk-(?:[a-zA-Z0-9]+-|[A-Za-z0-9]{20})",
}
_RARE = tuple(hint for form in _FORMS for hint in form.hints if hint not in _COMMON)


def may_contain_secret(text: str) -> bool:
    """Return False, quickly, for text in which `looks_like_secret` finds nothing, such as a whole object as text."""
    for hint in _RARE:
        if hint in text:
            return True
    for hint, pattern in _COMMON.items():
        if hint in text and re.search(pattern, text):
            return True
    return _names_secret_key(text)


def looks_like_secret(text: str) -> str | None:
    """Return the kind of credential in a text, such as `a Hugging Face token`, or None.

    Args:
        text: a value, a line or a whole file; `NAME=value` also finds keys that only their name identifies, such as an
            AWS secret access key.
    """
    if len(text) < SHORTEST:
        return None
    for form in _FORMS:
        if any([hint in text for hint in form.hints]):
            for match in re.finditer(form.pattern, text, re.ASCII):
                if form.accepts is None or form.accepts(match[match.lastindex or 0]):
                    return form.name
    if _names_secret_key(text):
        for match in re.finditer(_SECRET_KEY, text, re.ASCII):
            if _upper_lower_digit(match[1]) and "EXAMPLE" not in match[1]:
                return "an AWS secret access key"
    return None


def _names_secret_key(text: str) -> bool:
    lower = text.lower()
    return "secret" in lower and "key" in lower and re.search(_SECRET_KEY_NAME, lower) is not None


WORD = re.compile(r"[^\s\"'`,;\[\](){}]+")
"""A word that may be a credential."""

_RUN = re.compile(r"[A-Za-z0-9/+_=-]{16,}")
_KEY_BLOCK = re.compile(r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----)(.*)", re.DOTALL)


@lru_cache(maxsize=32)
def redact(text: str) -> str:
    """Return the text with the middle of every credential replaced by `…`, one per character, to keep columns."""
    if not may_contain_secret(text):
        return text
    masked = WORD.sub(lambda word: mask(word.group()) if looks_like_secret(word.group()) else word.group(), text)
    if looks_like_secret(masked):
        # Only several words together are a credential: a key block, or a key after its name.
        masked = _KEY_BLOCK.sub(lambda block: block[1] + re.sub(r"\S", "…", block[2]), masked)
        masked = _RUN.sub(lambda run: mask(run.group()), masked)
    return masked


def mask(word: str) -> str:
    """Return a credential with all but its ends replaced by `…`."""
    if len(word) < 3:
        return word
    ends = 3 if len(word) >= 20 else 1
    return word[:ends] + "…" * (len(word) - ends - 1) + word[-1:]


_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def mask_urls(text: str) -> str:
    """Return the text with user names, passwords and tokens in URLs masked, and without control characters."""
    return _CONTROL.sub("", _USERINFO.sub(r"\1***@", text))


def without_userinfo(url: str) -> str:
    """Return a repository URL without user name and password."""
    return _CONTROL.sub("", _USERINFO.sub(r"\1", url))


def has_control_characters(text: str) -> bool:
    """Return whether a text has control characters."""
    return bool(_CONTROL.search(text))


def without_control_characters(text: str) -> str:
    """Return the text with each control character replaced by `?`."""
    return _CONTROL.sub("?", text)
