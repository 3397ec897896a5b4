"""Generated pages are current, examples in the documentation run, and links resolve."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from kaigen.cli.main import COMMANDS, cli
from kaigen.diagnostics.codes import codes
from kaigen.dialects.registry import Dialect, own_dialects
from tests.unit.test_pages import PAGES as RUN
from tools import docs, site_pages

ROOT = Path(__file__).parent.parent.parent
SKIPPED_FOLDERS = {".venv", ".git", "rendered", "golden", "scenario", "node_modules", "files"}
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted(ROOT.rglob("*.md"))
    if SKIPPED_FOLDERS.isdisjoint(path.relative_to(ROOT).parts) and not path.is_relative_to(ROOT / "shared")
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return docs.generated_files()


def test_generated_files_are_current(generated: dict[str, str]) -> None:
    stale = [
        path
        for path, text in generated.items()
        if not (ROOT / path).is_file() or (ROOT / path).read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def test_no_schema_of_a_deleted_kind_remains(generated: dict[str, str]) -> None:
    there = {path.relative_to(ROOT).as_posix() for path in (ROOT / "schemas").glob("*.json")}
    assert there == {path for path in generated if path.startswith("schemas/")}


def code_blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a language in a page."""
    return [code for found, code in FENCE.findall((ROOT / page).read_text(encoding="utf-8")) if found == language]


def test_the_python_example_of_the_readme_runs(tmp_path: Path) -> None:
    blocks = code_blocks("README.md", "python")
    assert len(blocks) == 1
    code = (
        "from kaigen.cli.main import run\n"
        "assert run(['init', '.']) == 0\n"
        "print('---')\n"
        f"{blocks[0]}\n"
        "assert len(files) > 20 and all(isinstance(content, bytes) for content in files.values())\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "KAIGEN_CACHE_DIR": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("---\n")[1].strip().splitlines()
    assert [line.split(" ")[0] for line in printed] == ["evaluate", "qwen"]
    assert "'Job'" in printed[0]
    assert not (tmp_path / "rendered").exists()


def test_the_python_examples_of_the_library_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kaigen.cli.main import run

    monkeypatch.chdir(tmp_path)
    assert run(["-q", "init"]) == 0
    blocks = code_blocks("docs/library.md", "python")
    assert len(blocks) == 4
    namespace: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for block in blocks:
            exec(block, namespace)
    assert "evaluate ['ConfigMap'" in printed.getvalue()
    assert "10Gi" in printed.getvalue()
    assert "did you mean `command`?" in printed.getvalue()


def test_the_specs_of_the_readme_render_without_a_warning(tmp_path: Path) -> None:
    from kaigen import compile_specs

    written, _, block = code_blocks("README.md", "yaml")
    assert written in (ROOT / "examples/demo/specs/chat.yaml").read_text(encoding="utf-8")
    (tmp_path / "ai.yaml").write_text(block, encoding="utf-8")
    compilation = compile_specs([str(tmp_path)])
    assert [item.message for item in compilation.diagnostics] == []
    assert [item.app.kind for item in compilation.apps] == ["Topology", "Job", "Model"]


def test_the_result_in_the_readme_is_that_of_the_demo() -> None:
    _, excerpt, _ = code_blocks("README.md", "yaml")
    manifest = ROOT / "examples/demo/rendered/dev/ml-dev/chat/manifests/deployment.yaml"
    lines = iter(manifest.read_text(encoding="utf-8").splitlines())
    assert [line for line in excerpt.splitlines() if line not in lines] == []


SPEC_BLOCKS = [
    (page, number)
    for page in PAGES
    for number, block in enumerate(code_blocks(page, "yaml"))
    if re.search(r"^apiVersion: (kaigen\.dev|kaito\.sh|ai\.re-cinq\.com)/", block, re.MULTILINE)
    and not re.search("kind: (KindDefinition|Overrides)", block)
    and Path(page).name not in RUN
]
"""Blocks of YAML that a reader may copy into a repository: page and number of the block. Other pages run as a whole."""


def test_blocks_to_copy_are_found() -> None:
    assert len(SPEC_BLOCKS) > 10


MODEL = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata: {{name: {name}}}
spec:
  source: {{huggingFace: {{repo: acme/{name}, revision: "{revision}"}}}}
  store: {{volume: {{size: 100Gi, accessModes: [ReadWriteMany]}}}}
"""
ASSISTANT = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: assistant}
spec:
  engine: container
  image: docker.io/acme/assistant:1
"""
SERVED = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: {name}}}
spec: {{preset: phi-4, resources: {{gpuType: A100-80GB}}}}
"""
EXPECTED = {"KG0334", "KG0570"}
"""Warnings about objects that a page expects in the cluster, and about an image that it says how to build."""


@pytest.mark.parametrize(("page", "number"), SPEC_BLOCKS)
def test_blocks_to_copy_compile_without_warnings(tmp_path: Path, page: str, number: int) -> None:
    from kaigen import compile_specs, load_config

    block = code_blocks(page, "yaml")[number]
    if re.search(r"^kind: Config$", block, re.MULTILINE):
        (tmp_path / "kaigen.yaml").write_text(block, encoding="utf-8")
        load_config(tmp_path)
        return
    if re.search(r"^kind: Catalog$", block, re.MULTILINE):
        (tmp_path / "catalog").mkdir()
        (tmp_path / "catalog" / "own.yaml").write_text(block, encoding="utf-8")
        assert load_config(tmp_path).catalog.digest
        return
    if re.search(r"^kind: Overrides$", block, re.MULTILINE):
        (path,) = re.findall(r"^# specs/(.+)$", block, re.MULTILINE)
        config = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\nspecs: [.]\nenvironments: {prod: {}}\n"
        for file, text in {
            "kaigen.yaml": config,
            path: block,
            f"{Path(path).parts[0]}/assistant.yaml": ASSISTANT,
        }.items():
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text, encoding="utf-8")
        compilation = compile_specs(["."], load_config(tmp_path, "prod"))
        assert [str(item) for item in compilation.diagnostics] == []
        return
    (tmp_path / "specs.yaml").write_text(block, encoding="utf-8")
    # The page shows these Models and Topologies in other blocks.
    for name in re.findall(r"^spec: \{topology: ([a-z0-9-]+)|^  topology: ([a-z0-9-]+)$", block, re.MULTILINE):
        served = ASSISTANT.replace("{name: assistant}", f"{{name: {max(name)}}}")
        (tmp_path / "topology.yaml").write_text(served, encoding="utf-8")
    if "kind: Endpoint" in block:
        for name in re.findall("[a-z0-9-]+", block.partition("models: [")[2].partition("]")[0]):
            (tmp_path / f"{name}.yaml").write_text(SERVED.format(name=name), encoding="utf-8")
    for name in set(re.findall(r"^  models?: \[?([a-z0-9-]+)", block, re.MULTILINE)) if "Endpoint" not in block else ():
        if not re.search(rf"^(metadata: {{|  )name: {name}\b", block, re.MULTILINE):
            (tmp_path / f"{name}.yaml").write_text(MODEL.format(name=name, revision="1" * 40), encoding="utf-8")
    compilation = compile_specs([str(tmp_path)])
    assert compilation.apps
    assert [str(item) for item in compilation.diagnostics if item.code not in EXPECTED] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and GitLab generate them."""
    headings = re.findall(r"^#+ +(.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_resolves(page: str) -> None:
    text = FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    text = re.sub(r"`[^`\n]*`", "", text)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


def pages_of_docs() -> list[str]:
    """Return the pages of docs/, relative to it."""
    return [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]


def test_the_site_leads_to_every_page() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r": (\S+\.md)$", nav, re.MULTILINE)
    assert {*pages_of_docs(), *site_pages.pages()} - set(listed) == set(), "add them to `nav` in mkdocs.yml"
    assert len(listed) == len(set(listed))


