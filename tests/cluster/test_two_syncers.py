"""One repository with two environments: Flux under its multi-tenancy lockdown syncs one, Argo CD the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.apps import JOB, add_gpu_node, demo_specs
from tests.cluster.argocd import ArgoCD
from tests.cluster.client import Object
from tests.cluster.flux import GIT_REPOSITORY, KUSTOMIZATION, SECRET, Flux
from tests.cluster.plane import Plane
from tests.cluster.team import Team, bootstrap_argocd, bootstrap_flux, changed, named

pytestmark = pytest.mark.engine

ACCOUNT = "deployer"


@dataclass
class Two:
    """A repository with two environments on one cluster.

    Attributes:
        plane: the control plane.
        argocd: Argo CD, which syncs `prod`.
        flux: Flux, which syncs `edge`.
        edge: the environment of Flux, with its specs.
        prod: the environment of Argo CD; the specs are those of `edge`.
    """

    plane: Plane
    argocd: ArgoCD
    flux: Flux
    edge: Team
    prod: Team

    @property
    def name(self) -> str:
        """Name of the repository on the Git server."""
        return self.edge.environment

    @property
    def roots(self) -> tuple[str, str]:
        """The Kustomization and the Application that sync the others."""
        return f"team-{self.edge.environment}", f"team-{self.prod.environment}-root"

    def files(self) -> dict[str, str]:
        """Return the rendered files of both environments."""
        return {**self.edge.files(), **self.prod.files()}

    def commit(self, files: Mapping[str, str]) -> str:
        """Commit files and have Flux fetch them now.

        Returns:
            The commit.
        """
        revision = self.flux.commit(self.name, files)
        self.flux.fetch_all(f"kaigen.dev/environment={self.edge.environment}")
        return revision

    def wait(self, revision: str, timeout: float = 120) -> None:
        """Wait until both tools have synced every app to a commit, and all are healthy."""
        root, argo_root = self.roots
        self.flux.wait_ready(root, revision, timeout)
        self.argocd.wait_synced(argo_root, revision.rpartition(":")[2], timeout=timeout)
        for app in self.edge.specs:
            name = self.edge.name(self.edge.space, app)
            self.flux.wait_ready(name, revision, timeout, self.edge.space)
            self.argocd.wait_synced(self.prod.name(self.prod.space, app), revision.rpartition(":")[2], timeout=timeout)

    def jobs(self) -> dict[str, str]:
        """Return the Jobs of both environments: name with namespace, and UID."""
        return {
            f"{found['metadata']['namespace']}/{found['metadata']['name']}": found["metadata"]["uid"]
            for team in (self.edge, self.prod)
            for found in self.plane.client.objects(JOB, team.space)
        }


@pytest.fixture
def two(plane: Plane, argocd: ArgoCD, locked_down: Flux, tmp_path: Path) -> Iterator[Two]:
    """A repository that nothing has been committed to."""
    add_gpu_node(plane)
    part = uuid.uuid4().hex[:6]
    edge, prod = f"edge{part}", f"prod{part}"
    locked_down.commit(edge, {})
    flux = {"interval": "5s", "secret": SECRET, "serviceAccount": "flux-admin"}
    tenant = {"namespaces": True, "serviceAccount": ACCOUNT}
    own: Object = {"repository": locked_down.file_url(edge), "argocd": {"namespace": argocd.namespace}}
    environments = {
        edge: {"namespace": f"space-{edge}", "gitops": {"flux": flux, "tenancy": tenant}},
        prod: {"namespace": f"space-{prod}", "gitops": {**own, "tenancy": {"namespaces": True}}},
    }
    specs = {name: demo_specs()[name] for name in ("qwen", "finetune")}
    settings: Object = {"environments": environments}
    teams = [Team(tmp_path, locked_down.url(edge), name, {}, specs, settings=settings) for name in (edge, prod)]
    yield Two(plane, argocd, locked_down, *teams)
    for team in teams:
        plane.client.delete("v1/Namespace", team.space)


@pytest.mark.promise("Ephemeral GPU", "Verify prerequisites: GPU nodes, device plugin, storage class")
@pytest.mark.ran("Kustomization", by="kustomize-controller")
@pytest.mark.ran("GitRepository", by="source-controller")
@pytest.mark.ran("Application", "AppProject", by="argocd")
def test_flux_under_lockdown_and_argocd_sync_an_environment_each_of_one_repository(plane: Plane, two: Two) -> None:
    client = plane.client
    revision = begin(two)
    two.wait(revision)
    check_requirements(two)
    check_status(two, revision)
    check_doctor(two)

    # Each environment is written by its own tool, that of Flux in the name of the tenant's account.
    tenant = f"system:serviceaccount:{two.edge.space}:{ACCOUNT}"
    edge = {entry.user for entry in plane.audit.writes_since(0, namespace=two.edge.space)}
    prod = {entry.user for entry in plane.audit.writes_since(0, namespace=two.prod.space)}
    assert tenant in edge
    assert two.argocd.user in prod
    assert two.argocd.user not in edge
    assert not {user for user in prod if user == two.flux.user or two.edge.space in user}

    # A commit changes both.
    two.edge.specs["finetune"] = changed(two.edge.specs["finetune"], params={"epochs": 4})
    before = two.jobs()
    two.wait(two.commit(two.files()))
    assert len(two.jobs().keys() - before.keys()) == 2

    # The output moves. Without the old folder both tools report an error, and delete nothing.
    before = two.jobs()
    for team in (two.edge, two.prod):
        team.settings["output"] = "deploy"
    moved = {path.replace("rendered/", "deploy/", 1): text for path, text in two.files().items()}
    revision = two.commit(moved)
    tenants = f"{two.roots[0]}-tenants"
    app = two.edge.name(two.edge.space, "qwen")
    for name, home in ((tenants, two.flux.namespace), (app, two.edge.space)):
        client.wait(KUSTOMIZATION, name, home, partial(says, text="path not found"), "missing", 60)
    argo_root = two.roots[1]
    two.argocd.wait(argo_root, partial(says, text="app path does not exist"), "missing", 60)
    assert two.jobs() == before
    done = kaigen(two, two.edge, "status", "--env", two.edge.environment, "qwen", "-o", "json")
    assert done.returncode == 1
    (found,) = json.loads(done.stdout)
    assert (found["status"], found["sync"]["status"]) == ("ready", "failed")
    assert "path not found" in found["sync"]["message"]

    # The bootstrap of the new folder is applied: the same objects are synced from there.
    bootstrap(two, moved)
    two.wait(revision)
    assert two.jobs() == before

    end(two, moved)
    kept = {name: uid for name, uid in before.items() if "/qwen-" in name}
    assert two.jobs() == kept


def begin(two: Two) -> str:
    """Commit, apply both bootstraps by hand, and give the tenant of Flux the password of the Git server.

    Returns:
        The commit.
    """
    files = two.files()
    assert {path.split("/")[2] for path in files if "/_" in path and "/bootstrap/" in path} == {"_argocd", "_flux"}
    folders = {tuple(path.split("/")[1:3]) for path in files}
    assert (two.edge.environment, "_argocd") not in folders
    assert (two.prod.environment, "_flux") not in folders
    revision = two.commit(files)
    bootstrap(two, files)
    two.plane.client.wait("v1/Namespace", two.edge.space, "", bool, "made", 60)
    two.flux.give_credentials(two.edge.space)
    source = f"team-{two.edge.environment}"
    two.plane.client.wait(GIT_REPOSITORY, source, two.edge.space, bool, "made", 60)
    two.flux.fetch_all(f"kaigen.dev/environment={two.edge.environment}")
    return revision


def bootstrap(two: Two, files: Mapping[str, str]) -> None:
    """Do what is done by hand for both."""
    rendered = {path.replace("deploy/", "rendered/", 1): text for path, text in files.items()}
    bootstrap_flux(two.plane, two.edge, rendered)
    bootstrap_argocd(two.plane, two.prod, rendered)


def check_requirements(two: Two) -> None:
    """See that the cluster has what both environments require, as they run on it."""
    client = two.plane.client
    for team in (two.edge, two.prod):
        # The simulated pods do not read the token of the Hub.
        status = requirements(two, team)
        assert {name for name, value in status.items() if value != "found"} == {"Secret hf-token"}
        api = "argoproj.io/v1alpha1 Application" if team is two.prod else "source.toolkit.fluxcd.io/v1 GitRepository"
        assert status[f"API {api}"] == status["resource nvidia.com/gpu"] == "found"

    # A quota that is too small is found; what a user may not read is unknown.
    metadata = {"name": "small", "namespace": two.prod.space}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata}
    client.apply({**quota, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}})
    status = requirements(two, two.prod)
    assert status["ResourceQuota small requests.nvidia.com/gpu"] == "missing"
    client.delete("v1/ResourceQuota", "small", two.prod.space)
    account = two.plane.as_service_account(two.prod.space, "default")
    status = requirements(two, two.prod, two.plane.kubeconfig_of(account, "reader"))
    assert status["Secret hf-token"] == status["resource nvidia.com/gpu"] == "unknown"
    assert status["API argoproj.io/v1alpha1 Application"] == "found"


def check_status(two: Two, revision: str) -> None:
    """See the state of both environments, of what a user may not read, and of an app that is not deployed."""
    (head, *rows) = kaigen(two, two.edge, "status", "-o", "wide").stdout.splitlines()
    assert head.split() == ["ENV", "NAMESPACE", "APP", "KIND", "STATUS", "RUN", "SYNC", "SYNCER", "FACTS", "MESSAGE"]
    assert [row.split()[2:5] for row in rows] == [["finetune", "Job", "ready"], ["qwen", "Model", "ready"]] * 2
    commit = revision.rpartition(":")[2]
    for row in rows:
        assert f" synced {'' if two.prod.environment in row else 'main@'}{commit[:8]} " in row, row
    assert f"Kustomization {two.edge.space}/" in rows[0]
    assert f"Application {two.argocd.namespace}/" in rows[2]

    arguments = ("status", "--env", two.edge.environment, f"{two.edge.space}/qwen", "-o", "json")
    done = kaigen(two, two.edge, *arguments)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    (run,) = found["runs"]
    assert run["current"]
    assert {"started", "ended", "duration"} <= run["facts"].keys()
    assert found["facts"]["storage"]
    # What a user may not read is unknown.
    account = two.plane.as_service_account(two.edge.space, "default")
    done = kaigen(two, two.edge, *arguments, kubeconfig=two.plane.kubeconfig_of(account, "status"))
    assert done.returncode == 1
    assert {item["status"] for item in json.loads(done.stdout)[0]["objects"]} == {"unknown"}
    # An app that is not in the cluster is missing.
    two.edge.specs["later"] = named(two.edge.specs["finetune"], "later")
    two.edge.write()
    done = kaigen(two, two.edge, "status", "--env", two.edge.environment, "later")
    del two.edge.specs["later"]
    assert done.returncode == 1
    assert done.stdout.splitlines()[1].split()[:4] == [two.edge.space, "later", "Job", "missing"]


def check_doctor(two: Two) -> None:
    """See what the checks of the cluster find for an admin, and for a user without rights."""
    arguments = ("doctor", "--env", two.edge.environment, "-o", "json")
    done = kaigen(two, two.edge, *arguments)
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    status = {name: check["status"] for name, check in checks.items()}
    assert done.returncode == 1, done.stderr
    assert {name for name, value in status.items() if value == "failed"} == {f"Secret {two.edge.space}/hf-token"}
    assert checks["cluster"]["detail"].startswith("Kubernetes v1.")
    assert " nvidia.com/gpu" in checks["GPU nodes"]["detail"]
    assert "(default)" in checks["storage class"]["detail"]
    for name in ("cluster", "GPU nodes", "device plugin", "storage class", "rights to start runs", "reaper"):
        assert status[name] == "ok", checks[name]
    # A pod that fits no node is named with the largest one.
    huge = named(two.edge.specs["finetune"], "huge")
    two.edge.specs["huge"] = changed(huge, resources={**huge["spec"]["resources"], "cpu": 4000})
    two.edge.write()
    done = kaigen(two, two.edge, *arguments)
    del two.edge.specs["huge"]
    two.edge.write()
    failed = [each for each in json.loads(done.stdout) if each["status"] == "failed"]
    (node,) = (each for each in failed if each["name"].startswith(f"node {two.edge.space}/huge (Job huge-"))
    assert re.match("no node fits: of .+ has the most cpu: [0-9]+m?; needed at ", node["detail"]), node
    account = two.plane.as_service_account(two.edge.space, "default")
    done = kaigen(two, two.edge, *arguments, kubeconfig=two.plane.kubeconfig_of(account, "doctor"))
    status = {check["name"]: check["status"] for check in json.loads(done.stdout)}
    for name in ("GPU nodes", "storage class", "rights to read runs", "rights to start runs", "reaper"):
        assert status[name] == "warning", done.stdout


def requirements(two: Two, team: Team, kubeconfig: Path | None = None) -> dict[str, str]:
    """Return what the cluster has of an environment's requirements, by `kaigen requirements --check`."""
    arguments = ("requirements", "--check", "--env", team.environment, "-o", "json")
    done = kaigen(two, team, *arguments, kubeconfig=kubeconfig)
    assert done.stdout, done.stderr
    (found,) = json.loads(done.stdout)
    status = {f"{item['kind']} {item['name']}": item["cluster"]["status"] for item in found["requirements"]}
    assert done.returncode == (1 if "missing" in status.values() else 0), done.stderr
    return status


