"""Names of files and folders in texts that others act on: commit messages, pull requests, logs of pipelines."""

from __future__ import annotations

_PLAIN = frozenset("._-/+=,")


def shown_name(text: str) -> str:
    """Return a name for a commit message, a pull request or the log of a pipeline.

    Letters, digits and `. _ - / + = ,` stay, and any other character becomes `?`. So the name cannot end its line or
    its block, mention a person or an issue, be a command of a runner or a word such as `[skip ci]`, or hide characters.
    """
    return "".join(char if char.isalnum() or char in _PLAIN else "?" for char in text)