def test_the_list_of_documents_has_every_page() -> None:
    listed = re.findall(r"\]\(([^)#]+\.md)[^)]*\)", (ROOT / "docs/index.md").read_text(encoding="utf-8"))
    runtimes = [f"../runtimes/{path.parent.name}/README.md" for path in ROOT.glob("runtimes/*/README.md")]
    missing = (set(pages_of_docs()) | set(runtimes)) - {"index.md"} - set(listed)
    assert missing == set(), "add them to the list of docs/index.md"


@pytest.mark.parametrize("dialect", own_dialects(), ids=lambda dialect: dialect.name)
def test_every_dialect_has_a_page_in_the_list_of_dialects(dialect: Dialect) -> None:
    page = f"dialects/{dialect.name}.md"
    assert page in pages_of_docs(), "write this page in docs/"
    assert f"[{dialect.title}]({page})" in (ROOT / "docs/dialects.md").read_text(encoding="utf-8")


def test_pages_are_found() -> None:
    assert {"README.md", "docs/architecture.md", "docs/cli.md"} <= set(PAGES)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_shows_the_help_of_each_command(name: str) -> None:
    command = cli.get_command(cli.make_context("kaigen", ["--help"], resilient_parsing=True), name)
    assert command is not None
    assert command.name == name
    assert command.help
    assert command.help.split("\n\n")[0].replace("\n", " ") == COMMANDS[name]


def test_the_page_of_commands_lists_every_command_and_option() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    context = cli.make_context("kaigen", ["--help"], resilient_parsing=True)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        assert f"## kaigen {name}\n" in page
        for parameter in command.params:
            assert all(option in page for option in parameter.opts if option.startswith("-"))


def command_lines(page: str) -> list[list[str]]:
    """Return the words of each `kaigen` command in the code of a page, after `kaigen`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(code for language, code in FENCE.findall(text) if language in {"sh", "console"})
    inline = re.findall(r"`(kaigen [^`\n]+)`", FENCE.sub("", text))
    found = re.findall(r"(?:^|\$ |\| |&& )(kaigen [^|#\n&>]+)", "\n".join([blocks, *inline]), re.MULTILINE)
    return [line.split()[1:] for line in found]


COMMAND_LINES = [
    (page, line) for page in PAGES if page != "docs/cli.md" for line in command_lines(page) if line[0].isalpha()
]


def test_command_lines_are_found_in_the_pages() -> None:
    assert len(COMMAND_LINES) > 60


@pytest.mark.parametrize(
    ("page", "line"), COMMAND_LINES, ids=lambda value: "-".join(value) if isinstance(value, list) else value
)
def test_commands_and_options_in_the_pages_exist(page: str, line: list[str]) -> None:
    context = cli.make_context("kaigen", ["--help"], resilient_parsing=True)
    command = cli.get_command(context, line[0])
    assert command is not None, line[0]
    if isinstance(command, click.Group) and len(line) > 1:
        command = command.get_command(context, line[1]) or command
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    own = line[1 : line.index("--")] if "--" in line else line[1:]
    given = {word.partition("=")[0] for word in own if word.startswith("-") and word != "-"}
    assert given - known - {"--help"} == set()


def test_every_diagnostic_code_in_the_pages_exists() -> None:
    named = {code for page in PAGES for code in re.findall(r"KG\d{4}", (ROOT / page).read_text(encoding="utf-8"))}
    assert named <= set(codes())
