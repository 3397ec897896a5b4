"""Dialects of installed packages: real distributions on the path, treated as kaigen's own dialects."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaigen.cli.main import cli
from kaigen.config.load import load_config
from kaigen.config.settings import Config
from kaigen.diagnostics.errors import InputError
from kaigen.dialects.packages import package_dialects
from kaigen.dialects.registry import OWN
from kaigen.emit.chart import chart_files
from kaigen.kinds.kind import Trainer
from kaigen.lock.pins import moving_names
from tests.unit.extend.packages import install, of_the_page
from tests.unit.extend.repository import SPEC, compiled, compiled_counts, messages, repository

SECTION = "A dialect of your own"
GROUP = "kaigen.dialects"
REVISION = "a09a35458c702b33eeacc393d103063234e8bc28"
SERVICE = f"""\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: qwen}}
spec:
  predictor:
    minReplicas: 2
    model:
      modelFormat: {{name: huggingface}}
      storageUri: hf://Qwen/Qwen2.5-7B-Instruct:{REVISION}
"""
CONFIG = "namespace: ml\ndialects: {kserve: {gpuType: L4}}\n"
MINIMAL = """\
from kaigen import Job
from kaigen.extend import Block, Dialect, ForeignKind, ForeignMetadata, Lowered, Lowering, read_block
from typing import Literal

class Spec(Block):
    image: str

class Plug(Block):
    api_version: Literal["plug.example/v1"]
    kind: Literal["Plug"]
    metadata: ForeignMetadata
    spec: Spec

def lower(plug, document, context):
    lowering = Lowering(document, context)
    data = {"metadata": {"name": plug.metadata.name}, "spec": {"image": plug.spec.image}}
    return lowering.result(Lowered(read_block(Job, data), {("spec",): ("spec",)}))

KIND = ForeignKind(
    "plug.example/v1", "Plug", "acme_kaigen:Plug", "a plug", system="plug", lower_reference="acme_kaigen:lower"
)
DIALECT = Dialect(name="plug", title="Plug", kinds=(KIND,))
"""
PLUG = "apiVersion: plug.example/v1\nkind: Plug\nmetadata: {name: one}\nspec: {image: registry.example/a:1}\n"


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("acme", "other")):
            del sys.modules[name]


def of_kserve(folder: Path, monkeypatch: pytest.MonkeyPatch, spec: str = SERVICE, config: str = CONFIG) -> Path:
    """A repository with a document of the dialect of docs/extending.md, whose package is installed."""
    project = tomllib.loads(of_the_page("toml", SECTION))["project"]
    code = of_the_page("python", SECTION)
    install(folder, monkeypatch, code, project["entry-points"][GROUP], project["name"], GROUP)
    return repository(folder / "repository", {"kaigen.yaml": config, "specs/one.yaml": spec})


def command(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Run a command in a repository."""
    monkeypatch.chdir(folder)
    return CliRunner().invoke(cli, arguments)


def plug(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    point: str = "acme_kaigen:DIALECT",
    spec: str = PLUG,
    config: str = "namespace: ml\n",
) -> list[str]:
    """Return the messages about a document of a package's dialect."""
    install(folder, monkeypatch, code, {"plug": point}, group=GROUP)
    return messages(repository(folder / "repository", {"kaigen.yaml": config, "specs/one.yaml": spec}))


