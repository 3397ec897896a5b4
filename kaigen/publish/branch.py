"""A rendered tree becomes a commit on a branch of a remote, on top of whatever is there, by a plain push.

The commit is made without working tree: what the branch holds is read as a list of names, the tree is merged into
it in a temporary index, and only the push changes anything that others see. So a process that is killed leaves
objects that nobody refers to, or a finished push. A push that comes too late is refused by the other side, for it
never forces; then all begins again from the new tip.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kaigen.diagnostics.diagnostic import InputError, Mark, SystemFailure
from kaigen.git.command import (
    BranchMoved,
    Failure,
    Git,
    check_branch,
    last_words,
    mask,
    pull_request_url,
)
from kaigen.publish.merge import Entry, Merge, merge_tree
from kaigen.publish.message import commit_message, read_trailers
from kaigen.publish.results import AppChanges, BranchResult, TreeResult
from kaigen.publish.source import Source, is_checked_out, require_newer

ATTEMPTS = 10
"""How often a branch that moves is looked at."""
LONGEST_PAUSE_S = 8.0

_NO_IDENTITY = (
    "Please tell me who you are",
    "empty ident name",
    "no email was given",
    "no name was given",
    "unable to auto-detect",
)


@dataclass(frozen=True, slots=True)
class Tree:
    """What shall stand in one folder of a branch.

    Attributes:
        environment: whose it is; empty for none.
        path: the folder, relative to the branch's top; empty for the top.
        files: content by path relative to the folder.
    """

    environment: str
    path: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Wishes:
    """How to publish.

    Attributes:
        message: subject and body of the commit instead of the generated ones.
        sign: sign the commit, or do not; None for what git's `commit.gpgSign` says.
        pull_request: push to a branch of its own, named by content.
        allow_older: publish also over what this source does not contain.
        dry_run: say what would be done.
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
    wishes: Wishes | None = None,
    *,
    pause: Callable[[float], object] | None = None,
) -> BranchResult:
    """Put trees on a branch of a remote, and leave everything else there as it is.

    Args:
        git: the repository of the specs, and the remote.
        source: what was rendered.
        branch: the deploy branch; made when the remote has none of that name.
        trees: what shall stand there; their folders do not lie in each other.
        wishes: how to publish.
        pause: waits some seconds before a branch that moved is looked at again.

    Raises:
        InputError: KG0601, KG0603 and KG0605 of the branch's content, KG0902 of its name, KG0903 when git does
            not know who commits, KG0904 when there is nothing to propose a change to.
        CheckFailed: the branch was rendered from something that this source does not contain.
        SystemFailure: the remote cannot be reached or refuses, or signing fails.
    """
    from time import sleep

    wishes = wishes or Wishes()
    run = _Run(git, source, check_branch(git, branch), trees, wishes)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return run.once(attempt)
        except BranchMoved:
            # Others who were refused with us wait another while.
            (pause or sleep)(random.uniform(0.0, min(LONGEST_PAUSE_S, 0.1 * 2**attempt)))
    raise SystemFailure(
        f"`{branch}` on {git.shown} moved {ATTEMPTS} times while it was published to",
        hint="nothing was published; try again when fewer publish at once",
    )


