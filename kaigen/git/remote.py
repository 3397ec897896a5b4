"""Git for publishing: a repository together with one of its remotes.

Commands run in the user's repository, so that its remotes, credential helpers, hooks and signing keys apply. Objects
are written there, as `git commit` would write them, but no index, working tree or branch of it changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from kaigen.core.credentials import has_control_characters, mask_urls, without_control_characters
from kaigen.diagnostics.errors import InputError, KaigenError, SystemFailure
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.git.runner import Result, run_git

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

STALL_LIMIT_S = 120
"""Seconds without a byte after which git gives up on a remote, unless the user configured another limit. Git itself
waits forever. Long, because hooks of the remote may be slow."""

_URL = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*://|[^/:\s]+:|/|\.{1,2}/)")
_ADDED_REMOTE = "kaigen-publish"


class Git(Struct, frozen=True):
    """The git program in one repository, and one remote of it.

    Attributes:
        folder: the repository, or any folder in its working tree.
        remote: name of the remote; empty for none.
        label: the remote as it may be printed.
        env: environment variables for every call.
    """

    folder: Path
    remote: str = ""
    label: str = ""
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, remote: str) -> Git:
        """Return git for a remote, given by name or as a URL.

        Raises:
            InputError: KG0902, the remote is neither.
        """
        if not remote or remote.startswith("-") or has_control_characters(remote):
            hint = "give the name of a remote, as `git remote` lists it, or a URL"
            raise InputError.of("KG0902", f"`{mask_urls(remote)}` is not a valid remote", hint=hint)
        named = cls(folder, remote, mask_urls(remote), _stall_limits(folder))
        remotes = [name for name in named.text("remote").split("\n") if name]
        if remote in remotes:
            return named
        if not _URL.match(remote):
            hint = did_you_mean(remote, remotes) or (
                f"known remotes: {', '.join(remotes)}" if remotes else "add one: git remote add origin URL"
            )
            raise InputError.of("KG0902", f"this repository has no remote `{remote}`", hint=hint)
        # In a variable, because every user of the machine can read command lines.
        count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
        env = {
            **named.env,
            "GIT_CONFIG_COUNT": str(count + 1),
            f"GIT_CONFIG_KEY_{count}": f"remote.{_ADDED_REMOTE}.url",
            f"GIT_CONFIG_VALUE_{count}": remote,
        }
        return cls(folder, _ADDED_REMOTE, mask_urls(remote), env)

    def call(self, args: Sequence[str], *, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Result:
        """Run git and return its result, also when it fails.

        Args:
            args: the command and its arguments.
            stdin: standard input.
            env: more environment variables.
        """
        return run_git(self.folder, args, stdin=stdin, env={**self.env, **(env or {})})

    def run(self, args: Sequence[str], *, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """Run git and return its standard output.

        Raises:
            SystemFailure: git fails.
        """
        result = self.call(args, stdin=stdin, env=env)
        if not result.ok:
            raise SystemFailure(f"git {args[0]} failed: {main_error(result)}")
        return result.out

    def text(self, *args: str) -> str:
        """Run git and return its output as text without the last line end; empty when git fails."""
        result = self.call(args)
        return result.out.decode("utf-8", "replace").removesuffix("\n") if result.ok else ""

    def last_commit(self, tip: str, folder: str, form: str, *options: str) -> str:
        """Return the last commit up to a tip that changes a folder, as `git log` prints it; empty without one.

        Args:
            tip: the commit to start from.
            folder: relative to the top of the repository, wherever in it git runs; empty for the top.
            form: the format of `git log`.
            options: more options of `git log`.
        """
        paths = ["--", f":(top,literal){folder}"] if folder else []
        args = ["log", "-1", *options, f"--format={form}", tip, *paths]
        # Paths are literal in all calls, which also rules out `:(top)`.
        result = self.call(args, env={"GIT_LITERAL_PATHSPECS": "0"})
        return result.out.decode("utf-8", "replace").removesuffix("\n") if result.ok else ""

    def is_cut_off(self, commit: str) -> bool:
        """Return whether a commit is the last one of a shallow clone, which then seems to add every file."""
        if self.text("rev-parse", "--is-shallow-repository") != "true":
            return False
        known = self.folder / self.text("rev-parse", "--git-path", "shallow")
        return known.is_file() and commit in known.read_text(encoding="ascii").split()

    def succeeds(self, *args: str) -> bool:
        """Run git and return whether it succeeds."""
        return self.call(args).ok


def check_branch(git: Git, name: str) -> str:
    """Return the name of a branch after checking that it is valid.

    Raises:
        InputError: KG0902.
    """
    plain = bool(name) and not name.startswith(("-", "refs/"))
    if plain and git.succeeds("check-ref-format", f"refs/heads/{name}"):
        return name
    hint = "for example `deploy` or `env/prod`, without `refs/heads/`"
    shown = without_control_characters(name)
    raise InputError.of("KG0902", f"`{shown}` is not a valid branch name", hint=hint)


def _stall_limits(folder: Path) -> dict[str, str]:
    """Return the variables that make git give up on a silent remote; none where the user configured a limit."""
    git = Git(folder)
    env = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": str(STALL_LIMIT_S)}
    if not env.keys().isdisjoint(os.environ) or git.text("config", "--get-regexp", r"^http\.(.*\.)?lowspeed"):
        env = {}
    ssh = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"}
    if ssh.isdisjoint(os.environ) and not git.text("config", "--get-regexp", r"^(core\.sshcommand|ssh\.variant)$"):
        interval = max(STALL_LIMIT_S // 4, 1)
        options = {"ConnectTimeout": STALL_LIMIT_S, "ServerAliveInterval": interval, "ServerAliveCountMax": 4}
        env["GIT_SSH_COMMAND"] = " ".join(["ssh", *(f"-o {name}={value}" for name, value in options.items())])
    return env


DEFAULT_BRANCH = "HEAD"


def remote_commit(url: str, name: str) -> str | None:
    """Return the commit of a tag or a branch of a repository; None if it has neither.

    A tag takes precedence, as in Git itself. Credentials are those of the user's Git.

    Args:
        url: URL of the repository.
        name: short name of the tag or branch, or `HEAD` for the branch that a clone has.

    Raises:
        SystemFailure: the server cannot be reached, or does not show the repository.
    """
    git = Git.of(Path.cwd(), url)
    # An annotated tag is an object of its own; `^{}` is the commit that it names.
    named = [f"refs/tags/{name}^{{}}", f"refs/tags/{name}", f"refs/heads/{name}"]
    names = [name] if name == DEFAULT_BRANCH else named
    lines = git.run(["ls-remote", "--quiet", git.remote, *names]).decode("utf-8", "replace").splitlines()
    found = {ref: commit for commit, _, ref in (line.partition("\t") for line in lines)}
    return next((found[known] for known in names if known in found), None)


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
