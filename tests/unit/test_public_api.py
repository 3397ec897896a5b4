"""What `import kaigen` offers to Python users."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from pathlib import Path

import kaigen
import kaigen.extend

ROOT = Path(__file__).parents[2]


def test_dir_lists_the_public_names() -> None:
    names = dir(kaigen)
    assert [name for name in names if not name.startswith("_")] == sorted(set(kaigen.__all__) - {"__version__"})
    assert {"__version__", "__doc__"} <= set(names)


def test_every_public_name_can_be_used() -> None:
    for name in kaigen.__all__:
        assert getattr(kaigen, name) is not None


def test_every_name_for_packages_can_be_used() -> None:
    assert kaigen.extend.__all__ == sorted(kaigen.extend.__all__)
    assert {"Dialect", "ForeignKind", "Lowering", "LoweringResult", "PythonKind"} <= {*kaigen.extend.__all__}
    for name in kaigen.extend.__all__:
        assert getattr(kaigen.extend, name) is not None
        assert name in (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def test_help_describes_the_public_functions() -> None:
    text = pydoc.plain(pydoc.render_doc(kaigen))
    for name in ("compile_specs", "load_config", "render", "validate"):
        assert f"{name}(" in text


def test_importing_kaigen_imports_none_of_its_packages() -> None:
    code = "import sys, kaigen; dir(kaigen); print([name for name in sys.modules if name.startswith('kaigen.')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
