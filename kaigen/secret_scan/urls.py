"""Hides credentials in URLs, and control characters, in what other programs and servers print."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def mask(text: str) -> str:
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
