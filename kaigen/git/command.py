"""Calling the `git` program to publish: the user's own configuration, no prompt, no credential in any message.

Everything runs in the user's repository, so that its remotes, credential helpers, hooks and signing keys hold;
objects are written there, as `git commit` would, but no index, no working tree and no branch of it is touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kaigen.diagnostics.diagnostic import InputError, KaigenError, SystemFailure

_NOT_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_COMMON_DIR",
    "GIT_QUARANTINE_PATH",
)
_SETTINGS = tuple(
    part
    for setting in (
        "gc.auto=0",
        "maintenance.auto=false",
        "core.fsmonitor=false",
        "core.splitIndex=false",
        "core.untrackedCache=false",
        "core.quotePath=false",
        "index.sparse=false",
        "i18n.commitEncoding=UTF-8",
        "log.showSignature=false",
        # Rather an error than a name that git made up from those of the user and the machine.
        "user.useConfigOnly=true",
    )
    for part in ("-c", setting)
)
_USERINFO = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s'\"]*@")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_URL = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*://|[^/:\s]+:|/|\.{1,2}/)")
_ADDED_REMOTE = "kaigen-publish"

PATIENCE_S = 120
"""Seconds without a byte after which a remote is given up, unless git is configured for others; git itself would
wait for ever. A hook on the other side may take its time."""

_REFUSED = (
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
_UNKNOWN = (
    "does not appear to be a git repository",
    "repository not found",
    "Repository not found",
    "The requested URL returned error: 404",
    "' not found",
    "No such remote",
)
_MOVED = (
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


class BranchMoved(KaigenError):
    """The branch has another tip by now: look again."""


def mask(text: str) -> str:
    """The text without user names, passwords and tokens in URLs, and without control characters."""
    return _CONTROL.sub("", _USERINFO.sub(r"\1***@", text))


def without_userinfo(url: str) -> str:
    """A repository's URL without user name and password, as it may stand in a commit."""
    return _CONTROL.sub("", _USERINFO.sub(r"\1", url))


@dataclass(frozen=True, slots=True)
class Failure:
    """A git that did not end well: what it printed."""

    out: str
    err: str
    code: int


