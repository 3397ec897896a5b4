"""The catalogue of a repository: rows that contradict themselves, each other, or kaigen's own tables."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from kaigen.catalog.catalog import Catalog
from kaigen.config.catalog import row_problems
from kaigen.config.catalog_rows import catalog_digest, catalog_sources, read_catalog
from kaigen.diagnostics.collector import Diagnostics
from tests.unit.config.reports import report

PRESET: dict[str, Any] = {
    "heads": 8,
    "kvHeads": 2,
    "attention": "gqa",
    "headDim": 64,
    "dtype": "bfloat16",
    "weightsGiB": {"bfloat16": 14, "fp8": 7},
}
MLA = {"kvLoraRank": 512, "ropeHeadDim": 64}
NONE_DIM = (("name",), "a model without MLA requires `headDim`", "set it; often hiddenSize / heads")
BOTH_MLA = (("attention",), "attention `mla` and the block `mla` require each other", "set both, or neither")


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({}, []),
        ({"kvHeads": 8, "attention": "mha"}, []),
        ({"kvHeads": 1, "attention": "mqa"}, []),
        ({"attention": "mla", "mla": MLA}, []),
        ({"attention": "mla", "mla": MLA, "headDim": None}, []),
        ({"quantization": "fp8", "weightsGiB": {"fp8": 7, "bfloat16": 14}}, []),
        ({"kvHeads": 3}, [(("kvHeads",), "8 heads cannot share 3 KV heads", "one must divide the other")]),
        (
            {"kvHeads": 3, "attention": "mha"},
            [(("kvHeads",), "8 heads cannot share 3 KV heads", "one must divide the other")],
        ),
        ({"attention": "mha"}, [(("attention",), "with `mha`, `kvHeads` equals `heads`", "write `gqa`")]),
        ({"attention": "mqa"}, [(("attention",), "with `mqa`, `kvHeads` is 1", "write `gqa`")]),
        ({"attention": "mla"}, [BOTH_MLA]),
        ({"mla": MLA}, [BOTH_MLA]),
        ({"headDim": None}, [NONE_DIM]),
        (
            {"dtype": "float16"},
            [
                (
                    ("weightsGiB",),
                    "the first size is of `bfloat16`, but the repository's weights are `float16`",
                    "list `float16` first",
                )
            ],
        ),
        (
            {"quantization": "fp8"},
            [
                (
                    ("weightsGiB",),
                    "the first size is of `bfloat16`, but the repository's weights are `fp8`",
                    "list `fp8` first",
                )
            ],
        ),
    ],
)
def test_a_preset_does_not_contradict_itself(changes: dict[str, Any], problems: list[object]) -> None:
    row = {name: value for name, value in {**PRESET, **changes}.items() if value is not None}
    assert list(row_problems("presets", row)) == problems


USABLE = (("name",), "a GPU requires `usableGiB` or `unsupported`", "set one of them")
FRACTION = (("memoryGiB",), "`memoryGiB` requires `usableGiB`", "set both, or delete `memoryGiB`")


@pytest.mark.parametrize(
    ("table", "row", "problems"),
    [
        ("gpus", {}, [USABLE]),
        ("gpus", {"usableGiB": 1}, []),
        ("gpus", {"unsupported": "old"}, []),
        ("gpus", {"memoryGiB": 1, "usableGiB": 1}, []),
        ("instances", {}, []),
        ("instances", {"usableGiB": 1}, []),
        ("instances", {"memoryGiB": 1, "usableGiB": 1}, []),
        ("instances", {"memoryGiB": 1}, [FRACTION]),
    ],
)
def test_gpus_and_parts_of_them_have_a_usable_memory(table: str, row: dict[str, Any], problems: list[object]) -> None:
    assert list(row_problems(table, row)) == problems


HEAD = "apiVersion: kaigen.dev/v1alpha1\nkind: Catalog\n"


def preset(name: str, repo: str, aliases: str = "[]", kv_heads: int = 4) -> str:
    return (
        f"- {{name: {name}, aliases: {aliases}, repo: {repo}, licence: mit, architecture: L, modalities: [text], "
        f"layers: 2, hiddenSize: 8, heads: 4, kvHeads: {kv_heads}, headDim: 2, attention: mha, maxContext: 10, "
        "dtype: bfloat16, weightsGiB: {bfloat16: 1}}\n"
    )


def gpu(name: str, aliases: str = "[]") -> str:
    return (
        f"- {{name: {name}, aliases: {aliases}, vendor: nvidia, memoryGiB: 9, usableGiB: 8, resource: nvidia.com/gpu, "
        "labels: {}}\n"
    )


def instance(name: str, model: str = "H100", aliases: str = "[]") -> str:
    return f"- {{name: {name}, aliases: {aliases}, gpu: {model}, cloud: on-premises, count: 8}}\n"


def read(root: Path, *texts: str) -> tuple[Catalog, list[str]]:
    """Return the rows of files `a.yaml`, `b.yaml` … with these texts, and their problems."""
    (root / "catalog").mkdir()
    for name, text in zip("abc", texts, strict=False):
        (root / "catalog" / f"{name}.yaml").write_text(HEAD + text, encoding="utf-8")
    problems = Diagnostics()
    found = read_catalog(root, "catalog", problems)
    return found, [line.replace(f"{root}/", "") for line in report(problems)]


def test_the_rows_of_all_files_are_read(tmp_path: Path) -> None:
    found, problems = read(
        tmp_path,
        f"presets:\n{preset('one', 'a/one')}gpus:\n{gpu('X1')}currency: EUR\nprices: {{p5.48xlarge: 1}}\n",
        f"presets:\n{preset('two', 'a/two')}instances:\n{instance('rack', 'X1')}prices: {{rack: 2.5}}\n",
    )
    assert problems == []
    assert [row["name"] for row in found.tables["presets"]] == ["one", "two"]
    assert [row["name"] for row in found.tables["gpus"]] == ["X1"]
    assert [row["name"] for row in found.tables["instances"]] == ["rack"]
    assert (found.prices, found.currency) == ({"p5.48xlarge": 1, "rack": 2.5}, "EUR")
    sources, _ = catalog_sources(tmp_path, "catalog")
    assert found.digest == catalog_digest(sources)


def test_the_digest_is_of_the_names_and_the_contents_of_the_files(tmp_path: Path) -> None:
    read(tmp_path, "gpus: []\n", "presets: []\n")
    sources, problems = catalog_sources(tmp_path, "catalog")
    assert not problems.has_errors
    assert [Path(source.path).name for source in sources] == ["a.yaml", "b.yaml"]
    expected = "".join(f"{source.path}\0{source.digest}\0" for source in sources)
    assert catalog_digest(sources) == sha256(expected.encode()).hexdigest()


def test_a_repository_without_the_folder_has_no_rows(tmp_path: Path) -> None:
    sources, problems = catalog_sources(tmp_path, "catalog")
    assert (sources, len(problems), catalog_digest(sources)) == ([], 0, "")
    assert read_catalog(tmp_path, "catalog", problems) == Catalog()


def test_every_file_with_an_invalid_row_is_reported(tmp_path: Path) -> None:
    found, problems = read(
        tmp_path,
        f"presets:\n{preset('one', 'a/one')}{preset('two', 'a/two', kv_heads=3)}",
        "currency: eur\n",
        "instances:\n- {name: rack, gpu: X9, cloud: on-premises, count: 8, memoryGiB: 3}\n",
    )
    assert problems == [
        "a.yaml:5:137 KG0740 4 heads cannot share 3 KV heads | one must divide the other",
        "b.yaml:3:11 KG0204 [currency] `currency: eur` is not a value such as `USD` | Currency of the prices",
        "c.yaml:4:66 KG0740 `memoryGiB` requires `usableGiB` | set both, or delete `memoryGiB`",
    ], "an unknown GPU is reported once the rows are valid"
    assert found.currency == ""


@pytest.mark.parametrize(
    ("texts", "problems"),
    [
        (
            (f"presets:\n{preset('one', 'a/one', '[B]')}{preset('b', 'A/One')}",),
            [
                "a.yaml:5:10 KG0741 two entries are named `b` | choose another name; it is also at catalog/a.yaml:4:25",
                "a.yaml:5:32 KG0741 two entries are named `A/One` "
                "| choose another name; it is also at catalog/a.yaml:4:35",
            ],
        ),
        (
            (f"gpus:\n{gpu('X1')}", f"gpus:\n{gpu('X2', '[x3, x1]')}"),
            ["b.yaml:4:28 KG0741 two entries are named `x1` | choose another name; it is also at catalog/a.yaml:4:10"],
        ),
        (
            (f"instances:\n{instance('rack')}{instance('rack')}",),
            [
                "a.yaml:5:10 KG0741 two entries are named `rack` "
                "| choose another name; it is also at catalog/a.yaml:4:10"
            ],
        ),
        (
            (f"gpus:\n{gpu('X1', '[h100]')}",),
            [
                "a.yaml:4:24 KG0741 kaigen's catalogue has `h100` "
                "| an entry replaces kaigen's by its `name`; choose another alias"
            ],
        ),
        (
            (f"instances:\n{instance('rack', aliases='[P5.48xlarge]')}",),
            [
                "a.yaml:4:26 KG0741 kaigen's catalogue has `P5.48xlarge` "
                "| an entry replaces kaigen's by its `name`; choose another alias"
            ],
        ),
        ((f"gpus:\n{gpu('H100')}",), []),
        ((f"gpus:\n{gpu('X1')}instances:\n{instance('X1')}",), []),
    ],
    ids=["presets", "files", "instances", "GPU of kaigen", "instance of kaigen", "replaced", "tables"],
)
def test_names_are_those_of_one_row_of_a_table(tmp_path: Path, texts: tuple[str, ...], problems: list[str]) -> None:
    assert read(tmp_path, *texts)[1] == problems


def test_an_instance_has_a_gpu_of_the_repository_or_of_kaigen(tmp_path: Path) -> None:
    text = f"gpus:\n{gpu('X1')}instances:\n{instance('a', 'X1')}{instance('b', 'H100')}{instance('c', 'X9')}"
    assert read(tmp_path, text)[1] == [
        "a.yaml:8:31 KG0306 unknown GPU type `X9` | list the GPUs with `kaigen gpus list`"
    ]


@pytest.mark.parametrize(
    ("texts", "problems"),
    [
        (
            ("prices: {p5.48xlarge: 1, x: 2}\n",),
            ["a.yaml:3:10 KG0740 `prices` require `currency` | add `currency: USD`"],
        ),
        (
            ("currency: EUR\nprices: {p5.48xlarge: 1}\n", "currency: USD\n", "prices: {p5.48xlarge: 1}\n"),
            [
                "a.yaml:3:11 KG0740 prices have one currency; another file has USD | convert the prices",
                "c.yaml:3:10 KG0741 two prices of `p5.48xlarge` | delete one; it is also at catalog/a.yaml:4:10",
            ],
        ),
        (
            ("currency: USD\nprices: {p5.49xlarge: 1, zzzzz: 2}\n",),
            [
                "a.yaml:4:10 KG1102 unknown instance type `p5.49xlarge` | did you mean `p5.48xlarge`?",
                "a.yaml:4:26 KG1102 unknown instance type `zzzzz` | add it to `instances`",
            ],
        ),
        (
            (f"instances:\n{instance('rack', aliases='[shelf]')}currency: USD\nprices: {{shelf: 1, rack: 1}}\n",),
            ["a.yaml:6:10 KG0740 `shelf` is another name of `rack` | write `rack`"],
        ),
        (("currency: USD\n", "currency: USD\nprices: {p5.48xlarge: 0}\n"), []),
        (
            ("discounts: {aws: 28, p5.48xlarge: 45, awz: 1, amazon: 2, p5.49xlarge: 3}\n",),
            [
                "a.yaml:3:39 KG1102 `awz` is no cloud with list prices and no instance type | did you mean `aws`?",
                "a.yaml:3:47 KG1102 `amazon` is no cloud with list prices and no instance type | "
                "name `aws` or `azure`, or an instance type",
                "a.yaml:3:58 KG1102 `p5.49xlarge` is no cloud with list prices and no instance type | "
                "did you mean `p5.48xlarge`?",
            ],
        ),
        (
            ("currency: EUR\nprices: {p5.48xlarge: 1}\ndiscounts: {aws: 28}\n",),
            [
                "a.yaml:5:13 KG0740 `discounts` are off list prices, which are in USD, not in EUR | "
                "delete it, and set `prices` to what you pay"
            ],
        ),
    ],
    ids=["none", "two", "unknown", "alias", "valid", "discounts", "discounts in another currency"],
)
def test_prices_have_one_currency_and_are_of_known_instance_types(
    tmp_path: Path, texts: tuple[str, ...], problems: list[str]
) -> None:
    assert read(tmp_path, *texts)[1] == problems
