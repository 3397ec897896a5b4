"""The generator of the tables in kaigen/catalog: what it reads, and how little of it a table has to store."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.json_tables import load_table
from kaigen.catalog.vllm_flags import rows_of
from kaigen.kubernetes.schemas import index
from tools.facts import configs, controllers, machines, prices, recipes, sources, vllm_table
from tools.facts.__main__ import newest_version

ROOT = Path(__file__).parent.parent.parent


def flag(**keys: Any) -> dict[str, Any]:
    return {"names": ["f"], "type": "text", **keys}


@pytest.mark.parametrize(
    "rows",
    [
        [flag(), flag(), flag()],
        [None, flag(), None, flag()],
        [flag(default=1), flag(), flag(default=2)],
        [flag(choices=["a", "b"]), flag(choices=["b", "c"]), flag(choices=["c"]), flag()],
        [flag(choices=["8", "16"]), flag(choices=["8", "16", "128"])],
    ],
    ids=str,
)
def test_a_flag_of_every_version_is_read_from_its_changes(
    rows: list[dict[str, Any] | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = json.loads(json.dumps(vllm_table.changes(rows)))
    monkeypatch.setattr("kaigen.catalog.vllm_flags.load_table", lambda _: {"flags": {"f": stored}})
    assert [next(iter(rows_of(place)), None) for place in range(len(rows))] == rows


def test_an_equal_version_takes_no_room() -> None:
    assert vllm_table.changes([flag(), flag(), flag(default=1)]) == [[0, flag()], [2, {"default": 1}]]


def test_spans_of_names() -> None:
    assert vllm_table.spans([["a"], ["a", "b"], ["b"], ["a"]]) == {"a": [[0, 1], [3, 3]], "b": [[1, 2]]}


def test_variables_and_metrics_are_read_from_the_files(tmp_path: Path) -> None:
    (tmp_path / "vllm" / "v1").mkdir(parents=True)
    envs = 'environment_variables: dict[str, object] = {\n    "VLLM_B": lambda: 1,\n    "VLLM_A": lambda: 2,\n}\n'
    (tmp_path / "vllm" / "envs.py").write_text(envs)
    (tmp_path / "vllm" / "v1" / "m.py").write_text('gauge(name="vllm:running")\ncounter(\n    "vllm:waiting",\n)\n')
    assert vllm_table.environment_variables(tmp_path) == ["VLLM_A", "VLLM_B"]
    assert vllm_table.metrics(tmp_path) == ["vllm:running", "vllm:waiting"]


def test_packages_are_those_that_a_version_installs_without_an_extra(tmp_path: Path) -> None:
    lines = ["Name: vllm", "Requires-Dist: torch==2.9", "Requires-Dist: opentelemetry-sdk>=1.27.0"]
    lines.append('Requires-Dist: opentelemetry-exporter-otlp>=1.26.0; extra == "otel"')
    (tmp_path / "PKG-INFO").write_text("\n".join(lines))
    assert vllm_table.packages(tmp_path) == ["opentelemetry-sdk"]


def test_stand_ins_take_the_place_of_packages_that_are_not_installed(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "platforms.py": "",
        "engine.py": "import torch\nfrom torch.nn import Module\n\n\n@torch.compile(dynamic=True)\n"
        "def one() -> int:\n    return 1\n\n\nclass Layer(Module):\n    kind: torch.Tensor | None = None\n",
    }
    (tmp_path / "vllm").mkdir()
    for name, text in files.items():
        (tmp_path / "vllm" / name).write_text(text)
    code = (
        "from tools.facts.stand_ins import install; install()\n"
        "from vllm.engine import Layer, one\n"
        "import vllm.v1.worker\n"
        "print(one(), Layer().kind)"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, capture_output=True, text=True
    )
    assert (run.stdout, run.stderr) == ("1 None\n", "")


def test_a_package_that_is_not_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def downloaded(version: str, folder: Path) -> Path:
        package = folder / "vllm.tar.gz"
        package.write_bytes(b"another package")
        return package

    monkeypatch.setattr(sources, "_downloaded", downloaded)
    with pytest.raises(sources.SourceError, match=r"the package has the SHA-256 \w+, and 00 is pinned"):
        sources.vllm_files("0.33.0", "00")
    assert not list((tmp_path / "kaigen" / "facts").iterdir())


def test_the_lock_names_every_version_of_the_table_and_no_host() -> None:
    lock, text = sources.read_lock(), sources.LOCK.read_text()
    assert list(lock["vllm"]) == list(load_table("vllm_flags")["versions"])
    assert "://" not in text
    assert all(len(sha256) == 64 for sha256 in lock["vllm"].values())
    assert all(checksum.startswith("h1:") for _, checksum in lock["modules"].values())
    assert all(len(sha256) == 64 for _, sha256 in lock["wheels"].values())
    packages = {each["source"].partition(",")[0] for each in load_table("machines")["clouds"].values()}
    packages.add(json.loads(configs.TABLE.read_text())["source"].rpartition(" in ")[2])
    assert packages == {f"{name} {version}" for name, (version, _) in lock["wheels"].items()}


def test_machines_are_read_from_both_packages() -> None:
    ec2 = {"VCpuInfo": {"DefaultVCpus": 4}, "MemoryInfo": {"SizeInMiB": 16384}}
    assert machines.machine_of(ec2) == machines.machine_of({"VCpuCount": 4, "MemoryInMB": 16384}) == [4, 16384]


def test_a_recipe_gives_flags_to_its_model_and_to_its_variants() -> None:
    recipe = {
        "model": {
            "model_id": "a/b",
            "context_length": 10,
            "base_args": ["--max-model-len", "8", "--trust-remote-code"],
        },
        "features": {"tools": {"args": ["--tool-call-parser=x", "--max-model-len", "99"]}},
        "variants": {"default": {}, "small": {"model_id": "a/s", "extra_args": ["--kv-cache-dtype", "fp8"]}},
    }
    shared = {"max-model-len": "8", "trust-remote-code": True, "tool-call-parser": "x"}
    assert recipes.models_of(recipe) == {
        "a/b": {"context": 10, "flags": shared},
        "a/s": {"context": 10, "flags": {**shared, "kv-cache-dtype": "fp8"}},
    }


def test_configs_are_shortened_to_what_the_plan_reads(tmp_path: Path) -> None:
    plain = {"num_hidden_layers": 2, "hidden_size": 8, "rope_theta": 1, "quantization_config": {"quant_method": "fp8"}}
    sees = {"text_config": {"num_hidden_layers": 3, "rope_theta": 1}, "vision_config": {"depth": 9}}
    path = tmp_path / "package.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("core/model_configs/a--b-c_config.json", json.dumps(plain))
        wheel.writestr("core/model_configs/a--sees_config.json", json.dumps(sees))
        wheel.writestr("core/model_configs/a--sees_hf_quant_config.json", "{}")
        wheel.writestr(
            "core.dist-info/sboms/core.cyclonedx.json", '{"metadata": {"timestamp": "2026-09-01T20:04:54Z"}}'
        )
    assert json.loads(configs.table(path, "1.2")) == {
        "source": "model_configs in aiconfigurator-core 1.2",
        "date": "2026-09-01",
        "models": {
            "a/b-c": {"num_hidden_layers": 2, "hidden_size": 8, "quantization_config": {"quant_method": "fp8"}},
            "a/sees": {"text_config": {"num_hidden_layers": 3}, "vision_config": {}},
        },
    }


def test_prices_are_those_of_one_region() -> None:
    aws = '\t"us-east-1": {\n\t\t// g6\n\t\t"g6.xlarge": 0.804800, "g6.2xlarge": 0.977600,\n\t},\n'
    aws += '\t"eu-west-1": {\n\t\t"g6.xlarge": 9,\n\t},'
    azure = 'initialOnDemandPrices["eastus"] = map[string]float64{\n\t\t"Standard_A1":   0.023000,\n\t}\n'
    azure += 'initialOnDemandPrices["eastus2"] = map[string]float64{\n\t\t"Standard_A1": 9,\n\t}\n'
    patterns = {cloud: pattern for cloud, _, _, pattern in prices._FILES.values()}
    assert prices.prices_in(f"x{{\n{aws}", "us-east-1", patterns["aws"]) == {"g6.xlarge": 0.8048, "g6.2xlarge": 0.9776}
    assert prices.prices_in(azure, "eastus", patterns["azure"]) == {"Standard_A1": 0.023}
    assert prices.prices_in(azure, "northeurope", patterns["azure"]) == {}


def test_an_older_version_than_the_pinned_one_is_not_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    # The proxy serves more versions of a module than it lists.
    monkeypatch.setattr(sources, "module_versions", lambda _: ["v0.9.0", "v0.17.0", "v0.20.0-rc.1"])
    assert newest_version("example.com/m", "v0.19.2") == "v0.19.2"
    assert newest_version("example.com/m", "v0.16.2") == "v0.17.0"


def test_the_table_of_controllers_has_every_kind_that_kaigen_knows_of_them() -> None:
    for name, row in load_table("controller_versions").items():
        groups, kinds = (
            {each.partition("/")[0] for each in row["served"]},
            {each.split("/")[2] for each in row["served"]},
        )
        known = {
            kind
            for kind, versions in index()["kinds"].items()
            if any(version.partition("/")[0] in groups for version in versions)
        }
        assert kinds >= known, f"{name}: run make facts"


def definition(fields: dict[str, Any], version: str = "v1beta2") -> bytes:
    schema = {"properties": {"spec": {"properties": fields}, "status": {"properties": {"x": {}}}}}
    versions = [{"name": version, "served": True, "schema": {"openAPIV3Schema": schema}}]
    spec = {"group": "kueue.x-k8s.io", "names": {"kind": "ClusterQueue"}, "versions": versions}
    return json.dumps({"kind": "CustomResourceDefinition", "spec": spec}).encode()


def test_only_what_differs_between_versions_of_a_controller_is_in_its_table(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"items": {"properties": {"action": {"enum": ["b", "a"]}}}}
    more = {"items": {"properties": {"action": {"enum": ["a", "b", "c"]}}}}
    archives = {}
    new: dict[str, Any] = {"properties": {"x": {}}}
    versions: dict[str, dict[str, Any]] = {"0.1.0": {"rules": rules}, "0.2.0": {"rules": more, "new": new}}
    for version, fields in versions.items():
        path = tmp_path / f"{version}.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(f"example.com/m@v{version}/config/crd/bases/a.yaml", definition(fields))
        archives[version] = [(path, f"v{version}", "2026-01-01")]
    made = json.loads(controllers.table({"kueue": archives}))["kueue"]
    assert made["versions"]["0.2.0"] == {"source": "example.com/m v0.2.0", "date": "2026-01-01"}
    assert made["fields"]["kueue.x-k8s.io/v1beta2/ClusterQueue"] == {
        "spec.new": [[1, {}]],
        "spec.rules[].action": [[0, {"enum": ["a", "b"]}], [1, {"enum": ["a", "b", "c"]}]],
    }
