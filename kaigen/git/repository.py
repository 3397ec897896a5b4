"""Reads a Git repository: the files of a commit, the commit of a ref, the merge base. Writes nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from kaigen.diagnostics.errors import InputError, SystemFailure
from kaigen.diagnostics.suggest import nearest
from kaigen.git.runner import Result, run_git

_INVALID_IN_REF = re.compile(r"[\x00-\x20\x7f]")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_NO_FOLDER = ("Not a valid object name", "not a tree object")
_ANY_FAILURE = ("",)
_REGULAR_FILE_MODES = (b"100644", b"100755", b"100664")
_SUBMODULE_MODE = b"160000"
_FETCH_MORE = "the clone is shallow: fetch the whole history with 'git fetch --unshallow' or 'fetch-depth: 0'"


def read_tree_at(repo: Path, ref: str, under: str = "") -> dict[str, bytes]:
    """Return the content of every regular file below a folder at a commit, by path.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.
        under: the folder, relative to `repo`, with `/` as separator; empty for `repo` itself.

    Returns:
        Paths relative to the folder, with `/` as separator; bytes that are not UTF-8 as surrogate escapes.
        Empty when the folder does not exist at that commit. Symbolic links and submodules are skipped;
        `kaigen.git.repository` reads those.

    Raises:
        InputError: not a repository (KG0802), no such ref (KG0801), or a path outside the repository (KG0804): `under`,
            or one in the commit, which Git can store but never checks out.
        SystemFailure: git is missing or fails.
    """
    commit = resolve(repo, ref)
    entries = _entries(repo, commit, under, _REGULAR_FILE_MODES)
    blobs = _read_blobs(repo, sorted(set(entries.values())))
    return {name: blobs[oid] for name, oid in entries.items()}


def submodules_at(repo: Path, ref: str) -> dict[str, str]:
    """Return the commit of every submodule at a commit, by path relative to `repo`.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.

    Raises:
        InputError: as for `read_tree_at`.
        SystemFailure: git is missing or fails.
    """
    entries = _entries(repo, resolve(repo, ref), "", (_SUBMODULE_MODE,))
    return {path: oid.decode("ascii") for path, oid in entries.items()}


def has_commit(folder: Path, commit: str) -> bool:
    """Return whether a folder is the top of a working tree whose repository has a commit.

    Args:
        folder: the folder, which may not exist.
        commit: the full hash.

    Raises:
        InputError: the folder has the files of a bare repository (KG0802).
        SystemFailure: git is missing or fails.
    """
    # The folder of a submodule that is not checked out belongs to the repository above.
    if not folder.is_dir() or _git(folder, ["rev-parse", "--show-prefix"]).strip():
        return False
    return _git_or_none(folder, ["cat-file", "-e", f"{commit}^{{commit}}"], expected=_ANY_FAILURE) is not None


def _entries(repo: Path, commit: str, under: str, modes: Collection[bytes]) -> dict[str, bytes]:
    """Return the objects with some modes below a folder at a commit, by path relative to it."""
    folder = _folder_in_repository(repo, under)
    listing = _git_or_none(repo, ["ls-tree", "-r", "-z", "--full-tree", f"{commit}:{folder}"], expected=_NO_FOLDER)
    found: dict[str, bytes] = {}
    for entry in (listing or b"").split(b"\0"):
        meta, tab, name = entry.partition(b"\t")
        if tab:
            mode, _, oid = meta.split(b" ", 2)
            if mode in modes:
                found[name.decode("utf-8", "surrogateescape")] = oid
    for path in found:
        if any(part in ("", ".", "..") or part.casefold() == ".git" for part in path.split("/")):
            message = f"commit {commit[:12]} has a file at {path!r}, which is outside the repository"
            raise InputError.of("KG0804", message, hint="do not use this commit; Git would not check it out")
    return found


def read_file_at(repo: Path, ref: str, path: str) -> bytes | None:
    """Return the content of a file at a commit; None if there is none.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.
        path: the file, relative to `repo`, with `/` as separator.

    Raises:
        InputError: as for `read_tree_at`.
        SystemFailure: git is missing or fails.
    """
    commit = resolve(repo, ref)
    name = f"{commit}:{_folder_in_repository(repo, path)}"
    found = _git_or_none(repo, ["rev-parse", "--verify", "--quiet", name], expected=_ANY_FAILURE)
    return _git(repo, ["cat-file", "blob", found.decode("ascii").strip()]) if found else None


def resolve(repo: Path, ref: str) -> str:
    """Return the full hash of the commit that a ref names.

    Raises:
        InputError: not a repository (KG0802), or no such ref (KG0801) with the nearest one as a hint.
        SystemFailure: git is missing or fails.
    """
    output = None
    # Git would read a leading dash as an option; blanks and control characters are not allowed in a ref.
    if ref and not ref.startswith("-") and not _INVALID_IN_REF.search(ref):
        output = _git_or_none(repo, ["rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}"], expected=_ANY_FAILURE)
    else:
        require_repository(repo)
    commit = (output or b"").decode("ascii", "replace").strip()
    # Git also accepts `^main`, which means "all commits except these".
    if _COMMIT.fullmatch(commit):
        return commit
    raise _unknown_ref(repo, ref)


def head_commit(repo: Path) -> str:
    """Return the full hash of the checked-out commit.

    Raises:
        InputError: not a repository (KG0802), or it has no commit yet (KG0801).
        SystemFailure: git is missing or fails.
    """
    return resolve(repo, "HEAD")


def merge_base(repo: Path, ref: str) -> str:
    """Return the last commit that HEAD and a ref have in common.

    Raises:
        InputError: as for `resolve`, or this clone knows no common commit (KG0803).
        SystemFailure: git is missing or fails.
    """
    commit, head = resolve(repo, ref), head_commit(repo)
    output = _git_or_none(repo, ["merge-base", commit, head], expected=())
    if output is not None:
        return output.decode("ascii").split()[0]
    hint = _FETCH_MORE if _is_shallow(repo) else "name a ref that shares history with the checked-out branch"
    raise InputError.of("KG0803", f"HEAD and '{ref}' have no commit in common", hint=hint)


def is_dirty(repo: Path, under: str = "") -> bool:
    """Return whether the working tree has uncommitted changes, new files included.

    Args:
        repo: the repository, or any folder in its working tree.
        under: the only folder to check, relative to `repo`; empty for the whole of `repo`.

    Raises:
        InputError: not a repository (KG0802), or `under` is outside it (KG0804).
        SystemFailure: git is missing or fails.
    """
    folder = _relative_folder(under)
    return bool(_git(repo, ["status", "--porcelain", "-z", "--untracked-files=all", "--", folder or "."]))


def known_commits(repo: Path, commits: Collection[str]) -> set[str]:
    """Return those of some commits, by their full hashes, that the clone has.

    Raises:
        InputError: not a repository (KG0802).
        SystemFailure: git is missing or fails.
    """
    if not commits:
        return set()
    names = "".join(f"{commit}\n" for commit in sorted(commits)).encode("ascii")
    lines = _git(repo, ["cat-file", "--batch-check=%(objectname) %(objecttype)"], stdin=names).decode("ascii")
    return {oid for oid, _, kind in (line.partition(" ") for line in lines.splitlines()) if kind == "commit"}


def is_published(repo: Path, commit: str) -> bool:
    """Return whether a commit is on a branch of a remote, as far as the clone knows, or the clone has no remote.

    Args:
        repo: the repository, or any folder in its working tree.
        commit: the full hash.

    Raises:
        SystemFailure: git is missing or fails.
    """
    if not _git(repo, ["remote"]).strip():
        return True
    return bool(_git(repo, ["for-each-ref", "--count=1", f"--contains={commit}", "refs/remotes"]).strip())


def shallow_hint(repo: Path) -> str:
    """Return how to get a commit that a clone does not have."""
    return _FETCH_MORE if _is_shallow(repo) else "fetch the branch that has it, or promote another commit"


def require_repository(repo: Path) -> None:
    """Raise `InputError` (KG0802) unless the folder is in a Git repository."""
    _git(repo, ["rev-parse", "--git-dir"])


def _folder_in_repository(repo: Path, under: str) -> str:
    """Return a folder relative to the top of the repository, without slashes at its ends."""
    prefix = _git(repo, ["rev-parse", "--show-prefix"])
    # Git adds a line end; the folder's own name may have any other character.
    top = prefix.decode("utf-8", "surrogateescape").removesuffix("\n").strip("/")
    return "/".join(part for part in (top, _relative_folder(under)) if part)


def _relative_folder(under: str) -> str:
    parts = [part for part in under.split("/") if part not in ("", ".")]
    if under.startswith("/") or ".." in parts or "\0" in under:
        hint = "give a path relative to the repository"
        raise InputError.of("KG0804", f"'{under}' is not a folder of the repository", hint=hint)
    return "/".join(parts)


def _read_blobs(repo: Path, oids: Sequence[bytes]) -> dict[bytes, bytes]:
    """Return the contents of these objects, read by one process."""
    if not oids:
        return {}
    output = _git(repo, ["cat-file", "--batch"], stdin=b"\n".join(oids) + b"\n")
    contents: dict[bytes, bytes] = {}
    start = 0
    for oid in oids:
        end = output.index(b"\n", start)
        fields = output[start:end].split(b" ")
        if len(fields) != 3:
            raise SystemFailure(
                f"git has no content for object {oid.decode('ascii')}",
                hint="the clone is partial or damaged: fetch again, or run 'git fsck'",
            )
        size = int(fields[2])
        contents[oid] = output[end + 1 : end + 1 + size]
        start = end + 1 + size + 1
    return contents


def _unknown_ref(repo: Path, ref: str) -> InputError:
    listing = _git(repo, ["for-each-ref", "--format=%(refname:short)"])
    names = [name for name in listing.decode("utf-8", "replace").split("\n") if name]
    message = f"this repository has no commit '{_INVALID_IN_REF.sub('?', ref)}'"
    if not names:
        return InputError.of("KG0801", message, hint="make a first commit")
    # `main` often exists only as `origin/main`, or the reverse where no remote is set up yet.
    same_end = [name for name in names if name.rpartition("/")[2] == ref or ref.partition("/")[2] == name]
    candidates = same_end or nearest(ref, names)
    hint = f"did you mean '{candidates[0]}'?" if candidates else ""
    remote, slash, branch = ref.partition("/")
    remotes = _git(repo, ["remote"]).decode("utf-8", "replace").split()
    if slash and remote in remotes:
        hint = f"fetch it first: git fetch {remote} {branch}"
    elif not hint and _is_shallow(repo):
        hint = _FETCH_MORE
    return InputError.of("KG0801", message, hint=hint)


def _is_shallow(repo: Path) -> bool:
    return _git(repo, ["rev-parse", "--is-shallow-repository"]) == b"true\n"


def _git(repo: Path, args: Sequence[str], *, stdin: bytes = b"") -> bytes:
    """Return the output of a command that must succeed."""
    result = run_git(repo, args, stdin=stdin)
    if not result.ok:
        raise _failure(repo, args, result)
    return result.out


def _git_or_none(repo: Path, args: Sequence[str], *, expected: tuple[str, ...]) -> bytes | None:
    """Return the output of a command; None when it fails silently or with one of the expected messages."""
    result = run_git(repo, args)
    if result.ok:
        return result.out
    err = result.err.strip()
    is_expected = not err or any(text in err for text in expected)
    if not is_expected or "not a git repository" in err or "dubious ownership" in err:
        raise _failure(repo, args, result)
    return None


def _failure(repo: Path, args: Sequence[str], result: Result) -> InputError | SystemFailure:
    if "not a git repository" in result.err:
        hint = "run kaigen in a clone, or run 'git init' and commit first"
        return InputError.of("KG0802", f"'{repo}' is not in a Git repository", hint=hint)
    line = result.err.strip().removeprefix("fatal: ").partition("\n")[0] or f"exit code {result.code}"
    return SystemFailure(f"git {args[0]} failed: {line}")


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path is one of the folders or below one; `.` is the folder of every path."""
    return any(folder == "." or path == folder or path.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def read_submodules_at(repo: Path, ref: str, folders: Collection[str]) -> dict[str, bytes]:
    """Return the content of every regular file of the submodules that a commit has in some folders, by path.

    A submodule is read in its place in the working tree, at its commit, with its own submodules.

    Args:
        repo: the repository, or any folder in its working tree.
        ref: branch, tag, commit or any other name of a commit.
        folders: relative to `repo`, with `/` as separator; a submodule may be in one of them, or contain it.

    Raises:
        InputError: as for `read_tree_at`, or this clone does not have a commit of a submodule (KG0805).
        SystemFailure: git is missing or fails.
    """
    files: dict[str, bytes] = {}
    for path, commit in submodules_at(repo, ref).items():
        inner = list(_inside(path, folders))
        if not inner:
            continue
        place = repo / path
        if not has_commit(place, commit):
            raise InputError.of(
                "KG0805",
                f"commit {ref[:12]} has the submodule `{path}` at {commit[:12]}, which this clone does not have",
                hint="run `git submodule update --init --recursive`, and fetch the commit in the submodule",
            )
        found = read_tree_at(place, commit) | read_submodules_at(place, commit, inner)
        files |= {f"{path}/{name}": data for name, data in found.items()}
    return files


def _inside(path: str, folders: Iterable[str]) -> Iterator[str]:
    """Yield the folders as they are in a submodule; those that are elsewhere are left out."""
    for folder in folders:
        if is_below(path, [folder]):
            yield "."
        elif is_below(folder, [path]):
            yield folder.removeprefix(f"{path}/")