@dataclass(frozen=True, slots=True)
class Git:
    """The git program in one repository, and one remote of it.

    Attributes:
        folder: the repository, or any folder in its working tree.
        remote: name of the remote.
        shown: the remote as it may be printed.
        extra: variables for every call.
    """

    folder: Path
    remote: str
    shown: str
    extra: Mapping[str, str]

    @classmethod
    def of(cls, folder: Path, remote: str) -> Git:
        """Git for a remote, given by name or as a URL.

        Raises:
            InputError: KG0902, for what is neither.
        """
        if not remote or remote.startswith("-") or _CONTROL.search(remote):
            hint = "give the name of a remote, as `git remote` lists it, or a URL"
            raise InputError.of("KG0902", f"`{mask(remote)}` cannot be a remote", hint=hint)
        named = cls(folder, remote, mask(remote), _patience(folder))
        if remote in named.text("remote").split("\n"):
            return named
        if not _URL.match(remote):
            from kaigen.diagnostics.suggest import did_you_mean

            known = [name for name in named.text("remote").split("\n") if name]
            hint = did_you_mean(remote, known) or (
                f"known: {', '.join(known)}" if known else "add one: git remote add origin URL"
            )
            raise InputError.of("KG0902", f"this repository has no remote `{remote}`", hint=hint)
        # By a variable, since every user of the machine can read command lines.
        count = int(os.environ.get("GIT_CONFIG_COUNT") or 0)
        extra = {
            **named.extra,
            "GIT_CONFIG_COUNT": str(count + 1),
            f"GIT_CONFIG_KEY_{count}": f"remote.{_ADDED_REMOTE}.url",
            f"GIT_CONFIG_VALUE_{count}": remote,
        }
        return cls(folder, _ADDED_REMOTE, mask(remote), extra)

    def call(
        self,
        args: Sequence[str],
        *,
        given: bytes = b"",
        env: Mapping[str, str] | None = None,
        said: list[str] | None = None,
    ) -> bytes | Failure:
        """What git prints on standard output, or how it failed.

        Args:
            args: the command and its arguments.
            given: its standard input.
            env: more variables.
            said: takes what it prints on standard error when it ends well.
        """
        import subprocess

        inherited = {key: text for key, text in os.environ.items() if key not in _NOT_INHERITED}
        fixed = {
            "LC_ALL": "C",
            "GIT_TERMINAL_PROMPT": "0",
            "GCM_INTERACTIVE": "never",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }
        # Programs that ask for a password in a window would hang a pipeline just as a terminal does.
        if "GIT_SSH_COMMAND" not in inherited and "GIT_SSH" not in inherited:
            fixed["SSH_ASKPASS_REQUIRE"] = "never"
        try:
            done = subprocess.run(
                ["git", *_SETTINGS, *args],
                cwd=self.folder,
                env={**inherited, **fixed, **self.extra, **(env or {})},
                input=given,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError:
            raise SystemFailure(
                "git is not installed or not on the PATH", hint="install git 2.31 or later"
            ) from None
        except OSError as error:
            raise SystemFailure(f"git cannot be run: {error.strerror or error}") from None
        if done.returncode == 0:
            if said is not None:
                said.append(done.stderr.decode("utf-8", "replace"))
            return done.stdout
        out = done.stdout.decode("utf-8", "replace")
        err = done.stderr.decode("utf-8", "replace").strip()
        return Failure(out, err, done.returncode)

    def run(self, args: Sequence[str], *, given: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What git prints.

        Raises:
            SystemFailure: it fails.
        """
        done = self.call(args, given=given, env=env)
        if isinstance(done, Failure):
            raise SystemFailure(f"git {args[0]} failed: {last_words(done)}")
        return done

    def text(self, *args: str) -> str:
        """What git prints, as text without the last line end; empty when it fails."""
        done = self.call(args)
        return "" if isinstance(done, Failure) else done.decode("utf-8", "replace").removesuffix("\n")

    def failure(self, done: Failure) -> KaigenError:
        """What a failed talk with the remote comes to, in words that help."""
        said = f"{done.out}\n{done.err}"
        if any(words in said for words in _MOVED):
            return BranchMoved(f"the branch moved on {self.shown}")
        told = remote_words(done.err)
        if "[remote rejected]" in said or "pre-receive hook declined" in said:
            match = re.search(r"\[remote rejected\] \(?(.*?)\)?$", said, re.MULTILINE)
            why = mask(match[1]) if match else "no reason given"
            hint = "the remote says: " + "; ".join(told) if told else "ask who keeps the repository"
            if "protected branch" in said.lower() or "GH006" in said:
                return SystemFailure(
                    f"{self.shown} protects the branch: {why}",
                    hint=f"{hint}; or publish with --pull-request",
                )
            return SystemFailure(f"{self.shown} refused the push: {why}", hint=hint)
        for words, message, hint in (
            (
                _REFUSED,
                "refuses the credentials, or asks for some and git has none",
                "set up a credential helper, a token in `http.extraHeader` or an SSH key for this remote",
            ),
            (_UNREACHABLE, "cannot be reached", ""),
            (_UNKNOWN, "is not there, or not for these credentials", "`git remote -v` shows where it leads"),
        ):
            if any(each in said for each in words):
                detail = "" if words is _REFUSED else last_words(done)
                return SystemFailure(f"{self.shown} {message}", hint=hint or detail)
        if told:
            return SystemFailure(
                f"{self.shown} refused: {last_words(done)}", hint="the remote says: " + "; ".join(told)
            )
        return SystemFailure(f"git failed to talk with {self.shown}: {last_words(done)}")


def _patience(folder: Path) -> dict[str, str]:
    """Variables that make Git give up a remote that never answers, unless it is told otherwise."""
    git = Git(folder, "", "", {})
    variables = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": str(PATIENCE_S)}
    if git.text("config", "--get-regexp", "^http\\.(.*\\.)?lowspeed") or not variables.keys().isdisjoint(
        os.environ
    ):
        variables = {}
    ssh = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT"}
    if not git.text("config", "--get-regexp", "^(core\\.sshcommand|ssh\\.variant)$") and ssh.isdisjoint(
        os.environ
    ):
        every = max(PATIENCE_S // 4, 1)
        limits = {"ConnectTimeout": PATIENCE_S, "ServerAliveInterval": every, "ServerAliveCountMax": 4}
        variables["GIT_SSH_COMMAND"] = " ".join(
            ["ssh", *(f"-o {key}={limit}" for key, limit in limits.items())]
        )
    return variables


def last_words(done: Failure) -> str:
    """The line of git's complaint that says most."""
    lines = [
        line for line in mask(done.err).split("\n") if line and not line.startswith(("remote:", "hint:"))
    ]
    for mark in ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return line.removeprefix(mark)
    return lines[-1] if lines else f"exit code {done.code}"


def remote_words(said: str) -> list[str]:
    """The lines that the other side's hooks printed."""
    lines = [mask(line) for line in re.split(r"[\r\n]", said)]
    words = [line.removeprefix("remote:").strip() for line in lines if line.startswith("remote:")]
    return [word for word in words if word and not word.startswith("Resolving deltas")][:12]


def pull_request_url(said: str) -> str:
    """Where GitHub, GitLab, Gitea or Bitbucket offer, in the answer to a push, to open a pull request."""
    for word in remote_words(said):
        match = re.search(r"https?://\S+", word)
        if match and re.search(r"/pull/|/pulls|/pull-requests|merge_requests|/compare/", match[0]):
            return match[0]
    return ""


def check_branch(git: Git, name: str) -> str:
    """The name, if a branch can have it.

    Raises:
        InputError: KG0902.
    """
    plain = name and not name.startswith("-") and not name.startswith("refs/")
    if not plain or isinstance(git.call(["check-ref-format", f"refs/heads/{name}"]), Failure):
        hint = "for example `deploy` or `env/prod`, without `refs/heads/`"
        raise InputError.of(
            "KG0902", f"`{_CONTROL.sub('?', name)}` cannot be the name of a branch", hint=hint
        )
    return name
