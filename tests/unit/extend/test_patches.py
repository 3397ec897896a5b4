"""Patches of kaigen.yaml applied to the objects of apps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.cli.main import run
from kaigen.config.load import load_config
from kaigen.emit.chart import chart_files
from tests.unit.extend.repository import HEAD, compiled, messages, repository

CONFIG = "namespace: ml\nkinds: [kinds]\n"
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ run }}"}
spec:
  backoffLimit: {{ setting("retries", spec.count) }}
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: main
          image: {{ setting("image", "registry.example/job:1") }}
          resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 64Mi}}
          securityContext:
            {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
"""


def patched(folder: Path, patches: str, **files: str) -> Path:
    """A repository with a Job and a ConfigMap, and patches."""
    every = {"kaigen.yaml": f"{CONFIG}patches:\n{patches}", "t/job.yaml.jinja": JOB}
    return repository(folder, {**every, **files})


def test_patching_the_spec_of_a_job_changes_its_name_in_both_forms(tmp_path: Path) -> None:
    plain = compiled(repository(tmp_path / "plain", {"t/job.yaml.jinja": JOB}))
    folder = patched(
        tmp_path / "patched",
        "  - target: {app: one, kind: Job}\n"
        "    patch: [{op: add, path: /spec/template/spec/nodeSelector, value: {disk: ssd}}]\n",
    )
    item = compiled(folder)
    names = [next(o.body["metadata"]["name"] for o in each.objects if o.object.kind == "Job") for each in (plain, item)]
    assert names[0] != names[1]
    assert all(name.startswith("one-") for name in names)
    text = chart_files(item.app, item.values)["ml/one/chart/templates/job.yaml"].decode()
    assert text.index("nodeSelector") < text.index("sha256sum")


def test_patching_a_mutable_field_of_a_job_keeps_its_name(tmp_path: Path) -> None:
    plain = compiled(repository(tmp_path / "plain", {"t/job.yaml.jinja": JOB}))
    item = compiled(
        patched(tmp_path / "patched", "  - target: {app: one, kind: Job}\n    patch: {spec: {suspend: true}}\n")
    )
    job = next(o.body for o in item.objects if o.object.kind == "Job")
    assert job["spec"]["suspend"] is True
    assert job["metadata"]["name"] in [o.body["metadata"]["name"] for o in plain.objects]


def test_replacing_a_setting_removes_it_from_the_chart_with_a_warning(tmp_path: Path) -> None:
    folder = patched(tmp_path, "  - target: {app: one, kind: Job}\n    patch: {spec: {backoffLimit: 7}}\n")
    assert messages(folder) == [
        "kaigen.yaml:5:12 w KG1024 the patch replaces the setting `retries` of `one` with a plain value "
        "(set `values` in kaigen.yaml instead, to keep the chart's setting)"
    ]
    item = compiled(folder)
    assert [setting.path for setting in item.app.settings] == ["labels", "annotations", "image"]
    assert b"retries" not in chart_files(item.app, item.values)["ml/one/chart/values.yaml"]


