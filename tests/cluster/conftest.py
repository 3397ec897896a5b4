"""One plane per test process and one namespace per test. The first test that uses Argo CD or Flux starts it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest

from runtimes.downloader.tests.hub import Hub
from tests.cluster import proof
from tests.cluster.apps import add_gpu_node
from tests.cluster.argocd import ArgoCD
from tests.cluster.flux import Flux
from tests.cluster.git import Repository
from tests.cluster.group_controllers import GroupControllers
from tests.cluster.images import ImageFailed
from tests.cluster.network import NetworkMissing
from tests.cluster.node import Node
from tests.cluster.plane import Plane
from tests.cluster.report import namespace_report
from tests.cluster.services import tiny_hub
from tests.cluster.team import Team
from tests.cluster.tools.parts import ToolsMissing, locate
from tests.cluster.traefik import Traefik

_LOGS = pytest.StashKey[list[str]]()
_OUTPUT = "plane-logs"
_LONGEST = tuple(
    f"test_{name}.py"
    for name in (
        "output_accepted",
        "node_groups",
        "node_revisions",
        "flux",
        "node",
        "node_rename",
        "node_restore",
        "operate",
        "node_chain",
        "node_rollout",
        "faults",
        "commit_to_cluster",
        "moves",
        "hostile_pull_requests",
        "repository",
        "gitops_safe",
        "node_outputs",
        "several_nodes",
        "graph_page",
        "live_lists",
        "node_pods",
    )
)
"""The files that take longest. If they were last, the other process would have nothing to do at the end."""
_PLACES = pytest.StashKey[Mapping[Plane, int]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty list of logs, and register the markers."""
    config.stash[_LOGS] = []
    for marker in (
        "ran(*kinds, by): objects of these kinds run in the test; see the README of this folder",
        "accepted(*kinds): an API server accepts objects of these kinds in the test",
        "engine: the test takes long, or needs a program that takes long to build; `make test-engine` runs it",
    ):
        config.addinivalue_line("markers", marker)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files that take longest first."""
    place = {name: number for number, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note where the audit logs are before the fixtures of a test start anything."""
    item.stash[_PLACES] = proof.places()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Check what the markers of a test say, after it passed and before its objects go.

    If it failed, add the pods and events of its namespace to the error: they are gone when somebody reads it.
    """
    try:
        yield
    except Exception as error:
        for cluster, namespace in (("plane", "namespace"), ("node", "node_namespace")):
            if name := _used(item, namespace):
                error.add_note(namespace_report(_used(item, cluster).client, name))
        raise
    if marks := proof.marks(item):
        proof.check(marks, item.stash[_PLACES])


def _used(item: pytest.Item, fixture: str) -> Any:
    """Return the value of a fixture that the test uses, itself or by another one; None if it does not."""
    return item.funcargs.get(fixture) if isinstance(item, pytest.Function) else None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Check for missing programs before pytest-xdist starts, to fail with one line."""
    config = session.config
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        try:
            locate()
        except ToolsMissing as error:
            _give_up(error)