def test_the_dialect_of_the_docs_renders_in_both_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = of_kserve(tmp_path, monkeypatch)
    assert messages(folder) == []
    item = compiled(folder)
    assert item.app.kind == "InferenceService of serving.kserve.io/v1beta1"
    text = json.dumps([each.body for each in item.objects])
    (deployment,) = [each.body for each in item.objects if each.body["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 2
    for part in ("Qwen/Qwen2.5-7B-Instruct", REVISION, "NVIDIA-L4"):
        assert part in text
    assert any("replicas" in content.decode() for content in chart_files(item.app, item.values).values())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("minReplicas: 2", "minReplica: 2", "specs/one.yaml:6:5 e KG0201 unknown field `minReplica`"),
        ("minReplicas: 2", "minReplicas: 0", "specs/one.yaml:6:18 e KG0208 `minReplicas` is 0"),
        ("hf://", "gs://", "specs/one.yaml:9:19 e KG0204 "),
        ("name: huggingface", "name: sklearn", "specs/one.yaml:8:27 e KG0205 "),
        (
            "      modelFormat",
            "      args: [--dtype=half]\n      modelFormat",
            "specs/one.yaml:8:7 w KG0405 `args` has no effect: vLLM is the server",
        ),
        ("{name: qwen}", "{name: qwen, uid: u}", "specs/one.yaml:3:24 w KG0405 `uid` has no effect"),
        (
            "{name: qwen}",
            "{name: qwen, annotations: {kaigen.dev/gpus: '1'}}",
            "specs/one.yaml:3:38 e KG0406 unknown annotation",
        ),
        ("v1beta1", "v1beta2", "specs/one.yaml:1:13 e KG0212 unknown apiVersion `serving.kserve.io/v1beta2`"),
    ],
)
def test_documents_of_a_package_dialect_are_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    assert old in SERVICE
    (found,) = messages(of_kserve(tmp_path, monkeypatch, SERVICE.replace(old, new)))
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("kinds",), ["kserve.InferenceService", "serving.kserve.io/v1beta1", "KServe's served model"]),
        (("kinds", "-o", "json"), ['"name": "kserve.InferenceService"']),
        (("explain", "kserve.InferenceService.spec.predictor"), ["minReplicas", "The pods that serve"]),
        (("explain", "InferenceService", "--recursive"), ["storageUri", "modelFormat"]),
        (("explain", "kaigen.yaml.dialects.kserve"), ["gpuType", "GPU of the nodes."]),
        (("explain", "kaigen.yaml.environments.dialects.kserve.gpuType"), ["GPU of the nodes."]),
        (("explain", "qwen"), ["dialect kserve", "replicas"]),
        (("schema", "kserve.InferenceService"), ["storageUri"]),
        (("schema",), ["serving.kserve.io/v1beta1", "storageUri"]),
        (("validate",), ["no problems"]),
    ],
)
def test_commands_treat_a_package_dialect_as_an_own_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], parts: list[str]
) -> None:
    done = command(of_kserve(tmp_path, monkeypatch), monkeypatch, *arguments)
    assert done.exit_code == 0, done.output
    for part in parts:
        assert part in done.output


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("dialects: {kserve: {gpuTyp: L4}}\n", "kaigen.yaml:1:21 e KG0201 unknown field `gpuTyp`"),
        ("dialects: {kserve: {gpuType: 4}}\n", "kaigen.yaml:1:30 e KG0202 "),
        ("dialects: {kserv: {}}\n", "kaigen.yaml:1:12 e KG0201 unknown field `kserv` (did you mean `kserve`?)"),
        (
            "environments: {prod: {dialects: {kserve: {gpuTyp: L4}}}}\n",
            "kaigen.yaml:1:43 e KG0201 unknown field `gpuTyp`",
        ),
        ("dialects: {substratus: {clusterNam: a}}\n", "kaigen.yaml:1:25 e KG0201 unknown field `clusterNam`"),
    ],
)
def test_settings_of_a_package_dialect_are_validated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, message: str
) -> None:
    (found,) = messages(of_kserve(tmp_path, monkeypatch, config=config))
    assert found.startswith(message)


def test_an_environment_has_settings_of_a_package_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = f"{CONFIG}environments:\n  prod: {{dialects: {{kserve: {{gpuType: A100}}}}}}\n"
    folder = of_kserve(tmp_path, monkeypatch, config=config)
    assert load_config(folder, "prod").dialects == {"kserve": {"gpuType": "A100"}}