@pytest.mark.parametrize(
    ("target", "changed"),
    [
        ("app: one, kind: ConfigMap", ["map"]),
        ("app: 'o*'", ["job", "map"]),
        ("app: ml/one, name: map", ["map"]),
        ("app: '*/one', name: 'm*'", ["map"]),
        ("app: '*', name: one-*, kind: Job", ["job"]),
        ("app: '*', name: one", ["map"]),
    ],
)
def test_a_target_selects_objects_by_app_kind_and_name(tmp_path: Path, target: str, changed: list[str]) -> None:
    patch = f"  - target: {{{target}}}\n    patch: {{metadata: {{labels: {{team: search}}}}}}\n"
    item = compiled(patched(tmp_path, patch))
    assert sorted(o.object.role for o in item.objects if "team" in o.body["metadata"]["labels"]) == changed


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ("{app: onee, kind: Job}\n    patch: {a: 1}", "4:19 e KG1021 no app matches `onee` (did you mean `one`?)"),
        ("{app: one, kind: Jb}\n    patch: {a: 1}", "4:30 e KG1021 app `one` has no Jb (did you mean `Job`?)"),
        (
            "{app: one, name: mop}\n    patch: {a: 1}",
            "4:30 e KG1021 app `one` has no object `mop` (did you mean `map`?)",
        ),
        ("{app: one, kind: Job}\n    patch: {}", "5:12 e KG1020 the patch is empty"),
        ("{app: one}\n    patch: [{op: ad, path: /a}]", "5:18 e KG1020 unknown operation `ad` (did you mean `add`?)"),
        ("{app: one}\n    patch: [{path: /a}]", "5:13 e KG1020 `op` is missing"),
        ("{app: one}\n    patch: [{op: add, path: /a}]", "5:18 e KG1020 `add` requires `value`"),
        (
            "{app: one}\n    patch: [{op: remove, path: a}]",
            "5:32 e KG1020 not a JSON pointer: `a` does not start with `/`",
        ),
        ("{app: one}\n    patch: [{op: remove, path: /a, valu: 1}]", "5:36 e KG1020 unknown field `valu` of `remove`"),
        ("{app: one}\n    patch: nowhere.yaml", "5:12 e KG1020 the patch `nowhere.yaml`: no such file or folder"),
        ("{app: one}\n    patch: ../a.yaml", "5:12 e KG0204 `patch: ../a.yaml` is not a relative path"),
        ("{app: one, kind: Job}\n    patch: {metadata: {name: x}}", "5:12 e KG1023 Job `one-"),
        ("{app: one, kind: Job}\n    patch: [{op: remove, path: /kind}]", "5:12 e KG1023 Job `one-"),
        ("{app: one, kind: Job}\n    patch: [{op: replace, path: '', value: {}}]", "5:12 e KG1023 Job `one-"),
        ("{app: one, kind: Job}\n    patch: {spec: {x: 1}}", "5:23 e KG0504 Job one-"),
        ("{app: one, kind: Job}\n    patch: [{op: remove, path: /spec/x}]", "5:32 e KG1022 Job `one-"),
        ("{app: one, kind: Job}\n    patch: {spec: {x: null}}", "5:20 w KG1022 Job `one-"),
        ("{ap: one}\n    patch: {a: 1}", "4:14 e KG0201 unknown field `ap`"),
    ],
)
def test_a_patch_that_is_malformed_or_does_not_apply_is_reported(tmp_path: Path, patch: str, message: str) -> None:
    found = messages(patched(tmp_path, f"  - target: {patch}\n"))
    assert any(item.startswith(f"kaigen.yaml:{message}") for item in found), found


def test_a_pattern_that_matches_no_object_in_any_app_is_reported(tmp_path: Path) -> None:
    two = "apiVersion: acme.example/v1\nkind: Thing\nmetadata: {name: two}\nspec: {}\n"
    folder = patched(tmp_path, "  - target: {app: '*', kind: Service}\n    patch: {a: 1}\n", **{"specs/two.yaml": two})
    (found,) = messages(folder)
    assert found.startswith("kaigen.yaml:4:30 e KG1021 none of the 2 apps that match `*` has a Service")


def test_patches_of_an_environment_are_applied_last(tmp_path: Path) -> None:
    folder = patched(
        tmp_path,
        "  - target: {app: one, kind: ConfigMap}\n    patch: {data: {a: file}}\n"
        "environments:\n  prod:\n    patches:\n"
        "      - target: {app: one, kind: ConfigMap}\n        patch: {data: {a: prod}}\n",
    )
    values = [
        next(o.body["data"]["a"] for o in compiled(folder, env).objects if o.object.kind == "ConfigMap")
        for env in ("", "prod")
    ]
    assert values == ["file", "prod"]
    assert load_config(folder, "prod") == load_config(folder, "prod")


def test_files_of_patches_and_kinds_are_not_read_as_specs(tmp_path: Path) -> None:
    config = f"{CONFIG}specs: ['.']\npatches:\n  - target: {{app: one, kind: ConfigMap}}\n    patch: p/a.yaml\n"
    folder = repository(tmp_path, {"kaigen.yaml": config, "p/a.yaml": "data: {b: c}\n"})
    assert messages(folder) == []


def test_an_incremental_render_sees_changes_of_templates_schemas_and_patches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = f"{CONFIG}patches:\n  - target: {{app: one, kind: ConfigMap}}\n    patch: p/a.yaml\n"
    folder = repository(tmp_path, {"kaigen.yaml": config, "p/a.yaml": "data: {b: c}\n"})
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KAIGEN_CACHE_DIR", str(tmp_path / "cache"))

    def rendered() -> str:
        assert run(["-q", "render"]) == 0
        assert run(["-q", "render"]) == 0
        return (folder / "rendered/ml/one/manifests/map.yaml").read_text(encoding="utf-8")

    assert "b: c" in rendered()
    (folder / "p/a.yaml").write_text("data: {b: d}\n", encoding="utf-8")
    assert "b: d" in rendered()
    (folder / "kinds/thing/templates/map.yaml.jinja").write_text(HEAD + "  x: z\n", encoding="utf-8")
    assert "x: z" in rendered()
    schema = folder / "kinds/thing/schema.yaml"
    schema.write_text(schema.read_text(encoding="utf-8").replace("maximum: 9", "maximum: 1"), encoding="utf-8")
    assert run(["-q", "render"]) == 0  # A default is not held against its own schema.
    (folder / "p/a.yaml").unlink()
    assert run(["-q", "render"]) == 2
