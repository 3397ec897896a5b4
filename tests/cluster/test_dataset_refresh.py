"""A Dataset that a pipeline refreshes: the documented commands lock a new commit, and the cluster gets it by Git."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from kaigen.config.load import load_config
from kaigen.pipeline.result import Compiled
from kaigen.pipeline.run import compile_specs
from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import CLAIM, JOB, job_name, spec
from tests.cluster.client import is_true
from tests.cluster.plane import Plane
from tests.cluster.syncers import Syncer, make_syncer
from tests.cluster.test_gitops_safe import uids
from tests.unit.lock.conftest import Repository, images, make_web, repository
from tests.unit.lock.test_scheduled import BRANCH, Clone

__all__ = ["images", "make_web", "repository"]

RECONCILIATIONS = 3


@pytest.fixture(params=["argocd", "flux"])
def syncer(request: pytest.FixtureRequest, plane: Plane, namespace: str, tmp_path: Path) -> Iterator[Syncer]:
    """Argo CD, then Flux; what it syncs is taken from it at the end."""
    found = make_syncer(request, request.param, plane, namespace, tmp_path / "syncer")
    yield found
    for app in list(found.synced):
        found.remove(app)


def test_a_refreshed_dataset_is_downloaded_and_read_again_and_nothing_else(
    plane: Plane, syncer: Syncer, namespace: str, repository: Repository, tmp_path: Path
) -> None:
    def apps() -> dict[str, Compiled]:
        found = compile_specs((), load_config(repository.root))
        return {item.app.name: item for item in found.apps}

    with Hub(repo="datasets/owner/name") as hub:
        hub.commit({"data.jsonl": b"{}\n"})
        tickets = {"huggingFace": {"repo": "owner/name", "endpoint": hub.url}}
        volume = {"volume": {"size": "1Gi", "accessModes": ["ReadWriteMany"]}}
        image = f"{repository.registry}/acme/tune:1"
        for wanted in (
            spec("Dataset", "tickets", source=tickets, store=volume),
            spec("Job", "label", image=image, inputs=[{"dataset": "tickets"}]),
            spec("Job", "other", image=image),
        ):
            repository.write(yaml.safe_dump(wanted), f"specs/{wanted['metadata']['name']}.yaml")
        config = (repository.root / "kaigen.yaml").read_text("utf-8")
        repository.write(config.replace("namespace: ml\n", f"namespace: {namespace}\n"), "kaigen.yaml")
        assert repository.run("lock")[0] == 0
        assert repository.run("render")[0] == 0
        clone = Clone(repository.root, tmp_path / "origin.git")
        before = apps()
        names = {app: job_name(item) for app, item in before.items()}
        syncer.publish(before)
        for name in names.values():
            plane.client.wait(JOB, name, namespace, partial(is_true, condition="Complete"), "complete")
        jobs, claims = uids(plane, JOB, namespace), uids(plane, CLAIM, namespace)

        # Nothing changed on the Hub: no commit, and no write in the cluster.
        mark = plane.audit.mark()
        clone.refresh()
        assert clone.pushed() == ""
        syncer.let_pass(before, RECONCILIATIONS)
        assert syncer.writes(mark) == []

        hub.commit({"data.jsonl": b'{"a": 1}\n'})
        clone.refresh()
    clone.git("switch", "--quiet", "main")
    clone.git("merge", "--quiet", "--ff-only", BRANCH)
    after = apps()
    changed = {app: job_name(item) for app, item in after.items()}
    assert changed["other"] == names["other"]
    mark = plane.audit.mark()
    syncer.publish(after)
    for app in ("tickets", "label"):
        assert changed[app] != names[app]
        plane.client.wait(JOB, changed[app], namespace, partial(is_true, condition="Complete"), "complete")
        plane.client.wait_gone(JOB, names[app], namespace)
    found = uids(plane, JOB, namespace)
    assert set(found) == set(changed.values())
    assert found[names["other"]] == jobs[names["other"]]
    assert uids(plane, CLAIM, namespace) == claims
    touched = {write.rpartition("/")[2] for write in syncer.writes(mark)}
    assert touched == {each[app] for each in (names, changed) for app in ("tickets", "label")}