def kaigen(two: Two, team: Team, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run kaigen in the repository of an environment."""
    return subprocess.run(
        [sys.executable, "-m", "kaigen", *arguments],
        cwd=team.folder,
        env={
            **os.environ,
            "KUBECONFIG": str(kubeconfig or two.plane.kubeconfig),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def says(obj: Object, text: str) -> bool:
    """Return whether the status of an object contains a text."""
    return text in str(obj.get("status", {}))


def end(two: Two, files: Mapping[str, str]) -> None:
    """Delete both bootstraps, then the objects of the apps, those of `qwen` without their app, as documented."""
    client = two.plane.client
    rendered = {path.replace("deploy/", "rendered/", 1): text for path, text in files.items()}
    for team, tool, change in (
        (two.edge, "_flux", {"spec": {"suspend": True}}),
        (two.prod, "_argocd", {"metadata": {"finalizers": None}}),
    ):
        delete(two.plane, team.objects(rendered, f"{tool}/bootstrap"))
        apps = team.objects(rendered, f"{tool}/apps")
        (kept,) = (obj for obj in apps if obj["metadata"]["name"].endswith(".qwen"))
        client.patch(*place(kept), change)
        projects = [obj for obj in apps if obj["kind"] == "AppProject"]
        delete(two.plane, [obj for obj in apps if obj not in projects])
        delete(two.plane, projects)


def delete(plane: Plane, objects: list[Object]) -> None:
    """Delete objects and wait until they are gone."""
    for obj in objects:
        plane.client.delete(*place(obj))
    for obj in objects:
        plane.client.wait_gone(*place(obj))


def place(obj: Object) -> tuple[str, str, str]:
    """Return kind, name and namespace of an object."""
    return f"{obj['apiVersion']}/{obj['kind']}", obj["metadata"]["name"], obj["metadata"]["namespace"]