def test_settings_of_a_package_are_read_again_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    with monkeypatch.context() as installed:
        folder = of_kserve(tmp_path, installed)
        assert load_config(folder).dialects == {"kserve": {"gpuType": "L4"}}
    with pytest.raises(InputError, match="unknown field `kserve`"):
        load_config(folder)


def test_overrides_apply_to_documents_of_a_package_dialect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    match = "{match: {kind: kserve.InferenceService}, spec: {predictor: {minReplicas: 3}}}"
    item = compiled(of_kserve(tmp_path, monkeypatch, config=f"{CONFIG}overrides: [{match}]\n"))
    (deployment,) = [each.body for each in item.objects if each.body["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 3


def test_a_problem_of_the_spec_is_at_the_foreign_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = messages(of_kserve(tmp_path, monkeypatch, config=CONFIG.replace("L4", "l4 of ours")))
    assert found == ["specs/one.yaml:6:5 e KG0306 unknown GPU type `l4 of ours` (did you mean `L4`?)"]


def changed(old: str, new: str) -> str:
    """Return the code of the smallest dialect with a change."""
    assert old in MINIMAL
    return MINIMAL.replace(old, new)


def test_a_document_of_a_package_dialect_among_objects_is_a_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = of_kserve(tmp_path, monkeypatch)
    done = command(folder, monkeypatch, "check", "manifests", "specs")
    assert "`InferenceService` of serving.kserve.io/v1beta1 is a spec" in done.output


def test_images_of_a_package_dialect_are_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = changed("    image: str", "    image: Annotated[str, IMAGE]")
    code = f"from typing import Annotated\nfrom kaigen.kinds.promotable import IMAGE\n{code}"
    install(tmp_path, monkeypatch, code, {"plug": "acme_kaigen:DIALECT"}, group=GROUP)
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/one.yaml").write_text(PLUG, encoding="utf-8")
    (names,) = moving_names(Config(root=tmp_path)).values()
    assert [(name.field, name.document.name) for name in names] == [("spec.image", "one")]


def test_a_package_needs_no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plug(tmp_path, monkeypatch, MINIMAL) == []
    assert compiled(tmp_path / "repository").app.kind == "Plug of plug.example/v1"


@pytest.mark.parametrize(
    ("code", "point", "message"),
    [
        ("import nothing_of_the_kind\n", "DIALECT", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("x = = 1\n", "DIALECT", "cannot be loaded: SyntaxError"),
        ("raise SystemError('no')\n", "DIALECT", "acme_kaigen.py:1:1 e KG1010 the dialect `plug`"),
        (MINIMAL, "DIALEC", "cannot be loaded: AttributeError"),
        (MINIMAL, "lower", "`acme_kaigen:lower` is a function, not a Dialect"),
        (MINIMAL, "KIND", "`acme_kaigen:KIND` is a ForeignKind, not a Dialect"),
        (changed('name="plug"', "name=1"), "DIALECT", "`name` must be a string that is not empty"),
        (changed('title="Plug"', 'title=""'), "DIALECT", "`title` must be a string that is not empty"),
        (changed('name="plug"', 'name="Plug"'), "DIALECT", "`name` is `Plug`; it must be lowercase words"),
        (changed('name="plug"', 'name="kaito"'), "DIALECT", "the name `kaito` is reserved for kaigen"),
        (changed('name="plug"', 'name="kaigen"'), "DIALECT", "the name `kaigen` is reserved for kaigen"),
        (changed("(KIND,)", "()"), "DIALECT", "`kinds` must be a tuple that is not empty"),
        (changed("(KIND,)", "[KIND]"), "DIALECT", "`kinds` must be a tuple that is not empty"),
        (changed("(KIND,)", "(Plug,)"), "DIALECT", "`kinds` has a _BlockMeta, not a ForeignKind"),
        (changed("(KIND,)", "(KIND,), estimator='a:b'"), "DIALECT", "`estimator` is for kaigen's own dialects"),
        (
            changed("(KIND,)", "(KIND,), settings='acme_kaigen:Sett'"),
            "DIALECT",
            "`settings` cannot be imported from `acme_kaigen:Sett`: AttributeError",
        ),
        (changed("(KIND,)", "(KIND,), settings='acme_kaigen:lower'"), "DIALECT", "`settings` must be a subclass"),
        (changed('    "plug.example/v1"', '    "v1"'), "DIALECT", "`v1` is not a group and version"),
        (changed('", "Plug", "', '", "plug", "'), "DIALECT", "`plug` is not the name of a kind"),
        (changed('"a plug"', '""'), "DIALECT", "`summary` must be a string that is not empty"),
        (changed('system="plug"', 'system="kaito"'), "DIALECT", "`system` of `Plug` is `kaito`"),
        (
            changed('system="plug"', 'system="plug", patchable=("foo",)'),
            "DIALECT",
            "`patchable` of `Plug` must be some of `spec`, `resource`",
        ),
        (
            changed(":lower", ":lowr"),
            "DIALECT",
            "`lower_reference` of `Plug` cannot be imported from `acme_kaigen:lowr`: AttributeError",
        ),
        (changed(":lower", ":DIALECT"), "DIALECT", "`lower_reference` of `Plug` must be a function"),
        (changed("_kaigen:Plug", "_kaige:Plug"), "DIALECT", "the model of `Plug` cannot be imported from"),
        (changed("_kaigen:Plug", "_kaigen:lower"), "DIALECT", "the model of `Plug` must be a subclass"),
        (changed("_kaigen:Plug", "_kaigen:Spec"), "DIALECT", "the model of `Plug` must have the fields"),
        (changed("image: str", "image: complex"), "DIALECT", "the model of `Plug` cannot be used: "),
        (
            changed('    "plug.example/v1"', '    "plug.example/v2"'),
            "DIALECT",
            "the model of `Plug` has the apiVersion `plug.example/v1`, not `plug.example/v2`",
        ),
        (
            changed('Literal["Plug"]', 'Literal["Pluck"]'),
            "DIALECT",
            "the model of `Plug` has the kind `Pluck`, not `Plug`",
        ),
        (MINIMAL.replace("plug.example/v1", "kaigen.dev/v3"), "DIALECT", "is reserved for kaigen"),
        (
            MINIMAL.replace("plug.example/v1", "koldun.gorizond.io/v1").replace('"Plug"', '"Root"'),
            "DIALECT",
            "`Root` of `koldun.gorizond.io/v1` of the package acme-kaigen 1.0 is reserved for kaigen",
        ),
        (
            MINIMAL.replace("plug.example/v1", "apps/v1").replace('"Plug"', '"Deployment"'),
            "DIALECT",
            "`Deployment` of `apps/v1` of the package acme-kaigen 1.0 is a kind of Kubernetes",
        ),
        (changed("(KIND,)", "(KIND, KIND)"), "DIALECT", "is defined twice"),
    ],
)
def test_an_unusable_dialect_is_reported_by_the_name_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, point: str, message: str
) -> None:
    spec = PLUG.replace("Plug", "Unknown")
    found = plug(tmp_path, monkeypatch, code, f"acme_kaigen:{point}", spec)
    assert any("the package acme-kaigen 1.0" in item and message in item for item in found), found


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            changed("    lowering = Lowering(document, context)", "    lowering = {}['z']"),
            "acme_kaigen.py:15:5 e KG1011 the kind `Plug` of the package acme-kaigen 1.0 failed: KeyError: 'z'",
        ),
        (
            changed("    image: str\n", "    image: str\n    def __post_init__(self):\n        {}['y']\n"),
            "acme_kaigen.py:8:9 e KG1011 the kind `Plug` of the package acme-kaigen 1.0 failed: KeyError: 'y'",
        ),
        (changed("return lowering.result(Lowered", "return (Lowered"), "returned a Lowered instead of"),
        (changed("lowering.result(Lowered(", "lowering.result(("), "returned a tuple instead of a Lowered"),
        (changed("read_block(Job, data)", "plug"), "returned a Plug, which is none of kaigen's kinds"),
        (changed(', {("spec",): ("spec",)}', ""), "returned a spec without `origins`"),
        (changed("    return lowering", "    return lowering.result()\n    return lowering"), "neither a spec nor"),
        (
            changed("    return lowering", "    lowering.error('AC1', 'x', ())\n    return lowering"),
            "returned a message with the code `AC1`, which kaigen does not have",
        ),
    ],
)
def test_a_failing_dialect_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, message: str
) -> None:
    (found,) = plug(tmp_path, monkeypatch, code)
    assert " e KG1011 the kind `Plug` of the package acme-kaigen 1.0 " in found
    assert message in found


