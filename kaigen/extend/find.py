"""Find the kinds that a repository and installed packages define, and the errors of those that cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from kaigen.diagnostics.category import Category
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.dialects.packages import package_dialects
from kaigen.dialects.registry import own_kinds
from kaigen.extend.defined_kind import Definition
from kaigen.extend.definition import files_of, read_definitions
from kaigen.extend.folder import compile_document
from kaigen.extend.plugins import plugin_kinds, read_by_schema
from kaigen.extend.schemas import embed_schema
from kaigen.kinds.entry import API_VERSION, find_entry
from kaigen.kinds.kind import CompiledKind, Kind
from kaigen.kubernetes.schemas import is_cluster_scoped

if TYPE_CHECKING:
    from kaigen.compile.app import App
    from kaigen.compile.context import Context
    from kaigen.compile.problems import Problems
    from kaigen.config.settings import Config
    from kaigen.kinds.block import Block
    from kaigen.kinds.positioned import Positioned


class FolderKind(CompiledKind, frozen=True):
    """The entry of a folder's kind.

    Attributes:
        definition: the definition in the folder.
    """

    definition: Definition | None = field(default=None)

    def validate(self, document: Positioned) -> tuple[Block | None, list[Diagnostic]]:
        """Return the document as the kind's model, or None and its errors."""
        assert self.definition is not None
        return read_by_schema(self, document, self.definition.schema)

    def spec_schema(self) -> Mapping[str, Any] | None:
        """Return the folder's schema."""
        assert self.definition is not None
        schema: dict[str, Any] = embed_schema(dict(self.definition.schema))
        return schema

    def compiler(self) -> Callable[..., Any]:
        """Return the function that renders the folder's templates."""
        return self._compile

    def _compile(self, block: Any, context: Context, problems: Problems) -> App | None:
        assert self.definition is not None
        return compile_document(self.definition, block, context, problems)


class UserKinds(Struct, frozen=True):
    """User-defined kinds.

    Attributes:
        entries: the valid kinds.
        diagnostics: errors of the invalid ones.
        broken: apiVersion and kind of the invalid ones; None where they cannot be read.
    """

    entries: tuple[Kind, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    broken: frozenset[tuple[str, str] | None] = frozenset()

    @property
    def has_reached_limit(self) -> bool:
        """Whether a check reached a limit of time or memory, which it may not reach again."""
        return any(item.category is Category.LIMIT for item in self.diagnostics)


def folder_kinds(config: Config) -> UserKinds:
    """Return the kinds of a repository's folders."""
    if not config.kinds:
        return UserKinds()
    files = []
    for path in files_of(config.root, config.kinds):
        try:
            found = path.stat()
            files.append((str(path), found.st_mtime_ns, found.st_size, found.st_ino))
        except OSError:
            files.append((str(path), 0, 0, 0))
    kinds = _folder_kinds(config.root, str(config.root.absolute()), config.kinds, tuple(files))
    if kinds.has_reached_limit:
        _folder_kinds.cache_clear()
    return kinds


@lru_cache(maxsize=8)
def _folder_kinds(root: Path, place: str, folders: tuple[str, ...], files: object) -> UserKinds:
    definitions, problems, broken = read_definitions(root, folders)
    entries = [
        (
            FolderKind(
                item.api_version,
                item.kind,
                "kaigen.kinds.user:UserDocument",
                item.summary,
                system=item.api_version.rpartition("/")[0],
                definition=item,
            ),
            item.mark,
        )
        for item in definitions
    ]
    kinds = _with_free_names(entries, problems)
    return replace(kinds, broken=kinds.broken | broken)


def all_kinds(config: Config) -> UserKinds:
    """Return the kinds of folders and installed packages, dialects among them; folders take precedence."""
    own = folder_kinds(config)
    plugins, problems = plugin_kinds()
    dialects = package_dialects()
    taken = _with_free_names(
        [(entry, None) for entry in (*plugins, *dialects.kinds)], (*problems, *dialects.diagnostics), own.entries
    )
    return UserKinds((*own.entries, *taken.entries), (*own.diagnostics, *taken.diagnostics), own.broken | taken.broken)


def _with_free_names(
    entries: Sequence[tuple[Kind, Mark | None]], problems: Sequence[Diagnostic], known: Sequence[Kind] = ()
) -> UserKinds:
    """Return the kinds whose names are not taken."""
    kept: list[Kind] = list(known)
    refused: set[tuple[str, str] | None] = set()
    found = Diagnostics(problems)
    for entry, mark in entries:
        name = f"`{entry.kind}` of `{entry.api_version}`"
        package = getattr(entry, "package", "")
        whose = f"{name} of the package {package}" if package else name
        before = len(found)
        group = entry.api_version.rpartition("/")[0]
        if group == API_VERSION.rpartition("/")[0] or any(
            other.key == entry.key or _names(other) == _names(entry) for other in own_kinds()
        ):
            found.add(Diagnostic("KG1002", f"{whose} is reserved for kaigen", mark, "use a group of your own"))
        elif is_cluster_scoped(entry.api_version, entry.kind) is not None:
            hint = "use a group of your own"
            found.add(Diagnostic("KG1002", f"{whose} is a kind of Kubernetes", mark, hint))
        elif any(other.key == entry.key or _names(other) == _names(entry) for other in kept):
            hint = "define each kind of a group once, in one version"
            found.add(Diagnostic("KG1002", f"{whose} is defined twice", mark, hint))
        else:
            kept.append(entry)
        if len(found) > before:
            refused.add(_names(entry))
    return UserKinds(tuple(kept[len(known) :]), tuple(found.sorted()), frozenset(refused))


def _names(entry: Kind) -> tuple[str, str]:
    return entry.api_version, entry.kind


def find_user_kind(
    api_version: str | None, kind: str | None, config: Config, found: Diagnostics
) -> tuple[Kind | None, UserKinds]:
    """Return the user-defined kind of a document, or None, and all user-defined kinds.

    Args:
        api_version: of the document.
        kind: of the document.
        config: the repository's settings.
        found: collects the errors of invalid kinds if the kind is not found.
    """
    own = folder_kinds(config)
    entry = find_entry(api_version, kind, own.entries)
    if entry is not None:
        return entry, own
    every = all_kinds(config)
    entry = find_entry(api_version, kind, every.entries)
    if entry is None:
        found.extend(every.diagnostics)
    return entry, every
