"""Every command reads specs, so reading imports only what every text needs."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    *("jsonschema", "jinja2", "pydantic", "click", "json", "pathlib", "difflib", "unicodedata"),
    *("xml", "urllib", "tempfile", "shutil", "kaigen.yaml.json_text"),
    *("kaigen.yaml.syntax", "kaigen.yaml.structure"),
}


def modules_after(statements: str) -> set[str]:
    """Return the modules that a new interpreter loads."""
    executed = "{name for name, module in sys.modules.items() if type(module).__name__ != '_LazyModule'}"
    code = f"import sys, msgspec\nold = {{*sys.modules}}\n{statements}\nprint(*({executed} - old))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_reading_a_valid_spec_imports_nothing_heavy() -> None:
    loaded = modules_after(
        "from kaigen.diagnostics.collector import Diagnostics\n"
        "from kaigen.yaml.sources import Source\n"
        "from kaigen.yaml.document import parse\n"
        "from kaigen.yaml.document_secrets import find_secrets\n"
        "found = Diagnostics()\n"
        "documents = parse(Source('a.yaml', 'a: [1, 2.5, x]\\n'), found)\n"
        "assert documents and not find_secrets(documents[0]) and not len(found)"
    )
    assert "kaigen.yaml.document" in loaded
    assert sorted(loaded & HEAVY) == []


def test_a_report_imports_only_its_own_reporter() -> None:
    loaded = modules_after(
        "from kaigen.diagnostics.report import render_report\nrender_report([], 'github', files=['a'])"
    )
    assert {name for name in loaded if name.startswith("kaigen.diagnostics.reporters.")} == {
        "kaigen.diagnostics.reporters.github",
        "kaigen.diagnostics.reporters.summary",
    }
