"""kaigen and Helm compute the same hash in a Job's name, and a new hash means a new run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.catalog.profiles import get_profile
from kaigen.compile.app import App
from kaigen.compile.context import Context
from kaigen.compile.expressions import find_settings
from kaigen.compile.field_expressions import MUTABLE_JOB_FIELDS
from kaigen.compile.job.compile import compile_job
from kaigen.compile.problems import Problems
from kaigen.emit.values import check_values, effective_values
from kaigen.kinds.block import read_block
from kaigen.kinds.job import Job
from kaigen.pipeline.result import Compiled
from tests.cases import AppCase, app_cases, write_chart
from tests.chart.synthesis import filled
from tests.chart.test_equal import by_helm, written
from tests.differences import assert_same
from tests.strategies import floats, helm_keys, helm_texts, json_values, texts

CONTEXT = Context(get_profile("generic"))


def compiled(spec: dict[str, Any], **metadata: Any) -> Compiled:
    problems = Problems()
    block = read_block(Job, {"metadata": {"name": "work", **metadata}, "spec": spec})
    app = compile_job(block, CONTEXT, problems)
    assert not problems.failed, problems.items
    return Compiled(app, app.default_values(), app.render())


def job_name(app: App, values: dict[str, Any] | None = None) -> str:
    """Return the name of the run, which comes after the Job that creates its volume."""
    return [str(i.body["metadata"]["name"]) for i in app.render(values) if i.object.hashed][-1]


_IMAGE = helm_texts().map(lambda text: "".join(char for char in text if not (char.isspace() or char < "!")) or "i")
_NAMES = st.sampled_from(["A", "B_2", "PATH", "lower"])


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    """Return a Job in which every text is adversarial."""
    text, values = helm_texts(), json_values(helm_texts(), helm_keys())
    source = {"repo": "a/b", "include": draw(st.lists(texts().filter(bool), max_size=2))}
    return {
        "image": draw(_IMAGE),
        "command": draw(st.lists(text, min_size=1, max_size=3)),
        "args": draw(st.lists(text, max_size=3)),
        "env": draw(st.dictionaries(_NAMES, text | st.booleans() | st.integers(-(2**60), 2**60), max_size=3)),
        "params": draw(st.dictionaries(st.sampled_from(["a", "b_", "C3"]), values, max_size=3)),
        "model": {"source": {"huggingFace": source}, "mountPath": "/output/model"},
        "output": {"volume": {"size": "1Gi"}},
        "placement": {
            "tolerations": draw(st.lists(st.dictionaries(helm_keys(), values, max_size=2), max_size=2)),
            "affinity": draw(st.dictionaries(helm_keys(), values, max_size=2)),
        },
    }


@given(spec=jobs(), note=helm_texts())
def test_both_forms_agree_on_any_text(
    spec: dict[str, Any], note: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    item = compiled(spec, annotations={"note": note})
    assert_same(by_helm(_chart(tmp_path_factory, item), item), written(item.objects))


@given(data=st.data())
def test_both_forms_agree_on_any_values(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    item = _plain_job()
    text, any_json = helm_texts(), json_values(helm_texts(), helm_keys())
    values = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "image": text.filter(bool),
                "args": st.lists(text, max_size=3),
                "env": st.fixed_dictionaries({"A": text | floats() | st.integers(-(2**53), 2**53) | st.booleans()}),
                "params": st.fixed_dictionaries({"a": any_json}, optional={"more": any_json}),
                "nodeSelector": st.dictionaries(helm_keys(), text, max_size=2),
                "tolerations": st.lists(st.dictionaries(helm_keys(), any_json, max_size=2), max_size=2),
                "affinity": st.dictionaries(helm_keys(), any_json, max_size=2),
                "runtimeClassName": text,
                "output": st.fixed_dictionaries({"storageClassName": text}),
            },
        )
    )
    effective = effective_values(item.app, [{"work": values}])
    assert check_values(item.app, effective) == []
    chart = _chart(tmp_path_factory, item)
    assert_same(by_helm(chart, item, values), written(item.app.render(effective)))
    chart = _chart(tmp_path_factory, item, effective)
    assert_same(by_helm(chart, item), written(item.app.render(effective)))


def _plain_job() -> Compiled:
    return compiled({"image": "i", "env": {"A": "a"}, "params": {"a": 1}, "output": {"volume": {"size": "1Gi"}}})


def _chart(factory: pytest.TempPathFactory, item: Compiled, values: dict[str, Any] | None = None) -> Path:
    """Return one folder for hundreds of charts."""
    folder = factory.getbasetemp() / "digest"
    shutil.rmtree(folder, ignore_errors=True)
    return write_chart(folder, item, values)


@pytest.mark.parametrize(
    "app_case", [case for case in app_cases() if any(o.hashed for o in case.compiled.app.objects)], ids=lambda c: c.name
)
def test_the_name_changes_only_with_the_pod_template(app_case: AppCase) -> None:
    app = app_case.compiled.app
    hashed = [o.hashed for o in app.objects if o.hashed][-1]
    assert hashed is not None
    # The pod waits for the Job that builds its image, or whose output it uploads, by the name of that Job.
    awaited = ("job-build", "job", "jobset", "trainingruntime")
    named = [o.hashed for o in app.objects if o.hashed not in (None, hashed) and o.role in awaited]
    fixed = [
        {key: node for key, node in each.spec.items() if key not in MUTABLE_JOB_FIELDS}
        for each in (hashed, *named)
        if each is not None
    ]
    decisive = {setting.path for spec in fixed for setting in find_settings(spec)}
    # The retries of several nodes, and everything below a JobSet, are immutable.
    of_several = any(spec.get("completionMode") != "NonIndexed" for spec in fixed)
    mutable = {"networkPolicy.enabled"} if of_several else {"networkPolicy.enabled", "retries", "deadlineSeconds"}
    assert mutable.isdisjoint(decisive)
    before = job_name(app, app_case.effective({}))
    for setting in app.settings:
        value: Any = filled(app)
        for key in setting.keys:
            value = value[key]
        for key in reversed(setting.keys):
            value = {key: value}
        changed = job_name(app, app_case.effective(value)) != before
        assert changed == (setting.path in decisive), setting.path


@pytest.mark.parametrize("change", [{"retries": 7}, {"deadline": "2h"}, {"deadline": "1d12h"}], ids=str)
def test_fields_that_may_change_in_place_start_no_new_run(change: dict[str, Any]) -> None:
    spec = {"image": "i", "retries": 1, "deadline": "1h"}
    assert job_name(compiled({**spec, **change}).app) == job_name(compiled(spec).app)


@pytest.mark.parametrize("metadata", [{"labels": {"team": "a"}}, {"annotations": {"note": "b"}}], ids=str)
def test_labels_and_annotations_start_a_new_run_because_pods_have_them(metadata: dict[str, Any]) -> None:
    labelled, bare = compiled({"image": "i"}, **metadata).app, compiled({"image": "i"}).app
    assert job_name(labelled) != job_name(bare)
    (field, values), *_ = metadata.items()
    job = next(item.body for item in labelled.render() if item.body["kind"] == "Job")
    assert job["spec"]["template"]["metadata"][field].items() >= values.items()


@pytest.mark.parametrize(
    "change",
    [
        {"image": "j"},
        {"image": {"ref": "i", "pullPolicy": "Always"}},
        {"image": {"ref": "i", "pullSecrets": [{"name": "s"}]}},
        {"command": ["c"]},
        {"args": ["a"]},
        {"env": {"A": "a"}},
        {"params": {"a": 1}},
        {"resources": {"gpus": 1}},
        {"resources": {"cpu": "2"}},
        {"resources": {"sharedMemory": "1Gi"}},
        {"placement": {"nodeSelector": {"a": "b"}}},
        {"placement": {"runtimeClassName": "r"}},
        {"security": {"runAsUser": 5}},
        {"security": {"podSecurity": "baseline"}},
        {"security": {"readOnlyRootFilesystem": False}},
        {"nodes": 2},
        {"output": {"volume": {"size": "1Gi"}}},
    ],
    ids=str,
)
def test_a_change_of_the_pod_template_starts_a_new_run(change: dict[str, Any]) -> None:
    assert job_name(compiled({"image": "i", **change}).app) != job_name(compiled({"image": "i"}).app)


def test_a_changed_parameter_starts_a_new_run() -> None:
    """The name of the ConfigMap with the parameters has a hash of them, which is in the pod template."""
    names = {job_name(compiled({"image": "i", "params": {"a": value}}).app) for value in (1, 2, "1", [1], {"b": 1})}
    assert len(names) == 5  # 1 and "1" are the same text in the variable, but not in the ConfigMap
