"""An effective spec shows the source of every value."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import pytest
import yaml

from kaigen.cli.explain import effective_text
from kaigen.config.load import load_config
from kaigen.explain.effective import effective_spec, leaves
from kaigen.pipeline.run import Run

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize("environment", ["", "prod"])
def test_every_value_of_every_spec_of_the_demo_has_an_origin_that_is_there(environment: str) -> None:
    config = load_config(EXAMPLES / "demo", environment)
    specs = Run.load((), config).specs
    assert len(specs) >= 3
    for spec in specs:
        found = effective_spec(spec.block.metadata.name, config)
        assert set(found.origins) == {path for path, _ in leaves(found.document)}
        for path, origin in found.origins.items():
            assert origin, path
            file, _, line = origin.split(" ")[0].rstrip(",").rpartition(":")
            if not origin.startswith(("default of", "dialect ")):
                assert int(line) <= len(Path(file).read_text(encoding="utf-8").splitlines()), origin


@pytest.mark.parametrize("environment", ["", "prod"])
def test_the_text_is_yaml_of_the_same_data(environment: str) -> None:
    config = load_config(EXAMPLES / "demo", environment)
    for spec in Run.load((), config).specs:
        found = effective_spec(spec.block.metadata.name, config)
        first = next(iter(yaml.safe_load_all(effective_text(found, color=False))))
        assert first == found.document
        colored = effective_text(found, color=True)
        assert click.unstyle(colored) == effective_text(found, color=False) != colored


def test_the_line_of_an_origin_holds_the_value(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "demo" / "specs", tmp_path / "specs")
    config = load_config(tmp_path)
    found = effective_spec("qwen", config)
    seen = 0
    for path, value in leaves(found.document):
        file, _, line = found.origins[path].rpartition(":")
        if isinstance(value, str) and line.isdecimal():
            seen += 1
            assert value in Path(file).read_text(encoding="utf-8").splitlines()[int(line) - 1]
    assert seen > 5


TOLERATION = "{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}"
PLACED = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: train}
spec:
  image: registry.example/train:1
  command: [train]
  resources: {gpuType: L4, gpus: 1}
  output: {volume: {size: 10Gi, accessModes: [ReadWriteOnce], %s}}
  volumes: {room: {ephemeral: {size: 1Gi}, mountPath: /room}}
  placement: %s
"""


@pytest.mark.parametrize(
    ("profile", "storage_class", "placement", "filled_in"),
    [
        ("generic", "", "{}", ["nodeSelector", "tolerations"]),
        ("k3s", "", "{}", ["extraVolumes", "nodeSelector", "output.storageClassName", "runtimeClassName"]),
        ("k3s", "storageClassName: own", "{runtimeClassName: own}", ["extraVolumes", "nodeSelector"]),
        ("eks", "storageClassName: own", "{}", ["affinity", "extraVolumes", "tolerations"]),
        ("gke", "storageClassName: own", "{spot: true}", ["extraVolumes", "nodeSelector", "tolerations"]),
        ("eks", "storageClassName: own", "{spot: true}", ["affinity", "extraVolumes", "tolerations"]),
        (
            "generic",
            "storageClassName: own",
            f"{{nodeSelector: {{nvidia.com/gpu.product: L4}}, tolerations: [{TOLERATION}]}}",
            [],
        ),
    ],
)
def test_the_profile_fills_in_what_the_spec_leaves_open(
    profile: str, storage_class: str, placement: str, filled_in: list[str], tmp_path: Path
) -> None:
    (tmp_path / "kaigen.yaml").write_text(f"profile: {profile}\n", encoding="utf-8")
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "train.yaml").write_text(PLACED % (storage_class, placement), encoding="utf-8")
    assert sorted(effective_spec("train", load_config(tmp_path)).filled_in) == filled_in


def test_a_toleration_of_nodes_that_karpenter_makes_is_not_the_profiles(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("profile: eks\n", encoding="utf-8")
    (tmp_path / "specs").mkdir()
    spec = "{preset: phi-4, resources: {gpuType: L40S, gpus: 1}, provisioning: karpenter, storage: {size: 50Gi}}"
    text = f"apiVersion: kaigen.dev/v1alpha1\nkind: Topology\nmetadata: {{name: chat}}\nspec: {spec}\n"
    (tmp_path / "specs" / "chat.yaml").write_text(text, encoding="utf-8")
    assert sorted(effective_spec("chat", load_config(tmp_path)).filled_in) == ["storage.storageClassName"]
