"""Imports that wait until a module is used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
OPTIONAL = {"resvg_py"}
"""Packages of extras: imported where they are used, since they may be missing."""


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A folder with a module and a package that print when their code runs."""
    (tmp_path / "late.py").write_text("print('late runs')\nVALUE = 1\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("print('package runs')\n")
    (tmp_path / "package" / "inner.py").write_text("print('inner runs')\nVALUE = 2\n")
    return tmp_path


def run(folder: Path, code: str) -> list[str]:
    program = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(folder)!r}]\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


BLOCK = "from kaigen.system.lazy_import import lazy_imports\nwith lazy_imports():\n"


def test_a_module_runs_at_its_first_use(modules: Path) -> None:
    code = f"{BLOCK}    import late\nprint('before')\nprint(late.VALUE, late.VALUE)"
    assert run(modules, code) == ["before", "late runs", "1 1"]


def test_a_module_that_is_not_used_does_not_run(modules: Path) -> None:
    assert run(modules, f"{BLOCK}    import late\nprint('end')") == ["end"]


def test_a_package_runs_at_once_and_its_modules_later(modules: Path) -> None:
    code = f"{BLOCK}    from package import inner\nprint('before')\nprint(inner.VALUE)"
    assert run(modules, code) == ["package runs", "before", "inner runs", "2"]


def test_imports_after_the_block_run_at_once(modules: Path) -> None:
    assert run(modules, f"{BLOCK}    pass\nimport late\nprint('after')") == ["late runs", "after"]


def test_a_module_that_another_module_imports_meanwhile_runs_at_once(modules: Path) -> None:
    (modules / "package" / "__init__.py").write_text("import late\nprint('package runs')\n")
    code = f"{BLOCK}    from package import inner\nprint('before')\nprint(inner.VALUE)"
    assert run(modules, code) == ["late runs", "package runs", "before", "inner runs", "2"]


def test_a_module_that_a_function_imports_meanwhile_runs_at_once(modules: Path) -> None:
    code = f"def load():\n    import late\n{BLOCK}    load()\n    import package.inner\nprint('before')"
    assert run(modules, code) == ["late runs", "package runs", "before"]


def test_a_module_that_another_thread_imports_meanwhile_runs_at_once(modules: Path) -> None:
    code = f"""\
import threading
def load():
    import late
thread = threading.Thread(target=load)
{BLOCK}    thread.start()
    thread.join()
    from package import inner
print('before')
print(inner.VALUE)"""
    assert run(modules, code) == ["late runs", "package runs", "before", "inner runs", "2"]


def test_a_thread_waits_for_a_module_whose_code_another_one_runs(modules: Path) -> None:
    (modules / "slow.py").write_text("import time\nprint('slow runs')\ntime.sleep(0.2)\nVALUE = 3\n")
    code = f"""\
import threading
{BLOCK}    import slow
found = []
threads = [threading.Thread(target=lambda: found.append(slow.VALUE)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found)"""
    assert run(modules, code) == ["slow runs", "[3, 3, 3, 3]"]


def test_the_code_of_a_module_that_failed_runs_again(modules: Path) -> None:
    (modules / "broken.py").write_text("print('broken runs')\nraise ValueError\n")
    code = f"""\
{BLOCK}    import broken
for _ in range(2):
    try:
        broken.VALUE
    except ValueError:
        print('fails')"""
    assert run(modules, code) == ["broken runs", "fails", "broken runs", "fails"]


def test_two_blocks_at_once_are_lazy_for_their_own_imports(modules: Path) -> None:
    (modules / "second.py").write_text(f"{BLOCK}    import late\nprint('second runs')\n")
    code = f"{BLOCK}    import second\n    from package import inner\nprint('before')\nprint(second.late.VALUE)"
    assert run(modules, code) == ["package runs", "before", "second runs", "late runs", "1"]


def test_nothing_remains_of_a_block_that_fails(modules: Path) -> None:
    code = f"""\
before = list(sys.meta_path)
try:
    exec({BLOCK!r} + "    import no_such_module")
except ImportError:
    print(sys.meta_path == before)
import late"""
    assert run(modules, code) == ["True", "late runs"]


def lazy_names() -> Iterator[tuple[str, str]]:
    """Yield every name that is imported in a lazy block of kaigen, with its file."""
    for path in sorted((ROOT / "kaigen").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not (isinstance(node, ast.With) and ast.unparse(node.items[0]) == "lazy_imports()"):
                continue
            for line in node.body:
                assert isinstance(line, ast.Import | ast.ImportFrom), path
                prefix = f"{line.module}." if isinstance(line, ast.ImportFrom) else ""
                yield from ((f"{prefix}{name.name}", path.relative_to(ROOT).as_posix()) for name in line.names)


def test_lazy_blocks_import_modules_only() -> None:
    names = dict(lazy_names())
    assert len(names) > 50
    wrong = [
        f"{path}: {name}"
        for name, path in names.items()
        if name.startswith("kaigen.") and not (ROOT / f"{name.replace('.', '/')}.py").is_file()
    ]
    assert wrong == []


def test_functions_import_only_optional_packages() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line.lineno}"
        for path in sorted((ROOT / "kaigen").rglob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for line in ast.walk(function)
        if isinstance(line, ast.Import | ast.ImportFrom)
        and not {name.name for name in line.names} | {getattr(line, "module", "")} & OPTIONAL
    ]
    assert found == []
