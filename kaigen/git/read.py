"""Reading a Git repository with the `git` program: the tree at a ref, and where branches meet.

Nothing here writes. Commands run with a fixed locale, without prompts, and against the repository that is
named: `GIT_DIR` and its like, which Git sets for hooks, are not inherited.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kaigen.diagnostics.diagnostic import InputError, SystemFailure

_NOT_INHERITED = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_COMMON_DIR",
)
_ODD = re.compile(r"[\x00-\x20\x7f]")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_NO_FOLDER = ("Not a valid object name", "not a tree object")
_ANY_FAILURE = ("",)
_REGULAR = (b"100644", b"100755", b"100664")


def read_tree_at(repo: Path, ref: str, under: str = "") -> dict[str, bytes]:
    """Every regular file below a folder as it is at a commit, path to bytes.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.
        under: the folder, relative to `repo`, with `/` between parts; empty for `repo` itself.

    Returns:
        Paths relative to the folder, with `/` between parts; what is not UTF-8 in them as surrogate escapes.
        Empty when there was no such folder. Symbolic links and submodules are left out.

    Raises:
        InputError: not a repository (KG0802), no such ref (KG0801), or `under` leaves it (KG0804).
        SystemFailure: git is missing or fails.
    """
    commit = resolve(repo, ref)
    folder = _folder(repo, under)
    listed = _git(repo, ["ls-tree", "-r", "-z", "--full-tree", f"{commit}:{folder}"], fine=_NO_FOLDER)
    if listed is None:
        return {}
    files: list[tuple[str, bytes]] = []
    for entry in listed.split(b"\0"):
        meta, tab, name = entry.partition(b"\t")
        if tab:
            mode, _, oid = meta.split(b" ", 2)
            if mode in _REGULAR:
                files.append((name.decode("utf-8", "surrogateescape"), oid))
    blobs = _blobs(repo, sorted({oid for _, oid in files}))
    return {name: blobs[oid] for name, oid in files}


def resolve(repo: Path, ref: str) -> str:
    """The commit that a ref names, as its full hash.

    Raises:
        InputError: not a repository (KG0802), or no such ref (KG0801) with the nearest one as a hint.
        SystemFailure: git is missing or fails.
    """
    found = None
    # A ref that begins with a dash would be an option, and none may hold blanks or control characters.
    if ref and not ref.startswith("-") and not _ODD.search(ref):
        found = _git(repo, ["rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"], fine=_ANY_FAILURE)
    else:
        require_repository(repo)
    commit = (found or b"").decode("ascii", "replace").strip()
    # `^main` is a name that Git takes, of all commits but these.
    if _COMMIT.fullmatch(commit):
        return commit
    raise _unknown_ref(repo, ref)


def head_commit(repo: Path) -> str:
    """The commit that is checked out, as its full hash.

    Raises:
        InputError: not a repository (KG0802), or it has no commit yet (KG0801).
        SystemFailure: git is missing or fails.
    """
    return resolve(repo, "HEAD")


def merge_base(repo: Path, ref: str) -> str:
    """The commit at which what is checked out went its own way from a ref.

    Raises:
        InputError: as for `resolve`, or the two have nothing in common that is known here (KG0803).
        SystemFailure: git is missing or fails.
    """
    commit, head = resolve(repo, ref), head_commit(repo)
    found = _git(repo, ["merge-base", commit, head], fine=())
    if found is not None:
        return found.decode("ascii").split()[0]
    hint = (
        "the clone is shallow: fetch the whole history, with 'git fetch --unshallow' or 'fetch-depth: 0'"
        if _is_shallow(repo)
        else "name a ref that the checked-out branch was made from"
    )
    raise InputError.of("KG0803", f"HEAD and '{ref}' have no commit in common", hint=hint)


def is_dirty(repo: Path, under: str = "") -> bool:
    """Whether the working tree has changes that are not committed, new files included.

    Args:
        repo: the repository, or any folder in its working tree.
        under: the only folder to look at, relative to `repo`; empty for the whole of `repo`.

    Raises:
        InputError: not a repository (KG0802), or `under` leaves it (KG0804).
        SystemFailure: git is missing or fails.
    """
    folder = _relative(under)
    found = _git(
        repo,
        [
            "-c",
            "core.fsmonitor=false",
            "status",
            "--porcelain",
            "-z",
            "--untracked-files=all",
            "--",
            folder or ".",
        ],
    )
    return bool(found)


def require_repository(repo: Path) -> None:
    """Raise `InputError` (KG0802) unless the folder lies in a Git repository."""
    _git(repo, ["rev-parse", "--git-dir"])


def _folder(repo: Path, under: str) -> str:
    """The folder relative to the top of the repository, without slashes around it."""
    prefix = _git(repo, ["rev-parse", "--show-prefix"]) or b""
    # Git ends the line; the folder's own name may hold any other character.
    inside = prefix.decode("utf-8", "surrogateescape").removesuffix("\n").strip("/")
    return "/".join(part for part in (inside, _relative(under)) if part)


def _relative(under: str) -> str:
    parts = [part for part in under.split("/") if part not in ("", ".")]
    if under.startswith("/") or ".." in parts or "\0" in under:
        hint = "name a folder relative to the repository"
        raise InputError.of("KG0804", f"'{under}' is not a folder of the repository", hint=hint)
    return "/".join(parts)


def _blobs(repo: Path, oids: Sequence[bytes]) -> dict[bytes, bytes]:
    """The contents of these objects, from one process."""
    if not oids:
        return {}
    answer = _git(repo, ["cat-file", "--batch"], b"\n".join(oids) + b"\n") or b""
    found: dict[bytes, bytes] = {}
    start = 0
    for oid in oids:
        end = answer.index(b"\n", start)
        fields = answer[start:end].split(b" ")
        if len(fields) != 3:
            raise SystemFailure(
                f"git has no content for object {oid.decode('ascii')}",
                hint="the clone is partial or damaged: fetch again, or run 'git fsck'",
            )
        size = int(fields[2])
        found[oid] = answer[end + 1 : end + 1 + size]
        start = end + 1 + size + 1
    return found


def _unknown_ref(repo: Path, ref: str) -> InputError:
    from kaigen.diagnostics.suggest import nearest

    listed = _git(repo, ["for-each-ref", "--format=%(refname:short)"]) or b""
    names = [name for name in listed.decode("utf-8", "replace").split("\n") if name]
    message = f"there is no commit '{_ODD.sub('?', ref)}' in this repository"
    if not names:
        return InputError.of("KG0801", message, hint="commit something first")
    # `main` is often only there as `origin/main`, and the other way round before there is a remote.
    same_end = [name for name in names if name.rpartition("/")[2] == ref or ref.partition("/")[2] == name]
    meant = same_end or nearest(ref, names)
    hint = f"did you mean '{meant[0]}'?" if meant else ""
    remote, slash, branch = ref.partition("/")
    remotes = (_git(repo, ["remote"]) or b"").decode("utf-8", "replace").split()
    if slash and remote in remotes:
        hint = f"fetch it first: git fetch {remote} {branch}"
    elif not hint and _is_shallow(repo):
        hint = "the clone is shallow: fetch more of it, with 'git fetch --unshallow' or 'fetch-depth: 0'"
    return InputError.of("KG0801", message, hint=hint)


def _is_shallow(repo: Path) -> bool:
    return _git(repo, ["rev-parse", "--is-shallow-repository"]) == b"true\n"


def _git(
    repo: Path, args: Sequence[str], given: bytes = b"", *, fine: tuple[str, ...] | None = None
) -> bytes | None:
    """What git prints; with `fine`, None when it fails without a word or with one of these messages."""
    env = {key: text for key, text in os.environ.items() if key not in _NOT_INHERITED}
    env |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }
    try:
        done = subprocess.run(
            ["git", *args], cwd=repo, env=env, input=given, capture_output=True, check=False
        )
    except FileNotFoundError as error:
        if error.filename == "git":
            raise SystemFailure(
                "git is not installed or not on the PATH", hint="install git 2.20 or later"
            ) from None
        raise InputError.of("KG0802", f"there is no folder '{repo}'") from None
    except NotADirectoryError:
        raise InputError.of("KG0802", f"'{repo}' is not a folder") from None
    except OSError as error:
        raise SystemFailure(f"git cannot be run: {error.strerror or error}") from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace").strip()
    if "not a git repository" in said:
        hint = "run it in a clone, or 'git init' and commit first"
        raise InputError.of("KG0802", f"'{repo}' is not in a Git repository", hint=hint)
    expected = fine is not None and (not said or any(text in said for text in fine))
    if expected and "dubious ownership" not in said:
        return None
    last = said.removeprefix("fatal: ").partition("\n")[0] or f"exit code {done.returncode}"
    raise SystemFailure(f"git {_subcommand(args)} failed: {last}")


def _subcommand(args: Sequence[str]) -> str:
    return args[2] if args[0] == "-c" else args[0]