class _Run:
    """One publication, whatever the number of attempts."""

    def __init__(self, git: Git, source: Source, branch: str, trees: Sequence[Tree], wishes: Wishes) -> None:
        self.git = git
        self.source = source
        self.branch = branch
        self.trees = trees
        self.wishes = wishes
        self.oids = [_oids(tree.files, source.commit) for tree in trees]
        self.written: set[str] = set()

    def once(self, attempt: int) -> BranchResult:
        tip = self._tip(self.branch)
        if tip is None:
            self._require_base()
        there = self._entries(tip) if tip else {}
        merges: list[Merge] = []
        results: list[TreeResult] = []
        for tree, oids in zip(self.trees, self.oids, strict=True):
            merge, apps = self._merge(tree, oids, there)
            merges.append(merge)
            results.append(TreeResult(tree.environment, tree.path, apps, merge.files()))
        changed = [
            tree for tree, merge in zip(self.trees, merges, strict=True) if merge.writes or merge.removes
        ]
        if not changed:
            return self._result("unchanged", self.branch, tip or "", "", results, attempt)
        if tip and not self.wishes.allow_older:
            for tree in changed:
                self._require_newer(tip, tree)
        message = commit_message(self.source, results, self.wishes.message)
        target = self.branch
        if self.wishes.pull_request:
            target = self._proposal(tip or "")
            proposed = self._tip(target, fetch=False)
            if proposed:
                return self._result("unchanged", target, proposed, message, results, attempt)
        if self.wishes.dry_run:
            return self._result("planned", target, "", message, results, attempt)
        commit = self._commit(tip, self._tree(tip, merges), message)
        url = self._push(commit, target)
        if url is None:
            return self._result("unchanged", target, commit, message, results, attempt)
        status = "proposed" if self.wishes.pull_request else "published"
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
            remote=self.git.shown,
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
        if self.wishes.pull_request:
            hint = "publish once without --pull-request, which makes the branch"
            raise InputError.of("KG0904", f"{self.git.shown} has no branch `{name}`", hint=hint)
        if is_checked_out(self.git, self.source, name):
            # A branch without history would take the place of the one that the user means to push.
            hint = f"push the branch first: git push {mask(self.git.shown)} {name}"
            raise InputError.of("KG0904", f"{self.git.shown} has no branch `{name}`", hint=hint)

    def _tip(self, branch: str, *, fetch: bool = True) -> str | None:
        """The commit of a branch on the remote, which is here then too; None when there is no such branch."""
        ref = f"refs/heads/{branch}"
        done = self.git.call(["ls-remote", "--quiet", self.git.remote, ref])
        if isinstance(done, Failure):
            raise self.git.failure(done)
        for line in done.decode("utf-8", "replace").split("\n"):
            oid, _, name = line.partition("\t")
            if name == ref:
                if fetch and not self._is_here(oid):
                    self._fetch(ref)
                    if not self._is_here(oid):
                        # It was replaced between the two questions.
                        raise BranchMoved(branch)
                return oid
        return None

    def _is_here(self, oid: str) -> bool:
        return not isinstance(self.git.call(["cat-file", "-e", f"{oid}^{{tree}}"]), Failure)

    def _fetch(self, ref: str) -> None:
        options = [
            "--quiet",
            "--no-tags",
            "--no-prune",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
            # No ref of the clone moves: another publication may run beside this one.
            "--refmap=",
        ]
        done = self.git.call(["fetch", *options, self.git.remote, ref])
        if isinstance(done, Failure):
            raise self.git.failure(done)

    def _entries(self, tip: str) -> dict[str, Entry]:
        entries = {}
        for line in self.git.run(["ls-tree", "-r", "-z", "--full-tree", tip]).split(b"\0"):
            meta, tab, name = line.partition(b"\t")
            if tab:
                mode, _, oid = meta.decode("ascii").split(" ")
                entries[name.decode("utf-8", "surrogateescape")] = Entry(mode, oid)
        return entries

    def _merge(
        self, tree: Tree, oids: Mapping[str, str], there: Mapping[str, Entry]
    ) -> tuple[Merge, AppChanges]:
        from kaigen.output.index import INDEX_NAME, parents, parse_index

        prefix = f"{tree.path}/" if tree.path else ""
        for path in (tree.path, *parents(tree.path)) if tree.path else ():
            if path in there:
                hint = "publish to another --path"
                raise InputError.of(
                    "KG0601", "a file stands where a folder is needed", mark=Mark(path), hint=hint
                )
        below = {path.removeprefix(prefix): entry for path, entry in there.items() if path.startswith(prefix)}
        index = b""
        if INDEX_NAME in below:
            index = self.git.run(["cat-file", "blob", below[INDEX_NAME].oid])
        owned: frozenset[str] = frozenset()
        if index:
            owned, problems = parse_index(index, f"{self.branch}:{prefix}{INDEX_NAME}")
            problems.raise_errors()
        merge = merge_tree(below, owned, index, tree.files, oids, tree.path)
        return merge, merge.apps(owned & below.keys(), frozenset(tree.files))

    def _require_newer(self, tip: str, tree: Tree) -> None:
        command = ["log", "-1", "--grep=^ *Source-Commit: [0-9a-f]", "--format=%B", tip]
        said = read_trailers(self.git.text(*command, *(["--", tree.path] if tree.path else [])))
        commit = said.get("Source-Commit", "")
        if commit:
            where = f"`{self.branch}`" + (f", folder {tree.path}," if tree.path else "")
            require_newer(self.git, self.source, commit, said.get("Source-Repository", ""), where)

    def _proposal(self, tip: str) -> str:
        """The branch for a pull request: the same for the same content over the same state of the base."""
        digest = hashlib.sha256(self.branch.encode())
        for tree, oids in zip(self.trees, self.oids, strict=True):
            last = self.git.text("log", "-1", "--format=%H", tip, *(["--", tree.path] if tree.path else []))
            digest.update(f"\0{tree.path}\0{last}\0{sorted(oids.items())}".encode("utf-8", "surrogateescape"))
        return f"kaigen/{digest.hexdigest()[:16]}"

    def _tree(self, tip: str | None, merges: Sequence[Merge]) -> str:
        """The name of the tree object with all changes in it."""
        from tempfile import TemporaryDirectory

        writes: dict[str, bytes] = {}
        removes: list[str] = []
        for tree, merge in zip(self.trees, merges, strict=True):
            prefix = f"{tree.path}/" if tree.path else ""
            writes |= {prefix + path: content for path, content in merge.writes.items()}
            removes += [prefix + path for path in merge.removes]
        oids = _oids(writes, self.source.commit)
        with TemporaryDirectory(prefix="kaigen-publish-") as folder:
            self._write_blobs(Path(folder), {oids[path]: content for path, content in writes.items()})
            env = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
            self.git.run(["read-tree", tip or "--empty"], env=env)
            zero = "0" * len(self.source.commit)
            lines = [f"0 {zero}\t{path}" for path in removes]
            lines += [f"100644 {oids[path]}\t{path}" for path in writes]
            given = b"".join(line.encode("utf-8", "surrogateescape") + b"\0" for line in lines)
            self.git.run(["update-index", "-z", "--index-info"], given=given, env=env)
            return self.git.run(["write-tree"], env=env).decode("ascii").strip()

    def _write_blobs(self, folder: Path, blobs: Mapping[str, bytes]) -> None:
        wanted = {oid: content for oid, content in blobs.items() if oid not in self.written}
        paths = []
        for oid, content in wanted.items():
            path = folder / oid
            path.write_bytes(content)
            paths.append(str(path))
        if paths:
            given = "\n".join(paths).encode("utf-8", "surrogateescape") + b"\n"
            self.git.run(["hash-object", "-w", "--no-filters", "--stdin-paths"], given=given)
            self.written |= wanted.keys()

    def _commit(self, tip: str | None, tree: str, message: str) -> str:
        sign = self.wishes.sign
        if sign is None:
            sign = self.git.text("config", "--type=bool", "--get", "commit.gpgSign") == "true"
        command = ["commit-tree", *(["-S"] if sign else ["--no-gpg-sign"])]
        command += [*(["-p", tip] if tip else []), tree]
        done = self.git.call(command, given=message.encode("utf-8", "surrogateescape"))
        if not isinstance(done, Failure):
            return done.decode("ascii").strip()
        if any(words in done.err for words in _NO_IDENTITY):
            hint = 'git config user.name "Your Name" && git config user.email you@example.com'
            raise InputError.of("KG0903", "git does not know who commits", hint=hint)
        if sign:
            said = [line for line in mask(done.err).split("\n") if line.strip()]
            raise SystemFailure(
                f"the commit cannot be signed: {said[0].removeprefix('error: ') if said else 'no reason given'}",
                hint="see git's `user.signingKey`, `gpg.format` and `gpg.program`",
            )
        raise SystemFailure(f"git commit-tree failed: {last_words(done)}")

    def _push(self, commit: str, branch: str) -> str | None:
        """Where a pull request can be opened, if anywhere; None when the same commit came from elsewhere meanwhile."""
        command = ["push", "--porcelain", "--no-follow-tags", "--no-recurse-submodules"]
        said: list[str] = []
        done = self.git.call([*command, self.git.remote, f"{commit}:refs/heads/{branch}"], said=said)
        if isinstance(done, Failure):
            raise self.git.failure(done)
        # Two that publish the same source in the same second make the same commit.
        if done.startswith(b"=") or b"\n=" in done:
            return None
        return pull_request_url("".join(said))


def _oids(files: Mapping[str, bytes], commit: str) -> dict[str, str]:
    """The names that Git gives to contents, in the format of a repository that has this commit."""
    algorithm = hashlib.sha1 if len(commit) == 40 else hashlib.sha256
    return {
        path: algorithm(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        for path, content in files.items()
    }
