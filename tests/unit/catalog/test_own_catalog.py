"""The catalogue of a repository: its rows are used everywhere, replace kaigen's by name, and clashes are errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from kaigen.catalog import json_tables
from kaigen.catalog.catalog import BUILT_IN
from kaigen.catalog.gpus import get_gpu
from kaigen.catalog.instances import find_instance
from kaigen.catalog.json_tables import load_table
from kaigen.catalog.presets import find_preset, nearest_presets, preset_names
from kaigen.cli.main import cli
from kaigen.config.catalog import CatalogFile
from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.kinds.block import read_block
from kaigen.pipeline.run import render

HEAD = "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\n"
PRESET = """\
presets:
  - name: acme-8b
    repo: acme/llama-8b
    licence: proprietary
    architecture: LlamaForCausalLM
    modalities: [text]
    layers: 32
    hiddenSize: 4096
    heads: 32
    kvHeads: 8
    headDim: 128
    attention: gqa
    maxContext: 131072
    dtype: bfloat16
    weightsGiB: {bfloat16: 14.96}
    engine: {toolCallParser: llama3_json}
"""
HARDWARE = """\
gpus:
  - {name: X1, vendor: nvidia, memoryGiB: 96, usableGiB: 94, computeCapability: 9.0, resource: nvidia.com/gpu,
     labels: {product: ACME-X1}}
instances:
  - {name: rack-x1, cloud: on-premises, gpu: X1, count: 8, link: nvlink}
currency: EUR
prices: {rack-x1: 9.5, Standard_ND96isr_H100_v5: 98.32}
"""
TOPOLOGY = """\
apiVersion: kaigen.dev/v1alpha1
kind: Topology
metadata: {name: chat}
spec:
  preset: acme-8b
  model: {huggingFace: {repo: acme/llama-8b, revision: 0123456789abcdef0123456789abcdef01234567}}
  resources: {gpus: 1, gpuType: X1}
