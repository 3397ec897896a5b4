"""Imports point down the layers of docs/architecture.md, and no two modules or folders import each other.

Imports inside functions count, and so do imports under `if TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "kaigen"

LAYERS: tuple[str, ...] = (
    "kaigen.core",
    "kaigen.programs",
    "kaigen.system",
    "kaigen.regex",
    "kaigen.diagnostics",
    "kaigen.files",
    "kaigen.signing",
    "kaigen.yaml",
    "kaigen.catalog",
    "kaigen.kubernetes",
    "kaigen.kinds",
    "kaigen.sizing",
    "kaigen.dialects",
    "kaigen.config",
    "kaigen.environments",
    "kaigen.compile",
    "kaigen.check",
    "kaigen.tenancy",
    "kaigen.emit",
    "kaigen.gitops",
    "kaigen.output",
    "kaigen.git",
    "kaigen.oci",
    "kaigen.hub",
    "kaigen.cluster",
    "kaigen.diff",
    "kaigen.extend",
    "kaigen.secrets",
    "kaigen.pipeline",
    "kaigen.requirements",
    "kaigen.cost",
    "kaigen.status",
    "kaigen.gates",
    "kaigen.images",
    "kaigen.mirror",
    "kaigen.doctor",
    "kaigen.explain",
    "kaigen.plan",
    "kaigen.graph",
    "kaigen.publish",
    "kaigen.promote",
    "kaigen.commit_promotion",
    "kaigen.scaffold",
    "kaigen.rollouts",
    "kaigen.contexts",
    "kaigen.ops",
    "kaigen.lock",
    "kaigen.cli",
)
"""Every package, from the bottom to the top. A module imports from its own package and from packages before it."""

TOGETHER = {("kaigen.pipeline.unit", "kaigen.pipeline.compiler")}
"""Imports for types alone that make a circle: a file knows its compiler, which makes the files."""

FRONT_DOOR = ("kaigen", "kaigen.__main__")
"""Modules outside the layers: both name what the library and the command offer."""


def modules() -> dict[str, Path]:
    """Return every module of the package by name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    """Return the names of the modules that a module imports, when it runs or for its types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else str(node.module)


@cache
def graph() -> dict[str, set[str]]:
    """Return, by module, the modules of kaigen it imports."""
    return {
        module: {
            imported
            for imported in imports(ast.parse(path.read_text(encoding="utf-8")))
            if imported in MODULES and imported != module and (module, imported) not in TOGETHER
        }
        for module, path in MODULES.items()
    }


def layer(module: str) -> int:
    """Return the height of a module's package in LAYERS."""
    package = ".".join(module.split(".")[:2])
    assert package in LAYERS, f"{package} is in no layer: add it to LAYERS and to docs/architecture.md"
    return LAYERS.index(package)


def upward() -> set[tuple[str, str]]:
    """Return the imports that point up: importing and imported module."""
    return {
        (module, imported)
        for module, found in graph().items()
        for imported in found
        if module not in FRONT_DOOR and (imported in FRONT_DOOR[1:] or above(imported, module))
    }


def above(imported: str, module: str) -> bool:
    return imported not in FRONT_DOOR and layer(imported) > layer(module)


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of nodes that reach each other, sorted."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen: set[str] = set()
        queue = [start]
        while queue:
            new = edges.get(queue.pop(), set()) - seen
            seen |= new
            queue += new
        reached[start] = seen
    groups = {tuple(sorted(other for other in reached[node] if node in reached.get(other, set()))) for node in edges}
    return [list(group) for group in sorted(groups) if len(group) > 1]


def child(module: str, package: str) -> str | None:
    """Return which module or folder directly inside a package a module belongs to; None for one outside it."""
    if module == package:
        return "__init__"
    return module[len(package) + 1 :].split(".")[0] if module.startswith(f"{package}.") else None


def cycles_inside(package: str) -> list[list[str]]:
    """Return the groups of modules and folders directly inside a package that import each other."""
    edges: dict[str, set[str]] = {}
    for module, found in graph().items():
        if (start := child(module, package)) is None or module in FRONT_DOOR:
            continue
        ends = {child(imported, package) for imported in found if imported not in FRONT_DOOR}
        edges.setdefault(start, set()).update(end for end in ends if end is not None and end != start)
    return cycles(edges)


PACKAGES = [module for module, path in MODULES.items() if path.name == "__init__.py"]


def test_every_package_has_a_layer_of_its_own() -> None:
    packages = {".".join(module.split(".")[:2]) for module in MODULES} - set(FRONT_DOOR)
    assert sorted(LAYERS) == sorted(packages)


def test_imports_point_down() -> None:
    assert sorted(upward()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_modules_or_folders_of_a_package_import_each_other(package: str) -> None:
    assert cycles_inside(package) == []


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d", "a"}}, [["a", "b", "c"], ["d", "e"]]),
    ],
)
def test_cycles_are_found(edges: dict[str, set[str]], expected: list[list[str]]) -> None:
    assert cycles(edges) == expected


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from kaigen.cli import main", ["kaigen.cli.main"]),
        ("import kaigen.pipeline.run", ["kaigen.pipeline.run"]),
        ("def f():\n    from kaigen.pipeline.run import render", ["kaigen.pipeline.run"]),
        ("if TYPE_CHECKING:\n    from kaigen.pipeline.run import render", ["kaigen.pipeline.run"]),
        ("class A:\n    def f(self):\n        if x:\n            import kaigen.pipeline.run", ["kaigen.pipeline.run"]),
    ],
)
def test_imports_are_found_at_every_indentation(code: str, found: list[str]) -> None:
    assert list(imports(ast.parse(code))) == found


def test_the_imports_that_make_a_circle_are_for_types() -> None:
    for module, imported in TOGETHER:
        for node in ast.parse(MODULES[module].read_text(encoding="utf-8")).body:
            assert imported not in imports(node) or isinstance(node, ast.If)


def test_settings_are_passed_and_never_ambient() -> None:
    assert [name for name, path in MODULES.items() if "ContextVar" in path.read_text(encoding="utf-8")] == []
