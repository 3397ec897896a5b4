"""A tenant names only the classes that kaigen.yaml grants it, and the one that the profile gives to pods."""

from __future__ import annotations

import pytest
import yaml

from tests.tenancy.tenants import TENANT
from tests.unit.security.hostile import JOB, Repository

GPU_JOB = JOB.replace("cpu: 1", "cpu: 1, gpus: 1, gpuType: L4")


def config(profile: str = "generic", **changes: object) -> str:
    tenant = {**TENANT, "namespaces": ["ml"], "classes": [], **changes}
    head = f"apiVersion: kaigen.dev/v1alpha1\nkind: Config\nprofile: {profile}\nnamespace: ml\n"
    return head + yaml.safe_dump({"tenants": {"a": tenant}})


@pytest.fixture
def team(repository: Repository) -> Repository:
    """A repository with a Job of a tenant that requests a GPU."""
    (repository.folder / "specs/evaluate.yaml").unlink()
    repository.write({"kaigen.yaml": config(), "specs/a/x.yaml": GPU_JOB})
    return repository


def with_placement(placement: str) -> str:
    return f"{GPU_JOB}  placement: {{{placement}}}\n"


def test_the_runtime_class_of_the_profile_needs_no_grant(team: Repository) -> None:
    team.write({"kaigen.yaml": config("k3s")})
    done = team.kaigen("validate")
    assert done.code == 0, done.text
    (file,) = (path for path, text in _rendered(team).items() if "runtimeClassName: nvidia" in text)
    assert "job" in file


def _rendered(team: Repository) -> dict[str, str]:
    assert team.kaigen("render").code == 0
    return {path.name: path.read_text() for path in team.folder.glob("rendered/**/*.yaml")}


@pytest.mark.parametrize(
    ("placement", "entry", "other"),
    [
        ("runtimeClassName: nvidia", "RuntimeClass/nvidia", "RuntimeClass/nvid"),
        ("runtimeClassName: kata-qemu", "RuntimeClass/kata-*", "Scheduler/kata-*"),
        ("schedulerName: volcano", "Scheduler/volcano", "*/volcan"),
        ("schedulerName: volcano", "*/*", "RuntimeClass/*"),
    ],
)
def test_a_class_of_a_spec_must_be_granted(team: Repository, placement: str, entry: str, other: str) -> None:
    name = placement.partition(": ")[2]
    for classes, code in (([other], 2), ([entry], 0)):
        team.write({"kaigen.yaml": config(classes=classes), "specs/a/x.yaml": with_placement(placement)})
        done = team.kaigen("validate")
        assert (done.code, f"/{name}`" in done.err, "`tenants.a.classes`" in done.err) == (
            code,
            code == 2,
            code == 2,
        ), done.text


def test_a_class_is_reported_at_its_line(team: Repository) -> None:
    team.write({"specs/a/x.yaml": with_placement("runtimeClassName: nvidia")})
    done = team.kaigen("validate")
    assert "specs/a/x.yaml:8:33: error[KG0582]" in done.err, done.text


def test_the_default_scheduler_needs_no_grant(team: Repository) -> None:
    team.write({"specs/a/x.yaml": with_placement("schedulerName: default-scheduler")})
    assert team.kaigen("validate").code == 0


@pytest.mark.parametrize(
    "entry", ["nginx", "Ingress/nginx", "StorageClass/fast", "runtimeclass/nvidia", "RuntimeClass/"]
)
def test_an_entry_of_classes_names_a_kind_of_class(team: Repository, entry: str) -> None:
    team.write({"kaigen.yaml": config(classes=[entry])})
    done = team.kaigen("validate")
    assert (done.code, "tenants.a.classes[0]" in done.err) == (2, True), done.text


def test_diff_shows_a_new_class_of_a_tenant_as_a_danger_and_not_that_of_the_profile(team: Repository) -> None:
    assert team.kaigen("render").code == 0
    team.commit()
    team.write({"kaigen.yaml": config("k3s", classes=["IngressClass/nginx"])})
    done = team.kaigen("diff", "--base", "HEAD")
    assert "classes IngressClass/nginx as tenant a" in " ".join(done.out.split()), done.text
    assert "RuntimeClass/nvidia as tenant" not in done.out