"""
WORKSPACE = """\
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: ws}
resource: {instanceType: rack-x1, labelSelector: {matchLabels: {apps: ws}}}
inference: {preset: {name: acme-8b}}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "repository"
    (folder / "catalog").mkdir(parents=True)
    (folder / "specs").mkdir()
    (folder / "kaigen.yaml").write_text("namespace: ml\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder


def write(root: Path, text: str, name: str = "own.yaml") -> None:
    (root / "catalog" / name).write_text(HEAD + text, encoding="utf-8")


def problems(root: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_config(root)
    return [f"{item.code} {item.mark}: {item.message}" for item in caught.value.diagnostics]


def rendered(root: Path) -> str:
    files = render((), load_config(root))
    return "\n".join(bytes(data).decode() for data in files.values())


def test_rows_of_the_repository_are_found_only_in_its_catalogue(root: Path) -> None:
    write(root, PRESET + HARDWARE)
    catalog = load_config(root).catalog
    preset, instance = find_preset("acme/llama-8b", catalog), find_instance("RACK-X1", catalog)
    assert preset is not None
    assert preset.name == "acme-8b"
    assert "acme-8b" in preset_names(catalog)
    assert instance is not None
    assert (instance.gpu.name, instance.price, instance.currency) == ("X1", 9.5, "EUR")
    assert find_preset("acme-8b", BUILT_IN) is None
    assert get_gpu("X1", BUILT_IN) is None


def test_catalogues_of_two_repositories_are_used_at_the_same_time(root: Path) -> None:
    found = []
    for price in ("9.5", "7.5"):
        write(root, HARDWARE.replace("9.5", price))
        found.append(load_config(root).catalog)
    instances = [find_instance("rack-x1", catalog) for catalog in (*found, *found)]
    assert [instance.price for instance in instances if instance] == [9.5, 7.5, 9.5, 7.5]
    assert found[0] != found[1]
    assert len({*found, load_config(root).catalog}) == 2


def test_a_topology_and_a_workspace_use_own_presets_gpus_and_instance_types(root: Path) -> None:
    write(root, PRESET + HARDWARE)
    (root / "specs" / "chat.yaml").write_text(TOPOLOGY, encoding="utf-8")
    (root / "specs" / "ws.yaml").write_text(WORKSPACE, encoding="utf-8")
    text = rendered(root)
    assert "nvidia.com/gpu.product: ACME-X1" in text or "- ACME-X1" in text
    assert "--tool-call-parser=llama3_json" in text
    assert "rack-x1" in text


def test_a_changed_catalogue_changes_the_output_although_the_specs_are_cached(root: Path) -> None:
    write(root, PRESET + HARDWARE)
    (root / "specs" / "chat.yaml").write_text(TOPOLOGY, encoding="utf-8")
    assert "ACME-X1" in rendered(root)
    result = CliRunner().invoke(cli, ["render"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    write(root, (PRESET + HARDWARE).replace("ACME-X1", "ACME-X2"))
    result = CliRunner().invoke(cli, ["render"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    written = "".join(path.read_text() for path in (root / "rendered").rglob("*.yaml"))
    assert "ACME-X2" in written
    assert "ACME-X1" not in written
    (root / "catalog" / "own.yaml").unlink()
    assert CliRunner().invoke(cli, ["render"]).exit_code != 0


def test_a_row_replaces_the_row_of_kaigen_that_has_its_name(root: Path) -> None:
    write(root, PRESET.replace("acme-8b", "qwen3-8b").replace("acme/llama-8b", "mirror/qwen3-8b"))
    catalog = load_config(root).catalog
    found = find_preset("QWEN3-8B", catalog)
    assert found is not None
    assert found.repo == "mirror/qwen3-8b"
    assert len(preset_names(catalog)) == len(preset_names(BUILT_IN))
    assert find_preset("Qwen/Qwen3-8B", catalog) is None


def test_clashes_and_contradictions_are_reported_with_their_line(root: Path) -> None:
    write(root, PRESET + HARDWARE)
    write(root, PRESET.replace("heads: 32", "heads: 31"), "two.yaml")
    path = f"{root}/catalog/two.yaml"
    assert problems(root) == [f"KG0740 {path}:12:14: 31 heads cannot share 8 KV heads"]
    write(root, PRESET, "two.yaml")
    assert problems(root) == [
        f"KG0741 {path}:4:11: two entries are named `acme-8b`",
        f"KG0741 {path}:5:11: two entries are named `acme/llama-8b`",
    ]
    taken = PRESET.replace("acme-8b", "b").replace("acme/llama-8b", "a/b")
    write(root, taken + "    aliases: [phi-4]\n", "two.yaml")
    assert problems(root) == [f"KG0741 {path}:19:15: kaigen's catalogue has `phi-4`"]
    write(root, "instances:\n  - {name: a, cloud: aws, gpu: A100, count: 1}\nprices: {p5.48xlarg: 1}\n", "two.yaml")
    assert problems(root) == [
        f"KG0306 {path}:4:32: unknown GPU type `A100`",
        f"KG1102 {path}:5:10: unknown instance type `p5.48xlarg`",
    ]
    write(root, "presets: [{name: x, repoo: a/b}]\n", "two.yaml")
    assert any(f"{path}:3:21: " in item and "`repoo`" in item for item in problems(root))


def test_a_mistake_is_fixed_without_a_stale_cache(root: Path) -> None:
    write(root, PRESET)
    assert load_config(root).catalog == load_config(root).catalog
    write(root, PRESET.replace("kvHeads: 8", "kvHeads: 7"))
    assert problems(root)
    write(root, PRESET)
    assert load_config(root).catalog.tables["presets"]


def test_the_folder_is_configurable(root: Path) -> None:
    (root / "kaigen.yaml").write_text("namespace: ml\ncatalog: ours\n", encoding="utf-8")
    os.rename(root / "catalog", root / "ours")
    (root / "ours" / "a.yaml").write_text(HEAD + PRESET, encoding="utf-8")
    assert find_preset("acme-8b", load_config(root).catalog) is not None


@pytest.mark.parametrize("table", ["presets", "gpus", "instances"])
def test_the_schema_is_that_of_kaigens_own_tables(table: str) -> None:
    foreign = {"kaito", "fromConfig", "corrections", "tunable", "removedFromKaito"}
    rows = [{key: value for key, value in row.items() if key not in foreign} for row in load_table(table)[table]]
    data = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Catalog", table: rows}
    block = read_block(CatalogFile, data)
    assert len(to_builtins(block)[table]) == len(rows)
    path = Path(json_tables.__file__).parent / "schemas" / f"{table}.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    columns = set(schema["properties"][table]["items"]["properties"]) - foreign
    model = CatalogFile.__annotations__[table].__args__[0].__args__[0]
    assert set(model.__struct_encode_fields__) - {"source"} == columns - {"source"}


def test_prices_rank_instance_types_and_are_shown_in_plans(root: Path) -> None:
    write(root, PRESET + HARDWARE)
    result = CliRunner().invoke(cli, ["plan", "--preset", "acme-8b"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("acme-8b on rack-x1 (8 × X1)")
    assert "9.50 EUR an hour" in result.output
    shown = CliRunner().invoke(cli, ["gpus", "show", "rack-x1", "-o", "json"])
    assert json.loads(shown.output)["pricePerHour"] == 9.5


CONFIG = {
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "model_type": "qwen2",
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 131072,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 152064,
}


def test_add_writes_the_entry_that_kaigen_ships_for_the_same_config(root: Path) -> None:
    (root / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    shipped = find_preset("Qwen/Qwen2.5-7B-Instruct", BUILT_IN)
    assert shipped is not None
    words = ["presets", "add", "ours-7b", "--config", "config.json", "--weights", "14.19Gi"]
    options = ["--repo", "acme/qwen-7b", "--revision", shipped.revision, "--licence", "apache-2.0"]
    result = CliRunner().invoke(cli, [*words, *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    own = find_preset("ours-7b", load_config(root).catalog)
    assert own is not None
    kept = ["layers", "hidden_size", "heads", "kv_heads", "head_dim", "attention", "max_context", "vocabulary"]
    kept += ["dtype", "weights", "architecture", "modalities", "revision", "sliding_window", "licence"]
    assert [getattr(own, name) for name in kept] == [getattr(shipped, name) for name in kept]
    again = CliRunner().invoke(cli, [*words, *options])
    assert again.exit_code == 2
    assert "--force" in again.output


def test_add_leaves_no_file_behind_when_the_preset_clashes(root: Path) -> None:
    write(root, PRESET)
    (root / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    words = ["presets", "add", "b", "--config", "config.json", "--weights", "14.19", "--repo", "acme/llama-8b"]
    result = CliRunner().invoke(cli, words)
    assert "two entries are named" in str(result.exception)
    assert not (root / "catalog" / "b.yaml").exists()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen2.5-7B", "qwen2.5-7b-instruct"),
        ("Qwen2.5-7B-Instrct", "qwen2.5-7b-instruct"),
        ("Qwen3-8", "qwen3-8b"),
        ("llama-3.2-3b", "llama-3.2-3b-instruct"),
    ],
)
def test_a_similar_preset_has_the_size_that_was_asked_for(name: str, expected: str) -> None:
    assert nearest_presets(name, BUILT_IN)[0] == expected
    assert not [known for known in nearest_presets("Qwen2.5-11B", BUILT_IN) if "32b" in known or "7b" in known]
