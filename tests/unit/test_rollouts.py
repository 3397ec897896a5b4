"""`kaigen promote --weight` and `--finish`: what they change in the file of a Topology, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kaigen.cli.main import run
from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.gates.reports import make_report, report_path, write_report
from kaigen.gates.verdicts import find_gates
from kaigen.rollouts import plan_finish, plan_weight

Cli = Callable[..., tuple[int, str]]
SPEC = """\
# Chat.
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  preset: phi-4
  image: vllm/vllm-openai:v0.32.0   # serves
  resources: {gpus: 1, gpuType: A100-80GB}
  route: {host: chat.example.com, gateway: {name: public}}
  canary:
    # Faster.
    image: vllm/vllm-openai:v0.33.0 # new
    engineArgs:
      max-num-batched-tokens: 8192
      # The same in each run.
      seed: 1

  # For long documents.
  contextLength: 8192
"""
OTHER = "---\napiVersion: kaigen.dev/v1alpha1\nkind: Alias\nmetadata: {name: talk}\nspec: {topology: chat} # old name\n"
GATE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: speed}
spec:
  workload: benchmark
  target: {name: chat, version: canary}
"""
CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nnamespace: ml\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a Topology that has a canary."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "kaigen.yaml").write_text(CONFIG)
    (tmp_path / "specs/chat.yaml").write_text(SPEC + OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Return what runs a command: its exit code and what it prints."""

    def run_command(*arguments: str) -> tuple[int, str]:
        code = run([*arguments])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run_command


def text(folder: Path) -> str:
    """Return the file of the Topology."""
    return (folder / "specs/chat.yaml").read_text()


def test_weight_is_the_only_change(folder: Path) -> None:
    first = plan_weight(load_config(folder), "chat", 10)
    new = "    image: vllm/vllm-openai:v0.33.0"
    assert first.file.new == (SPEC + OTHER).replace(new, f"    weight: 10\n{new}")
    (folder / "specs/chat.yaml").write_text(first.file.new)
    second = plan_weight(load_config(folder), "ml/chat", 50)
    assert second.file.new == first.file.new.replace("weight: 10", "weight: 50")
    assert (second.old, second.new, second.raises) == (10, 50, True)
    assert not plan_weight(load_config(folder), "chat", 0).raises


def test_canary_in_braces(folder: Path) -> None:
    (folder / "specs/chat.yaml").write_text(
        SPEC.partition("  canary:")[0] + "  canary: {image: vllm/vllm-openai:v0.33.0} # new\n  contextLength: 8192\n"
    )
    change = plan_weight(load_config(folder), "chat", 100)
    assert "  canary: {weight: 100, image: vllm/vllm-openai:v0.33.0} # new\n" in change.file.new
    (folder / "specs/chat.yaml").write_text(change.file.new)
    done = plan_finish(load_config(folder), "chat").file.new
    assert "canary" not in done
    assert yaml.safe_load(done)["spec"]["image"] == "vllm/vllm-openai:v0.33.0"


def test_finish_moves_the_fields_with_their_comments(folder: Path) -> None:
    (folder / "specs/chat.yaml").write_text(plan_weight(load_config(folder), "chat", 100).file.new)
    change = plan_finish(load_config(folder), "chat")
    assert (
        change.file.new
        == f"""\
# Chat.
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {{name: chat}}
spec:
  preset: phi-4
  image: vllm/vllm-openai:v0.33.0 # new
  resources: {{gpus: 1, gpuType: A100-80GB}}
  route: {{host: chat.example.com, gateway: {{name: public}}}}
  engineArgs:
    max-num-batched-tokens: 8192
    # The same in each run.
    seed: 1
  pool: {change.pool.removeprefix("chat-")}

  # For long documents.
  contextLength: 8192
{OTHER}"""
    )
    assert change.removed == "chat"


def test_pools_follow_each_other(folder: Path) -> None:
    (folder / "specs/chat.yaml").write_text(plan_weight(load_config(folder), "chat", 100).file.new)
    first = plan_finish(load_config(folder), "chat")
    later = first.file.new.replace("  pool:", "  canary: {pool: third, weight: 100, engineArgs: {seed: 3}}\n  pool:")
    (folder / "specs/chat.yaml").write_text(later)
    second = plan_finish(load_config(folder), "chat")
    spec = yaml.safe_load(second.file.new.partition("---")[0])["spec"]
    assert (second.removed, spec["pool"], spec["engineArgs"]) == (first.pool, "third", {"seed": 3})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (SPEC, "gets 0 % of the requests"),
        (SPEC.partition("  canary:")[0], "`chat` has no canary"),
        (SPEC.replace("name: chat}", "name: talk}"), "no Topology is named `chat`"),
        (
            SPEC.partition("spec:")[0] + "spec: {preset: phi-4, resources: {gpus: 1, gpuType: A100-80GB}, "
            "canary: {weight: 100, engineArgs: {seed: 1}}}\n",
            "without changing something else",
        ),
    ],
)
def test_finish_is_refused(folder: Path, spec: str, message: str) -> None:
    (folder / "specs/chat.yaml").write_text(spec)
    with pytest.raises(InputError, match=message) as caught:
        plan_finish(load_config(folder), "chat")
    assert {each.code for each in caught.value.diagnostics} == {"KG0435"}


def test_weight_that_an_override_sets_is_changed_there(folder: Path) -> None:
    override = {"match": {"app": "chat"}, "spec": {"canary": {"weight": 5}}}
    (folder / "kaigen.yaml").write_text(CONFIG + yaml.safe_dump({"environments": {"prod": {"overrides": [override]}}}))
    with pytest.raises(InputError, match="an override sets the weight"):
        plan_weight(load_config(folder, "prod"), "chat", 10)


def test_more_requests_need_the_gates_of_the_canary(folder: Path, cli: Cli) -> None:
    (folder / "specs/gate.yaml").write_text(GATE)
    before = text(folder)
    code, printed = cli("promote", "chat", "--weight", "10")
    assert code == 1
    assert "1 of 1 gates have not passed, so chat stays at 0 %" in printed
    assert text(folder) == before
    (gate,) = find_gates(load_config(folder))
    report = make_report({"gate": "speed", "run": gate.run, "passed": True, "reason": "", "checks": []})
    write_report(report_path(folder, "", "ml", "speed"), report)
    code, printed = cli("promote", "chat", "--weight", "10", "--output", "json")
    assert code == 0, printed
    assert json.loads(printed)["weight"] == 10
    assert yaml.safe_load(text(folder).partition("---")[0])["spec"]["canary"]["weight"] == 10
    # A lower weight is never refused.
    report_path(folder, "", "ml", "speed").unlink()
    assert cli("promote", "chat", "--weight", "0")[0] == 0


def test_dry_run_writes_nothing(folder: Path, cli: Cli) -> None:
    before = text(folder)
    assert "not written" in cli("promote", "chat", "--weight", "10", "--dry-run")[1]
    assert text(folder) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("chat",),
        ("--weight", "10"),
        ("chat", "--weight", "10", "--finish"),
        ("chat", "--weight", "10", "--skip"),
        ("chat", "--finish", "--to", "prod"),
    ],
)
def test_usage(folder: Path, cli: Cli, arguments: tuple[str, ...]) -> None:
    assert cli("promote", *arguments)[0] == 2


@pytest.mark.parametrize("finish", [False, True])
def test_fields_in_an_old_spelling_stay_as_they_are(folder: Path, cli: Cli, finish: bool) -> None:
    old = SPEC.replace("spec:\n", "spec:\n  imagePullSecrets: [login]\n", 1).replace("    weight: 0\n", "")
    old = old.replace("canary:\n", "canary:\n    weight: 100\n", 1)
    (folder / "specs/chat.yaml").write_text(old)
    code, printed = cli("promote", "chat", *(["--finish"] if finish else ["--weight", "20"]))
    assert code == 0, printed
    assert "  imagePullSecrets: [login]\n" in text(folder)


def test_the_namespace_of_a_tenant_names_its_topology(folder: Path) -> None:
    lab = "{folders: [specs/lab], namespaces: [lab], images: ['*'], hosts: ['*'], references: ['*/*']}"
    (folder / "kaigen.yaml").write_text(CONFIG + f"tenants: {{lab: {lab}}}\n")
    (folder / "specs/lab").mkdir()
    (folder / "specs/lab/chat.yaml").write_text(SPEC.replace("chat.example", "lab.example"))
    config = load_config(folder)
    assert plan_weight(config, "lab/chat", 10).file.path == folder / "specs/lab/chat.yaml"
    assert plan_weight(config, "ml/chat", 10).file.path == folder / "specs/chat.yaml"