def _give_up(error: ToolsMissing) -> NoReturn:
    # Nothing is skipped: without its programs the run fails, in one line.
    pytest.exit(f"cluster tests: {error}", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the logs of a pytest-xdist worker."""
    node.config.stash[_LOGS].extend(getattr(node, "workeroutput", {}).get(_OUTPUT, []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print where the logs of failed tests are."""
    for folder in config.stash[_LOGS]:
        terminalreporter.write_line(f"logs of the control plane: {folder}")


@pytest.fixture(scope="session")
def plane(request: pytest.FixtureRequest) -> Iterator[Plane]:
    """A running control plane, shared by all tests of the process. Its logs are kept when one of them failed."""
    try:
        running = Plane()
    except ToolsMissing as error:
        _give_up(error)
    yield from _run(running, request)


def _run(running: Plane, request: pytest.FixtureRequest) -> Iterator[Any]:
    try:
        yield running
    finally:
        failed = request.session.testsfailed > 0
        running.stop(keep=failed)
        if failed:
            request.config.stash[_LOGS].append(str(running.processes.logs))
            if output := getattr(request.config, "workeroutput", None):
                output[_OUTPUT] = request.config.stash[_LOGS]


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A cluster of one real node, shared by all tests of the process, with kaigen's downloader among its images."""
    try:
        running = Node(images=["downloader"])
    except ToolsMissing as error:
        _give_up(error)
    except (NetworkMissing, ImageFailed) as error:
        pytest.fail(f"no real node: {error}", pytrace=False)
    yield from _run(running, request)


@pytest.fixture
def namespace(plane: Plane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A new namespace that enforces the restricted Pod Security level; deleted after the test."""
    yield from _namespace(plane, request)


@pytest.fixture(scope="session")
def hub(node: Node) -> Iterator[Hub]:
    """A Hub that pods reach as `hub.test`."""
    serving = tiny_hub(node, "hub.test")
    yield serving
    serving.__exit__()


@pytest.fixture
def node_namespace(node: Node, request: pytest.FixtureRequest) -> Iterator[str]:
    """The same on the real node."""
    yield from _namespace(node, request)


def _namespace(plane: Plane, request: pytest.FixtureRequest) -> Iterator[str]:
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_"))
    # Tests name environments by the last six characters, which must not be a number of YAML, such as 402e71.
    name = f"{words[:40].strip('-')}-n{uuid.uuid4().hex[:5]}"
    plane.make_namespace(name)
    yield name
    plane.client.delete("v1/Namespace", name)


@pytest.fixture(scope="session")
def groups(plane: Plane) -> GroupControllers:
    """The controllers of pods that work together on the plane, started by a test that needs them."""
    return GroupControllers(plane)


@pytest.fixture(scope="session")
def node_groups(node: Node) -> GroupControllers:
    """The same on the real node."""
    return GroupControllers(node)


@pytest.fixture(scope="session")
def argocd(plane: Plane) -> ArgoCD:
    """Argo CD's controllers on the plane; they end with it."""
    return ArgoCD(plane)


@pytest.fixture(scope="session")
def node_argocd(node: Node) -> ArgoCD:
    """The same on the real node."""
    return ArgoCD(node)


@pytest.fixture(scope="session")
def traefik(node: Node) -> Traefik:
    """Traefik next to the real node; it ends with it."""
    return Traefik(node)


@pytest.fixture(scope="session")
def flux(plane: Plane) -> Iterator[Flux]:
    """Flux's controllers on the plane, with a Git server to publish to."""
    running = Flux(plane)
    yield running
    running.close()


@pytest.fixture(scope="session")
def node_flux(node: Node) -> Iterator[Flux]:
    """The same on the real node."""
    running = Flux(node)
    yield running
    running.close()


@pytest.fixture(scope="module")
def locked_down(plane: Plane, flux: Flux) -> Iterator[Flux]:
    """Flux as on a cluster of many tenants, with an account of the cluster's administrator for the bootstrap."""
    name = "flux-admin"
    account = {"name": name, "namespace": flux.namespace}
    plane.client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    plane.client.apply(
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
    )
    with flux.locked_down():
        yield flux


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with nothing in it."""
    return Repository(tmp_path / "repository")


@pytest.fixture
def team(plane: Plane, repository: Repository, tmp_path: Path) -> Iterator[Team]:
    """A team that has committed nothing yet to the repository. Its namespaces go at the end."""
    add_gpu_node(plane)
    found = Team(tmp_path / "team", repository.url, f"t{uuid.uuid4().hex[:6]}", {})
    yield found
    for each in plane.client.objects("v1/Namespace"):
        if each["metadata"]["name"].endswith(found.environment):
            plane.client.delete("v1/Namespace", each["metadata"]["name"])
