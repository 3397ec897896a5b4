"""The specs of an environment that follows commits: each one as of the commit that was promoted to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec.structs import replace

from kaigen.config.settings import LOCK_NAME, Config, LockRef, paths_without_specs, pins_path
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.dialects.registry import find_kind
from kaigen.environments.match import pin_name
from kaigen.environments.patch import FileEntry
from kaigen.git.repository import is_below, known_commits, read_file_at, read_tree_at, shallow_hint
from kaigen.kinds.config_files import is_model_config
from kaigen.pipeline.document import is_kubernetes_object
from kaigen.pipeline.sources import is_overrides, relative_path
from kaigen.yaml.document import Document, parse
from kaigen.yaml.sources import Source, read_contents


def add_sources(
    named: Sequence[Source], others: Sequence[Source] | None, config: Config, found: Diagnostics
) -> tuple[list[Source], list[Source]]:
    """Return the sources of a run with those of the commits, in place of which the others define no app.

    Args:
        named: files that are compiled.
        others: the repository's other files; None when every file is compiled.
        config: the settings of the environment.
        found: receives the errors.
    """
    at = _sources(config, found)
    paths = {source.path for source in named}
    chosen = [source for source in at if others is None or source.file in paths]
    rest = [source for source in at if not (others is None or source.file in paths)]
    return [*chosen, *named], [*rest, *(others or ())]


def _sources(config: Config, found: Diagnostics) -> list[Source]:
    """The files of all commits that define a promoted app."""
    place = FileEntry(pins_path(config.root, config.environment), ("commits",))
    if config.commits is None:
        hint = (
            f"start with `kaigen promote --from ENVIRONMENT --to {config.environment}`, or set `commits: {{}}` "
            f"in {pins_path(config.root, config.environment)} for an environment without apps"
        )
        message = f"`{config.environment}` follows commits, and none was promoted to it"
        found.add(Diagnostic("KG0727", message, None, hint))
        return []
    known = known_commits(git_folder(config), set(config.commits.values()))
    names_at: dict[str, list[str]] = {}
    for name, commit in sorted(config.commits.items()):
        if commit in known:
            names_at.setdefault(commit, []).append(name)
            continue
        message = f"this clone does not have commit {commit[:12]}, which `{name}` follows"
        found.add(Diagnostic("KG0728", message, place.mark((name,)), shallow_hint(git_folder(config))))
    pinned: list[Source] = []
    for commit, names in names_at.items():
        at, problems = sources_at(config, commit)
        found.extend(problems)
        # Only files that have the name somewhere are parsed.
        likely = [source for source in at if any(_may_define(source, name) for name in names)]
        defined = {source: names_in(source, config).keys() & names for source in likely}
        own = [source for source, there in defined.items() if there]
        pinned += own
        found.extend(_changed_files(at, own))
        for name in sorted(set(names).difference(*defined.values())):
            hint = f"promote another commit, or delete the entry to remove the app from `{config.environment}`"
            message = f"commit {commit[:12]} has no spec of `{name}`"
            found.add(Diagnostic("KG0729", message, place.mark((name,)), hint))
    return pinned


def _may_define(source: Source, name: str) -> bool:
    """Whether the text of a file has the name of an app, or it is the file that is named."""
    own = name.rpartition("/")[2].partition(".")[0]
    return own in source.text or source.file.endswith(name)


def _changed_files(sources: Sequence[Source], pinned: Sequence[Source]) -> Iterator[Diagnostic]:
    """Errors for the config.json of models that specs of a commit name, and that are different now.

    They are read from the working tree.
    """
    for source in sources:
        path = Path(source.file)
        users = [each for each in pinned if each.commit == source.commit and path.name in each.text]
        if path.suffix != ".json" or '"model_type"' not in source.text or not users:
            continue
        now = read_contents({source.file: path.read_bytes()}, "", Path())[0] if path.is_file() else []
        if [each.text for each in now] != [source.text]:
            message = f"`{source.file}` is not as in commit {source.commit[:12]}, whose `{users[0].file}` may name it"
            hint = "restore the file, and add the new one under another name"
            yield Diagnostic("KG0729", message, Mark(source.file), hint)


def git_folder(config: Config) -> Path:
    """Return the folder of kaigen.yaml in the repository that has the commits."""
    return config.repository or config.root


def sources_at(config: Config, commit: str) -> tuple[list[Source], Diagnostics]:
    """Return the files with specs of a commit, and what is wrong with them.

    Args:
        config: the settings of an environment; the folders of its specs are read.
        commit: the full hash.
    """
    repository = git_folder(config)
    files: dict[str, bytes] = {}
    without = [relative_path(str(path), config.root) for path in paths_without_specs(config)]
    for path in config.specs:
        folder = path.strip("/").removeprefix("./")
        below = read_tree_at(repository, commit, folder)
        single = None if below else read_file_at(repository, commit, folder)
        files |= {f"{folder}/{name}": data for name, data in below.items()} if single is None else {folder: single}
    kept = {path: data for path, data in files.items() if not is_below(path, without)}
    if config.root != Path():
        kept = {f"{config.root}/{path}": data for path, data in kept.items()}
    return read_contents(kept, commit, config.root)


def names_in(source: Source, config: Config) -> dict[str, list[Document]]:
    """Return the documents of a file by the name that a pins file has for them."""
    names: dict[str, list[Document]] = {}
    for document in parse(source, Diagnostics(), is_manifest=is_kubernetes_object):
        if is_model_config(document.data) or is_overrides(document):
            continue
        names.setdefault(_name(document, source, config), []).append(document)
    return names


def _name(document: Document, source: Source, config: Config) -> str:
    """The name of a document in a pins file: that of its app, or the file for plain objects."""
    if is_kubernetes_object(document) or not document.name:
        return relative_path(source.file, config.root)
    return pin_name(document, find_kind(document.apiVersion, document.kind))


def _is_pinned(name: str, source: Source, config: Config) -> bool:
    return bool(source.commit) and (config.commits or {}).get(name) == source.commit


def split_by_commit(
    source: Source, documents: Iterable[Document], config: Config
) -> tuple[list[Document], list[Document]]:
    """Return the documents of a file that the environment has, and those that no commit was promoted of.

    Objects next to a spec have its commit.

    Args:
        source: the file.
        documents: of the file.
        config: the settings of the environment.
    """
    every = [(document, _name(document, source, config)) for document in documents]
    there = [document for document, name in every if _is_pinned(name, source, config)]
    if any(not is_kubernetes_object(document) for document in there):
        own = {id(document) for document in there}
        there = [doc for doc, _ in every if id(doc) in own or is_kubernetes_object(doc)]
    absent = [document for document, name in every if name not in (config.commits or {})]
    return there, [document for document in absent if not any(document is other for other in there)]


def with_lock_at(config: Config, commit: str) -> Config:
    """Return the settings with the lock of a commit.

    Args:
        config: the settings of the environment.
        commit: the full hash.
    """
    content = read_file_at(git_folder(config), commit, LOCK_NAME)
    return replace(config, lock=LockRef() if content is None else LockRef(sha256(content).hexdigest(), content))
