"""One comment of kaigen in a pull request on GitHub or a merge request on GitLab, updated by every run.

The comment is the first one of the token's own user that begins with a hidden marker.
"""

from __future__ import annotations

import re

from kaigen.diff.forge import Forge
from kaigen.diff.markdown import MARKER, code_span

_OPEN = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})", re.MULTILINE)


def update_comment(forge: Forge, text: str, *, name: str = "", only_update: bool = False) -> str:
    """Create or update kaigen's comment in the pull request.

    Comments of others stay as they are, even those that begin like kaigen's. Nothing is written for a run that is
    started again after the pull request got another base or other commits: its text is not about them.

    Args:
        forge: the forge of the pull request.
        text: Markdown, with or without kaigen's marker at its start.
        name: distinguishes several comments in one pull request, such as one per environment.
        only_update: update an existing comment, and create none.

    Returns:
        What was done: `created`, `updated`, `unchanged`, `skipped` or `outdated`.

    Raises:
        SystemFailure: the forge rejects the request, or cannot be reached.
    """
    if forge.current() != forge.revision:
        return "outdated"
    plain = text.removeprefix(MARKER).lstrip("\n")
    marker = MARKER
    if name:
        word = re.sub(r"[^A-Za-z0-9._-]", "-", name).replace("--", "-")
        marker = MARKER.replace(" -->", f" of {word} -->")
        plain = f"### {word}\n\n{plain}"
    into = f"_To be merged into {code_span(forge.revision.base)}._"
    body = shorten(f"{marker}\n{into}\n\n{plain}", forge.limit, forge.whole).rstrip("\n")
    for comment in forge.own_comments():
        if comment.body.startswith(marker):
            if comment.body.replace("\r\n", "\n").rstrip("\n") == body:
                return "unchanged"
            forge.update(comment, body)
            return "updated"
    if only_update:
        return "skipped"
    forge.create(body)
    return "created"


def shorten(text: str, limit: int, whole: str = "") -> str:
    """Return the text; cut at the end of a line and followed by a note if it exceeds the limit.

    Args:
        text: Markdown.
        limit: characters.
        whole: address of the complete text; may be empty.
    """
    if len(text) <= limit:
        return text
    where = f" See [the run]({whole}) for the complete text." if whole else ""
    note = f"\n\n_Truncated: a comment has at most {limit:,} characters.{where}_\n"
    kept = text[: limit - len(note) - 200]
    kept = kept[: kept.rfind("\n") + 1] or kept
    fences = _OPEN.findall(kept)
    if len(fences) % 2:
        kept += f"{fences[-1]}\n"
    open_details = kept.count("<details>") - kept.count("</details>")
    return kept + "\n</details>\n" * min(open_details, 10) + note
