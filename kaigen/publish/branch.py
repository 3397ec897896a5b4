"""Commits rendered trees to a branch of a remote, on top of its current tip, with a plain push.

No working tree is involved: the branch is read as a list of paths, the trees are merged into it in a temporary
index, and only the push changes anything that others can see. A killed process leaves unreferenced objects or a
finished push. A push is never forced: when another writer was faster the remote rejects it, and publishing starts
again from the new tip.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

from msgspec import Struct

from kaigen.core.credentials import mask_urls
from kaigen.diagnostics.diagnostic import Mark
from kaigen.diagnostics.errors import CheckFailed, InputError, SystemFailure
from kaigen.git.remote import BranchMoved, Git, check_branch, main_error, pull_request_url, remote_failure
from kaigen.git.runner import Result
from kaigen.output.index import INDEX_NAME, parents, parse_index
from kaigen.publish.branch_changes import (
    Entry,
    FolderChanges,
    PublishedFolder,
    commit_message,
    folder_changes,
    read_trailers,
)
from kaigen.publish.results import AppChanges, BranchResult, TreeResult
from kaigen.publish.source import Source, is_checked_out, require_newer

ATTEMPTS = 10
"""How often publishing is tried when others move the branch meanwhile."""
LONGEST_PAUSE_S = 8.0

_NO_IDENTITY = (
    "Please tell me who you are",
    "empty ident name",
    "no email was given",
    "no name was given",
    "unable to auto-detect",
)


class Tree(Struct, frozen=True):
    """The files of one folder of a branch.

    Attributes:
        environment: the environment that they are rendered for; empty for none.
        path: the folder, relative to the branch's top; empty for the top.
        files: content by path relative to the folder.
    """

    environment: str
    path: str
    files: Mapping[str, bytes]


class PublishOptions(Struct, frozen=True):
    """How to publish.

    Attributes:
        message: subject and body of the commit instead of the generated ones.
        sign: whether to sign the commit; None for the setting of git's `commit.gpgSign`.
        pull_request: push to a separate branch, named by its content.
        allow_older: publish even if the branch was rendered from a commit that this source does not contain.
        dry_run: only report what would be done.
    """

    message: str = ""
    sign: bool | None = None
    pull_request: bool = False
    allow_older: bool = False
    dry_run: bool = False


def publish_branch(
    git: Git,
    source: Source,
    branch: str,
    trees: Sequence[Tree],
    options: PublishOptions | None = None,
    *,
    pause: Callable[[float], object] | None = None,
) -> BranchResult:
    """Write trees to a branch of a remote; all other files of the branch stay as they are.

    Args:
        git: the repository of the specs, and the remote.
        source: what was rendered.
        branch: the deploy branch; created if the remote does not have it.
        trees: the folders to write; no folder is inside another.
        options: how to publish.
        pause: waits a number of seconds before the next attempt.

    Raises:
        InputError: KG0601, KG0603 and KG0605 for the branch's content, KG0902 for its name, KG0903 if git has no
            author for commits, KG0904 if a pull request has no base branch.
        CheckFailed: the branch was rendered from a commit that this source does not contain.
        SystemFailure: the remote is unreachable or rejects the push, or signing fails.
    """
    options = options or PublishOptions()
    publication = _Publication(git, source, check_branch(git, branch), trees, options)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return publication.attempt(attempt)
        except BranchMoved:
            # A random time, so that writers that were rejected together do not collide again.
            (pause or sleep)(random.uniform(0.0, min(LONGEST_PAUSE_S, 0.1 * 2**attempt)))
    raise SystemFailure(
        f"`{branch}` on {git.label} changed during each of {ATTEMPTS} attempts to publish",
        hint="nothing was published; try again when fewer pipelines publish at the same time",
    )


class _Publication:
    """One publication, with any number of attempts."""

    def __init__(self, git: Git, source: Source, branch: str, trees: Sequence[Tree], options: PublishOptions) -> None:
        self.git = git
        self.source = source
        self.branch = branch
        self.trees = trees
        self.options = options
        self.oids = [_oids(tree.files, source.commit) for tree in trees]
        self.written: set[str] = set()

    def attempt(self, attempt: int) -> BranchResult:
        """Publish once.

        Raises:
            BranchMoved: another writer pushed in the meantime.
        """
        tip = self._tip(self.branch)
        if tip is None:
            self._require_base()
        entries = self._entries(tip) if tip else {}
        all_changes: list[FolderChanges] = []
        results: list[TreeResult] = []
        for tree, oids in zip(self.trees, self.oids, strict=True):
            changes, apps = self._folder_changes(tree, oids, entries)
            all_changes.append(changes)
            results.append(TreeResult(tree.environment, tree.path, apps, changes.file_counts()))
        changed = [
            tree for tree, changes in zip(self.trees, all_changes, strict=True) if changes.writes or changes.removes
        ]
        if not changed:
            return self._result("unchanged", self.branch, tip or "", "", results, attempt)
        if tip and not self.options.allow_older:
            for tree in changed:
                self._require_newer(tip, tree)
        message = commit_message(self.source, results, self.options.message)
        target = self.branch
        if self.options.pull_request:
            target = self._proposal_branch(tip or "")
            pushed_before = self._tip(target, fetch=False)
            if pushed_before:
                return self._result("unchanged", target, pushed_before, message, results, attempt)
        if self.options.dry_run:
            return self._result("planned", target, "", message, results, attempt)
        commit = self._commit(tip, self._write_tree(tip, all_changes), message)
        url = self._push(commit, target)
        if url is None:
            return self._result("unchanged", target, commit, message, results, attempt)
        status = "proposed" if self.options.pull_request else "published"
        return self._result(status, target, commit, message, results, attempt, url)

    def _result(
        self,
        status: str,
        branch: str,
        commit: str,
        message: str,
        trees: Sequence[TreeResult],
        attempt: int,
        url: str = "",
    ) -> BranchResult:
        return BranchResult(
            remote=self.git.label,
            branch=branch,
            base=self.branch,
            status=status,  # type: ignore[arg-type]
            commit=commit,
            message=message,
            url=url,
            trees=tuple(trees),
            attempts=attempt,
        )

    def _require_base(self) -> None:
        name = self.branch
        if self.options.pull_request:
            hint = "publish once without --pull-request, which makes the branch"
            raise InputError.of("KG0904", f"{self.git.label} has no branch `{name}`", hint=hint)
        if is_checked_out(self.git, self.source, name):
            # Otherwise a branch without history would replace the branch that the user is about to push.
            hint = f"push the branch first: git push {mask_urls(self.git.label)} {name}"
            raise InputError.of("KG0904", f"{self.git.label} has no branch `{name}`", hint=hint)

    def _tip(self, branch: str, *, fetch: bool = True) -> str | None:
        """Return the commit of a branch on the remote, fetched; None when the remote has no such branch."""
        ref = f"refs/heads/{branch}"
        output = self._call_remote(["ls-remote", "--quiet", self.git.remote, ref]).out
        for line in output.decode("utf-8", "replace").split("\n"):
            oid, _, name = line.partition("\t")
            if name == ref:
                if fetch and not self._has_tree(oid):
                    self._fetch(ref)
                    if not self._has_tree(oid):
                        # The branch moved between `ls-remote` and `fetch`.
                        raise BranchMoved(branch)
                return oid
        return None

    def _call_remote(self, args: Sequence[str]) -> Result:
        result = self.git.call(args)
        if not result.ok:
            raise remote_failure(self.git.label, result)
        return result

    def _has_tree(self, oid: str) -> bool:
        return self.git.succeeds("cat-file", "-e", f"{oid}^{{tree}}")

    def _fetch(self, ref: str) -> None:
        options = [
            "--quiet",
            "--no-tags",
            "--no-prune",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            # Moves no ref of the clone: another publication may run at the same time.
            "--refmap=",
        ]
        self._call_remote(["fetch", *options, self.git.remote, ref])

    def _entries(self, tip: str) -> dict[str, Entry]:
        entries = {}
        for line in self.git.run(["ls-tree", "-r", "-z", "--full-tree", tip]).split(b"\0"):
            meta, tab, name = line.partition(b"\t")
            if tab:
                mode, _, oid = meta.decode("ascii").split(" ")
                entries[name.decode("utf-8", "surrogateescape")] = Entry(mode, oid)
        return entries

    def _folder_changes(
        self, tree: Tree, oids: Mapping[str, str], entries: Mapping[str, Entry]
    ) -> tuple[FolderChanges, AppChanges]:
        prefix = f"{tree.path}/" if tree.path else ""
        for path in (tree.path, *parents(tree.path)) if tree.path else ():
            if path in entries:
                hint = "publish to another --path"
                raise InputError.of("KG0601", "a file is in the way of an output folder", mark=Mark(path), hint=hint)
        below = {path.removeprefix(prefix): entry for path, entry in entries.items() if path.startswith(prefix)}
        index = b""
        if INDEX_NAME in below:
            index = self.git.run(["cat-file", "blob", below[INDEX_NAME].oid])
        owned: frozenset[str] = frozenset()
        if index:
            owned, diagnostics = parse_index(index, f"{self.branch}:{prefix}{INDEX_NAME}")
            diagnostics.raise_errors()
        changes = folder_changes(PublishedFolder(tree.path, below, owned, index), tree.files, oids)
        return changes, changes.apps(owned & below.keys(), frozenset(tree.files))

    def _require_newer(self, tip: str, tree: Tree) -> None:
        target = f"`{self.branch}`" + (f", folder {tree.path}," if tree.path else "")
        found = self.git.last_commit(tip, tree.path, "%H%n%B", "--grep=^ *Source-Commit: [0-9a-f]")
        oid, _, message = found.partition("\n")
        oldest = oid or self.git.last_commit(tip, tree.path, "%H", "--max-parents=0")
        if self.git.is_cut_off(oldest):
            # It seems to have written every file that was there.
            raise CheckFailed(
                f"this shallow clone does not have the commit that last published {target.rstrip(',')}",
                hint="fetch the whole history with 'git fetch --unshallow' or 'fetch-depth: 0'",
            )
        trailers = read_trailers(message)
        if "Source-Commit" in trailers:
            require_newer(
                self.git,
                self.source,
                trailers["Source-Commit"],
                trailers.get("Source-Repository", ""),
                target,
                folder=trailers.get("Source-Folder", ""),
            )

    def _proposal_branch(self, tip: str) -> str:
        """Return the branch for a pull request: the same for the same content on the same state of the base."""
        digest = hashlib.sha256(self.branch.encode())
        for tree, oids in zip(self.trees, self.oids, strict=True):
            last = self.git.last_commit(tip, tree.path, "%H")
            digest.update(f"\0{tree.path}\0{last}\0{sorted(oids.items())}".encode("utf-8", "surrogateescape"))
        return f"kaigen/{digest.hexdigest()[:16]}"

    def _write_tree(self, tip: str | None, all_changes: Sequence[FolderChanges]) -> str:
        """Write the tree object with all changes and return its hash."""
        writes: dict[str, bytes] = {}
        removes: list[str] = []
        for tree, changes in zip(self.trees, all_changes, strict=True):
            prefix = f"{tree.path}/" if tree.path else ""
            writes |= {prefix + path: content for path, content in changes.writes.items()}
            removes += [prefix + path for path in changes.removes]
        oids = _oids(writes, self.source.commit)
        with TemporaryDirectory(prefix="kaigen-publish-") as folder:
            self._write_blobs(Path(folder), {oids[path]: content for path, content in writes.items()})
            env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            self.git.run(["read-tree", tip or "--empty"], env=env)
            zero = "0" * len(self.source.commit)
            lines = [f"0 {zero}\t{path}" for path in removes]
            lines += [f"100644 {oids[path]}\t{path}" for path in writes]
            index_info = b"".join(line.encode("utf-8", "surrogateescape") + b"\0" for line in lines)
            self.git.run(["update-index", "-z", "--index-info"], stdin=index_info, env=env)
            return self.git.run(["write-tree"], env=env).decode("ascii").strip()

    def _write_blobs(self, folder: Path, blobs: Mapping[str, bytes]) -> None:
        missing = {oid: content for oid, content in blobs.items() if oid not in self.written}
        paths = []
        for oid, content in missing.items():
            path = folder / oid
            path.write_bytes(content)
            paths.append(str(path))
        if paths:
            stdin = "\n".join(paths).encode("utf-8", "surrogateescape") + b"\n"
            self.git.run(["hash-object", "-w", "--no-filters", "--stdin-paths"], stdin=stdin)
            self.written |= missing.keys()

    def _commit(self, tip: str | None, tree: str, message: str) -> str:
        sign = self.options.sign
        if sign is None:
            sign = self.git.text("config", "--type=bool", "--get", "commit.gpgSign") == "true"
        command = ["commit-tree", *(["-S"] if sign else ["--no-gpg-sign"])]
        command += [*(["-p", tip] if tip else []), tree]
        result = self.git.call(command, stdin=message.encode("utf-8", "surrogateescape"))
        if result.ok:
            return result.out.decode("ascii").strip()
        if any(text in result.err for text in _NO_IDENTITY):
            hint = 'git config user.name "Your Name" && git config user.email you@example.com'
            raise InputError.of("KG0903", "git has no author for the commit", hint=hint)
        if sign:
            lines = [line for line in mask_urls(result.err).split("\n") if line.strip()]
            reason = lines[0].removeprefix("error: ") if lines else "no reason given"
            raise SystemFailure(
                f"cannot sign the commit: {reason}",
                hint="check git's `user.signingKey`, `gpg.format` and `gpg.program`",
            )
        raise SystemFailure(f"git commit-tree failed: {main_error(result)}")

    def _push(self, commit: str, branch: str) -> str | None:
        """Push a commit and return the URL for opening a pull request, empty if the remote offers none.

        None when another writer pushed the same commit in the meantime.
        """
        command = ["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules"]
        result = self._call_remote([*command, self.git.remote, f"{commit}:refs/heads/{branch}"])
        # Two writers that publish the same source in the same second make the same commit.
        if result.out.startswith(b"=") or b"\n=" in result.out:
            return None
        return pull_request_url(result.err)


def _oids(files: Mapping[str, bytes], commit: str) -> dict[str, str]:
    """Return the Git object hash of each file, in the hash format of a repository that has this commit."""
    algorithm = hashlib.sha1 if len(commit) == 40 else hashlib.sha256
    return {
        path: algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        for path, content in files.items()
    }
