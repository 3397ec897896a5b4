"""What follows from the settings of a run: folders without specs, versions of charts, and places of overrides."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import to_builtins

from kaigen.config.block_settings import ObjectPatch
from kaigen.config.dialects import names_of_packages, with_settings
from kaigen.config.file import CONFIG_ENTRY, ConfigFile, config_entry
from kaigen.config.gitops import ArgoCD, Flux, GitOps
from kaigen.config.merge import read_config
from kaigen.config.publish import Publish
from kaigen.config.settings import Config, Format, paths_without_specs
from kaigen.config.value_layers import Layer, value_layers
from kaigen.diagnostics.diagnostic import Mark
from kaigen.kinds.block import Block, document_names, read_block


@pytest.mark.parametrize(
    ("form", "gitops", "publish", "expected"),
    [
        ("chart", None, None, False),
        ("chart", GitOps(argocd=ArgoCD()), None, False),
        ("chart", GitOps(flux=Flux()), None, True),
        ("both", GitOps(flux=Flux()), None, False),
        ("chart", GitOps(flux=Flux(), charts="oci://r/a"), None, False),
        ("chart", None, Publish(), False),
        ("manifests", None, Publish(version_suffix=True), True),
    ],
)
def test_a_chart_that_flux_reads_from_git_has_a_digest_in_its_version(
    form: Format, gitops: GitOps | None, publish: Publish | None, expected: bool
) -> None:
    assert Config(format=form, gitops=gitops, publish=publish).digest_in_version is expected


@pytest.mark.parametrize(
    ("environment", "output", "base"),
    [("", "out/prod", "out/prod"), ("prod", "out/prod", "out"), ("prod", "out", "out")],
)
def test_the_trees_of_environments_are_siblings(environment: str, output: str, base: str) -> None:
    assert Config(environment=environment, output=output).output_base == base


def test_specs_are_not_read_from_the_output_the_catalogue_kinds_and_patches() -> None:
    patches = (ObjectPatch("a", None, None, "p.yaml", ()), ObjectPatch("a", None, None, {}, ()))
    config = Config(
        root=Path("/r"), environment="e", output="o/e", catalog_folder="c", kinds=("k", "l"), patches=patches
    )
    assert config.patch_files == ("p.yaml",)
    assert paths_without_specs(config) == [Path("/r", name) for name in ("o", "c", "k", "l", "p.yaml")]


VALUES = """\
values: {a: {size: 1}}
environments:
  prod:
    values:
      a: {size: 2}
  same:
    values: {a: {size: 1}}
"""


def place(layer: object, *path: str, key: bool = False) -> str:
    assert isinstance(layer, Layer)
    mark = layer.place(path, key=key)
    return f"{mark.line}:{mark.column}" if isinstance(mark, Mark) else ""


def test_overrides_of_settings_know_their_places(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(VALUES, encoding="utf-8")
    file, prod = value_layers(read_config(tmp_path, "prod"))
    assert (file, prod) == ({"a": {"size": 1}}, {"a": {"size": 2}})
    assert place(file, "a", "size") == "1:20"
    assert place(file, "a", "size", key=True) == "1:14"
    assert place(prod, "a", "size") == "5:17"
    assert place(prod) == "5:7"


def test_overrides_of_a_file_that_has_changed_have_no_place(tmp_path: Path) -> None:
    path = tmp_path / "kaigen.yaml"
    path.write_text(VALUES, encoding="utf-8")
    file, prod = value_layers(read_config(tmp_path, "prod"))
    for text in ("values: {a: {size: 3}}\n", "values: [\n", "environments: []\n", "namespace: a\n"):
        path.write_text(text, encoding="utf-8")
        assert (place(file, "a"), place(prod, "a")) == ("", ""), text


def test_settings_without_overrides_have_no_layers() -> None:
    assert value_layers(Config()) == []


class Own(Block):
    """The settings of a dialect of a package."""

    size: int = 1


def test_dialects_without_settings_in_kaigen_are_those_of_packages() -> None:
    assert names_of_packages(["substratus", "own-dialect"]) == {"own-dialect"}
    assert names_of_packages([]) == set()


def test_the_block_of_dialects_has_the_settings_of_packages() -> None:
    model = with_settings({"own-dialect": Own})
    assert {*document_names(model)} == {"substratus", "own-dialect"}
    found = read_block(model, {"own-dialect": {"size": 2}, "substratus": {"clusterName": "a"}})
    assert type(found).__doc__ == "Settings of other systems."
    assert to_builtins(found)["own-dialect"] == {"size": 2}
    assert to_builtins(read_block(model, {}))["own-dialect"] is None


def test_the_file_and_its_environments_have_the_settings_of_packages() -> None:
    entry = config_entry({"own": Own})
    model = entry.model()
    assert issubclass(model, ConfigFile)
    found = read_block(model, {"dialects": {"own": {"size": 2}}, "environments": {"e": {"dialects": {"own": {}}}}})
    assert to_builtins(found)["dialects"]["own"] == {"size": 2}
    assert to_builtins(found)["environments"]["e"]["dialects"]["own"] == {"size": 1}
    assert read_block(model, {}) == model()
    assert (entry.kind, entry.nullable) == (CONFIG_ENTRY.kind, CONFIG_ENTRY.nullable)
    assert config_entry({}) is CONFIG_ENTRY