def test_a_notebook_that_a_dialect_fails_to_continue_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = changed('system="plug"', 'system="plug", continued_reference="acme_kaigen:lower"')
    install(tmp_path, monkeypatch, code, {"plug": "acme_kaigen:DIALECT"}, group=GROUP)
    (kind,) = package_dialects().kinds
    with pytest.raises(InputError, match=r"the kind `Plug` of the package acme-kaigen 1\.0 failed: AttributeError"):
        kind.continued({}, "a", Trainer())


def test_a_problem_that_a_dialect_raises_is_at_its_field(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = changed("    data = {", "    lowering.find_file('../../../x')\n    data = {")
    (found,) = plug(tmp_path, monkeypatch, code)
    assert found.startswith("specs/one.yaml:")
    assert "KG1011" not in found


def test_two_packages_with_the_same_dialect_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = MINIMAL.replace("acme_kaigen", "other_kaigen").replace("plug.example", "other.example")
    install(tmp_path / "other", monkeypatch, other, {"z": "other_kaigen:DIALECT"}, "other-kaigen", GROUP)
    found = plug(tmp_path, monkeypatch, MINIMAL, spec=PLUG.replace("plug.ex", "other.ex"))
    assert any(
        "the dialect `z` of the package other-kaigen 1.0 cannot be used: the package acme-kaigen 1.0 has" in each
        for each in found
    ), found


def test_a_dialect_with_the_kind_of_another_one_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = MINIMAL.replace("acme_kaigen", "other_kaigen").replace('="plug"', '="other"')
    install(tmp_path / "other", monkeypatch, other, {"z": "other_kaigen:DIALECT"}, "other-kaigen", GROUP)
    found = plug(tmp_path, monkeypatch, MINIMAL, spec=PLUG.replace("Plug", "Unknown"))
    assert any("of the package other-kaigen 1.0 is defined twice" in each for each in found), found


def test_an_unusable_dialect_with_settings_is_reported_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plug(tmp_path, monkeypatch, "x = = 1\n", config="dialects: {plug: {}}\n")
    assert any("KG1010 the dialect `plug` of the package acme-kaigen 1.0" in each for each in found), found
    assert any("kaigen.yaml:1:12 e KG0201 unknown field `plug`" in each for each in found), found


def test_an_unusable_dialect_does_not_affect_other_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "raise SystemError('no')\n", {"plug": "acme_kaigen:DIALECT"}, group=GROUP)
    assert messages(repository(tmp_path / "repository")) == []


def test_the_entry_points_of_kaigen_itself_are_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "", dict(OWN), "kaigen", GROUP)
    assert package_dialects() == type(package_dialects())()


def test_documents_of_a_package_dialect_are_compiled_at_every_render(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))
    install(tmp_path, monkeypatch, MINIMAL, {"plug": "acme_kaigen:DIALECT"}, group=GROUP)
    files = {"specs/one.yaml": PLUG, "specs/two.yaml": SPEC.replace("one", "two")}
    folder = repository(tmp_path / "repository", files)
    assert compiled_counts(folder) == [2, 1]
