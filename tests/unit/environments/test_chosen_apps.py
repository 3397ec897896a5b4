"""Which apps an environment has: said in the spec, in an annotation, and in kaigen.yaml."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.load import load_config
from kaigen.diagnostics.errors import InputError
from kaigen.pipeline.run import Run
from kaigen.promote import plan_promotion

JOB = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {{name: {name}{metadata}}}
spec: {{image: "python:3.12-slim", command: [python]}}
"""
FOREIGN = """\
apiVersion: kaito.sh/v1beta1
kind: Workspace
metadata: {name: phi, annotations: {kaigen.dev/environments: "dev, staging"}}
resource: {instanceType: Standard_NC24ads_A100_v4, labelSelector: {matchLabels: {apps: phi}}}
inference: {preset: {name: phi-4-mini-instruct}}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}{metadata}}}
data: {{a: b}}
"""
ENVIRONMENTS = "environments: {dev: {}, staging: {}, prod: {}}\n"


def apps(root: Path, environment: str) -> list[str]:
    run = Run.load((), load_config(root, environment), use_cache=True)
    run.raise_errors()
    return sorted(row.name for row in run.rows)


def write(root: Path, config: str, **specs: str) -> None:
    (root / "specs").mkdir(exist_ok=True)
    (root / "kaigen.yaml").write_text(f"namespace: ml\n{config}")
    for name, text in specs.items():
        (root / "specs" / f"{name}.yaml").write_text(text)


def job(name: str, metadata: str = "") -> str:
    return JOB.format(name=name, metadata=metadata)


def test_a_spec_names_its_environments(tmp_path: Path) -> None:
    both = f"{job('tune')}---\n{job('rerank', ', environments: [dev]')}"
    write(tmp_path, ENVIRONMENTS, both=both, foreign=FOREIGN)
    for _ in range(2):  # The second time from the cache.
        assert apps(tmp_path, "dev") == ["phi", "rerank", "tune"]
        assert apps(tmp_path, "staging") == ["phi", "tune"]
        assert apps(tmp_path, "prod") == ["tune"]
    assert {key[2] for key in Run.load((), load_config(tmp_path)).units[0].defines} == {"rerank", "tune"}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("{include: [tune, other/*]}", ["chat", "tune"]),
        ("{exclude: [t*]}", ["chat", "rerank"]),
        ("{include: [ml/*], exclude: [ml/rerank]}", ["tune"]),
        ("{}", ["chat", "rerank", "tune"]),
    ],
)
def test_kaigen_yaml_chooses_apps_by_globs(tmp_path: Path, chosen: str, expected: list[str]) -> None:
    write(
        tmp_path,
        f"environments: {{dev: {{}}, prod: {{apps: {chosen}}}}}\n",
        tune=job("tune"),
        rerank=job("rerank"),
        chat=job("chat", ", namespace: other"),
    )
    assert apps(tmp_path, "prod") == expected
    assert apps(tmp_path, "dev") == ["chat", "rerank", "tune"]


def test_plain_objects_are_chosen_by_the_name_of_their_app_and_by_the_annotation(tmp_path: Path) -> None:
    annotation = ', annotations: {kaigen.dev/environments: "dev"}'
    write(
        tmp_path,
        "passthrough: true\nenvironments: {dev: {}, staging: {}, prod: {apps: {exclude: [every]}}}\n",
        every=CONFIG_MAP.format(name="one", metadata=""),
        first=CONFIG_MAP.format(name="two", metadata=annotation),
    )
    assert apps(tmp_path, "dev") == ["every", "first"]
    assert apps(tmp_path, "staging") == ["every"]
    assert apps(tmp_path, "prod") == []


def test_objects_next_to_a_spec_that_is_absent_are_absent_too(tmp_path: Path) -> None:
    # Without `passthrough`, an object that no spec uses is an error.
    text = f"{job('rerank', ', environments: [dev]')}---\n{CONFIG_MAP.format(name='two', metadata='')}"
    write(tmp_path, ENVIRONMENTS, rerank=text)
    assert apps(tmp_path, "prod") == []


def test_settings_for_an_absent_app_are_no_mistake(tmp_path: Path) -> None:
    write(
        tmp_path,
        "values: {rerank: {resources: {memory: 2Gi}}}\noverrides: [{match: {app: rerank}, spec: {retries: 1}}]\n"
        "patches: [{target: {app: 'rerank*', kind: Job}, patch: {metadata: {labels: {a: b}}}}]\n"
        f"{ENVIRONMENTS}",
        rerank=job("rerank", ", environments: [dev]"),
        rerank_two=job("rerank-two", ", environments: [dev]"),
        tune=job("tune"),
    )
    for _ in range(2):
        run = Run.load((), load_config(tmp_path, "prod"))
        assert [item.message for item in run.diagnostics] == []
        run.save()


@pytest.mark.parametrize(
    ("config", "metadata", "message", "hint"),
    [
        (ENVIRONMENTS, ", environments: [dev, stagin]", "no environment `stagin`", "did you mean `staging`?"),
        ("", ", environments: [dev]", "no environment `dev`", "kaigen.yaml defines none"),
        (ENVIRONMENTS, ", environments: []", "`environments` is empty", ""),
        (ENVIRONMENTS, ", annotations: {kaigen.dev/environments: dev}", "unknown annotation", "metadata.environments"),
        ("environments: {dev: {apps: {exclude: [tuna]}}}\n", "", "no app `tuna`", "did you mean `tune`?"),
    ],
)
def test_an_unknown_name_is_an_error(tmp_path: Path, config: str, metadata: str, message: str, hint: str) -> None:
    write(tmp_path, config, tune=job("tune", metadata))
    with pytest.raises(InputError) as error:
        apps(tmp_path, "dev" if config else "")
    (found,) = error.value.diagnostics
    assert message in found.message
    assert hint in (found.hint or "")
    assert found.mark is not None
    assert found.mark.line > 1


def test_only_apps_that_both_environments_have_are_promoted(tmp_path: Path) -> None:
    (tmp_path / "pins").mkdir()
    head = "apiVersion: kaigen.dev/v1alpha1\nkind: Pins\napps:\n"
    (tmp_path / "pins" / "prod.yaml").write_text(
        f"{head}  rerank: {{spec.image: 'a:1'}}\n  own: {{spec.image: 'b:1'}}\n"
    )
    write(
        tmp_path,
        ENVIRONMENTS,
        tune=job("tune"),
        rerank=job("rerank", ", environments: [dev]"),
        own=job("own", ", environments: [prod]"),
    )
    promotion = plan_promotion(tmp_path, "dev", "prod")
    assert {move.app for move in promotion.moves} == {"tune"}
    assert promotion.dropped == ("rerank",)
    assert "own" in (promotion.text or "")
    with pytest.raises(InputError, match="environment `prod` does not have `rerank`"):
        plan_promotion(tmp_path, "dev", "prod", ["rerank"])
