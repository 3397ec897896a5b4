"""Does a text hold a credential? For everything that must not reach Git: specs, objects, charts.

Only forms that name themselves are recognised: a known prefix with the right alphabet and length, a key
block, or a key beside a name that says so. Digests, UUIDs and model names pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

# No credential that is recognised here is shorter.
SHORTEST = 12


class _Form(NamedTuple):
    """One form of credential: its name, parts of which every text with it has one, and its exact look."""

    name: str
    hints: tuple[str, ...]
    pattern: str
    holds: Callable[[str], bool] | None = None


def _mixed(token: str) -> bool:
    """Letters and digits together, as random text has and words do not."""
    return any(c.isdigit() for c in token) and any(c.isalpha() for c in token)


def _upper_and_lower(token: str) -> bool:
    return token not in (token.lower(), token.upper())


def _upper_lower_digit(token: str) -> bool:
    return _mixed(token) and token != token.lower() and token != token.upper()


def _no_example(token: str) -> bool:
    """Not the key of the vendor's manual."""
    return not token.endswith("EXAMPLE")


def _literal_password(part: str) -> bool:
    """Not a reference such as $(PASSWORD), nor a row of stars or the word for one."""
    return part.strip("*xX.") != "" and part.lower() not in ("password", "pass", "token", "secret")


# The first group of a pattern, or all of it, is what `holds` judges. Sources: the vendors' documentation of
# their key formats.
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
    _Form(
        "a GitHub token",
        ("gh",),
        r"gh[pousr]_([A-Za-z0-9]{36,255})",
        _upper_and_lower,
    ),
    _Form("a GitHub token", ("github_pat_",), r"(?<!\w)github_pat_[A-Za-z0-9_]{22,255}"),
    _Form(
        "a GitLab token",
        ("gl",),
        r"(?<![\w-])gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent|oas)-([\w-]{20,})",
        _mixed,
    ),
    _Form(
        "a Slack token",
        ("xox",),
        r"(?<![\w-])xox[abeoprs]-([A-Za-z0-9-]{10,})",
        _mixed,
    ),
    _Form("a Slack token", ("xapp-",), r"(?<![\w-])xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    _Form("a Slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/T\w+/B\w+/[A-Za-z0-9]{16,}"),
    _Form("a JSON Web Token", ("eyJ",), r"(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{10,}"),
    _Form("an Anthropic key", ("sk-ant-",), r"(?<![\w-])sk-ant-([\w-]{20,})", _mixed),
    _Form(
        "an OpenAI key",
        ("sk-",),
        r"(?<![\w-])sk-(?:proj|svcacct|admin|None)-([\w-]{20,})",
        _upper_lower_digit,
    ),
    _Form("an API key", ("sk-",), r"(?<![\w-])sk-(?:or-v1-)?([A-Za-z0-9]{20,})(?![\w-])", _mixed),
    _Form("an NVIDIA key", ("nvapi-",), r"(?<![\w-])nvapi-[\w-]{40,}"),
    _Form("a Google API key", ("AIza",), r"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
    _Form("an Azure storage key", ("AccountKey=",), r"AccountKey=[A-Za-z0-9+/]{86}=="),
    _Form("a Docker Hub token", ("dckr_",), r"(?<!\w)dckr_(?:pat|oat)_[\w-]{27,}"),
    _Form("an npm token", ("npm_",), r"(?<!\w)npm_([A-Za-z0-9]{36})(?!\w)", _mixed),
    _Form("a PyPI token", ("pypi-AgE",), r"(?<![\w-])pypi-AgE[\w-]{40,}"),
    _Form(
        "a password in a URL",
        ("@",),
        r"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@$<{(]*:([^\s/:@$<{(]{3,})@[A-Za-z0-9\[]",
        _literal_password,
    ),
)
# A key that only its name tells: 40 characters of base64.
_SECRET_KEY_NAME = r"secret[_-]?(?:access[_-]?)?key(?!ref)"
_SECRET_KEY = rf"(?i:{_SECRET_KEY_NAME}\w{{0,10}})[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9/+]{{40}})(?![\w/+=])"

# For the fast look at much text: hints that harmless text has too, with what follows them in a credential.
_COMMON = {
    "@": r"://[^\s/:@$<{(]*:[^\s/:@$<{(]{3,}@",
    "gh": r"gh[pousr]_",
    "gl": r"gl[a-z]{2,5}-",
    "sk-": r"sk-(?:[a-zA-Z0-9]+-|[A-Za-z0-9]{20})",
}
_RARE = tuple(hint for form in _FORMS for hint in form.hints if hint not in _COMMON)


def may_hold_secret(text: str) -> bool:
    """A fast look: False when `looks_like_secret` finds nothing in `text` or in any part of it.

    Takes any text, such as the printed form of a whole object.
    """
    for hint in _RARE:
        if hint in text:
            return True
    for hint, pattern in _COMMON.items():
        if hint in text and re.search(pattern, text):
            return True
    return _names_secret_key(text)


def looks_like_secret(text: str) -> str | None:
    """The kind of credential that a text holds, as in `a Hugging Face token`, or None.

    Args:
        text: a value, a line, or a whole file. Together with its name (`NAME=value`) a value is also known
        for a
            secret when only the name tells, as with an AWS secret access key.
    """
    if len(text) < SHORTEST:
        return None
    for form in _FORMS:
        if any([hint in text for hint in form.hints]):
            for match in re.finditer(form.pattern, text, re.ASCII):
                if form.holds is None or form.holds(match[match.lastindex or 0]):
                    return form.name
    if _names_secret_key(text):
        for match in re.finditer(_SECRET_KEY, text, re.ASCII):
            if _upper_lower_digit(match[1]) and "EXAMPLE" not in match[1]:
                return "an AWS secret access key"
    return None


def _names_secret_key(text: str) -> bool:
    lower = text.lower()
    return "secret" in lower and "key" in lower and re.search(_SECRET_KEY_NAME, lower) is not None
