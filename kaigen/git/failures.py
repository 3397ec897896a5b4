"""What git and the remote print, as errors for the user: no credentials, no control characters."""

from __future__ import annotations

import re

from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.errors import KaigenError, SystemFailure
from kaigen.git.runner import Result

_CREDENTIALS_REFUSED = (
    "Authentication failed",
    "could not read Username",
    "could not read Password",
    "terminal prompts disabled",
    "Permission denied (",
    "HTTP Basic: Access denied",
    "The requested URL returned error: 401",
    "The requested URL returned error: 403",
    "Invalid username or",
)
_UNREACHABLE = (
    "Could not resolve host",
    "Failed to connect",
    "Couldn't connect",
    "Connection refused",
    "Connection timed out",
    "Operation timed out",
    "Operation too slow",
    "Network is unreachable",
    "Connection reset",
    "Empty reply from server",
    "Host key verification failed",
    "unable to look up",
    "SSL certificate problem",
)
_NOT_FOUND = (
    "does not appear to be a git repository",
    "repository not found",
    "Repository not found",
    "The requested URL returned error: 404",
    "' not found",
    "No such remote",
)
_BRANCH_MOVED = (
    "(fetch first)",
    "(non-fast-forward)",
    "(stale info)",
    "(reference already exists)",
    "(failed to update ref)",
    "(failed to lock)",
    "(incorrect old value provided)",
    "(needs force)",
    "cannot lock ref",
)
_MOST_REMOTE_LINES = 12


class BranchMoved(KaigenError):
    """The remote branch has a new tip: read it again and retry."""


def main_error(result: Result) -> str:
    """Return the most useful line of a failed call's error output."""
    lines = [line for line in mask_urls(result.err).split("\n") if line and not line.startswith(("remote:", "hint:"))]
    for mark in ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return lines[-1] if lines else f"exit code {result.code}"


def remote_lines(err: str) -> list[str]:
    """Return the lines that the hooks of the remote printed."""
    lines = [mask_urls(line) for line in re.split(r"[\r\n]", err)]
    messages = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
    return [text for text in messages if text and not text.startswith("Resolving deltas")][:_MOST_REMOTE_LINES]


def pull_request_url(err: str) -> str:
    """Return the URL that GitHub, GitLab, Gitea or Bitbucket offers after a push for opening a pull request."""
    for line in remote_lines(err):
        match = re.search(r"https?://\S+", line)
        if match and re.search(r"/pull/|/pulls|/pull-requests|merge_requests|/compare/", match[0]):
            return match[0]
    return ""


def remote_failure(remote: str, result: Result) -> KaigenError:
    """Return the error for a failed exchange with a remote.

    Args:
        remote: the remote as it may be printed.
        result: the failed call.
    """
    output = f"{result.out.decode('utf-8', 'replace')}\n{result.err}"
    if any(text in output for text in _BRANCH_MOVED):
        return BranchMoved(f"the branch moved on {remote}")
    hook_lines = "; ".join(remote_lines(result.err))
    if "[remote rejected]" in output or "pre-receive hook declined" in output:
        return _rejected(remote, output, hook_lines)
    detail = main_error(result)
    if any(text in output for text in _CREDENTIALS_REFUSED):
        return SystemFailure(
            f"{remote} rejected the credentials, or git has none for it",
            hint="set up a credential helper, a token in `http.extraHeader` or an SSH key for this remote",
        )
    if any(text in output for text in _UNREACHABLE):
        return SystemFailure(f"cannot reach {remote}", hint=detail)
    if any(text in output for text in _NOT_FOUND):
        return SystemFailure(
            f"{remote} does not exist, or these credentials have no access to it",
            hint="check the URL with `git remote -v`",
        )
    if hook_lines:
        return SystemFailure(f"{remote} rejected the request: {detail}", hint=f"remote output: {hook_lines}")
    return SystemFailure(f"git failed to communicate with {remote}: {detail}")


def _rejected(remote: str, output: str, hook_lines: str) -> SystemFailure:
    match = re.search(r"\[remote rejected\] \(?(.*?)\)?$", output, re.MULTILINE)
    reason = mask_urls(match[1]) if match else "no reason given"
    hint = f"remote output: {hook_lines}" if hook_lines else "ask the owner of the repository"
    if "protected branch" in output.lower() or "GH006" in output:
        return SystemFailure(
            f"the branch is protected on {remote}: {reason}", hint=f"{hint}; or publish with --pull-request"
        )
    return SystemFailure(f"{remote} rejected the push: {reason}", hint=hint)
