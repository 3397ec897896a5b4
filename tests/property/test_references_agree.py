"""The checks, the graph and the list of Secrets see the same references, in every example and in made objects."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.check import codes
from kaigen.check.references import check_references
from kaigen.config.load import load_config
from kaigen.graph.edges import find_edges
from kaigen.graph.model import AppNode, Edge, ExternalNode, Location, ObjectNode, Relation
from kaigen.kubernetes.kind_table import KINDS, find_kind
from kaigen.kubernetes.manifest import Identity, Object, identity_of
from kaigen.kubernetes.object_kind import SCALABLE, ObjectKind, ReferenceField
from kaigen.kubernetes.references import POD_REFERENCES, Reference, references_of
from kaigen.kubernetes.schemas import index, is_cluster_type
from kaigen.kubernetes.secrets import made_secrets
from kaigen.pipeline.app_secrets import facts_of
from kaigen.pipeline.run import compile_specs
from kaigen.secrets.expected import gather
from tests.unit.graph.graphs import CONFIG

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMESPACE = "ml"


class App(NamedTuple):
    """The objects of one app."""

    namespace: str
    objects: list[Object]


def seen_by_graph(apps: Iterable[App]) -> set[Identity]:
    """What the graph shows as referred to, but for what an object says of itself."""
    nodes, bodies = [], {}
    for number, app in enumerate(apps):
        own = []
        for index_, body in enumerate(app.objects):
            identity = identity_of(body)
            node = ObjectNode(
                f"{number}/{index_}", str(number), str(body["apiVersion"]), identity.kind,
                identity.namespace, identity.name, 0, "", "", Location(""), (),
            )  # fmt: skip
            own.append(node)
            bodies[node.id] = body
        nodes.append(AppNode(str(number), app.namespace, "", "", "", Location(""), "", tuple(own)))
    edges, externals = find_edges(nodes, bodies)
    missing = {node.id: node for node in externals}
    others = (Relation.WAITS, Relation.SELECTS, Relation.ASKS)
    return {_identity(edge, missing, bodies) for edge in edges if edge.relation not in others}


def _identity(edge: Edge, missing: dict[str, ExternalNode], bodies: dict[str, Object]) -> Identity:
    external = missing.get(edge.target)
    if external is not None:
        return Identity(external.kind, external.namespace, external.name)
    body = bodies[edge.target]
    identity = identity_of(body)
    for made in made_secrets(body):
        return Identity("Secret", identity.namespace, made.name)
    return identity._replace(type=identity.kind)


def seen_by_secrets(apps: Iterable[App]) -> set[Identity]:
    """The Secrets that `kaigen secrets` lists."""
    items: list[Any] = [
        SimpleNamespace(
            app=SimpleNamespace(namespace=app.namespace, name=f"app-{number}"),
            objects=[SimpleNamespace(body=body) for body in app.objects],
            documents=(),
            written_at=lambda index_, path, text, beside="": (None, ()),
        )
        for number, app in enumerate(apps)
    ]
    return {Identity("Secret", item.namespace, item.name) for item in gather(facts_of(items))}


def seen_by_check(obj: Object) -> set[tuple[str | int, ...]]:
    """Where the check reports a reference of an object that is checked alone."""
    problems = [problem for _, problem in check_references([obj])]
    return {problem.path for problem in problems if problem.code == codes.REFERENCE_UNRESOLVED}


def is_required(obj: Object, reference: Reference) -> bool:
    """Whether a check of the object alone must report the reference."""
    row = KINDS[reference.target.type]
    known = row.outside_git or row.has_built_in(reference.target.name)
    return not known and not (reference.optional and reference.target.type == "ConfigMap")


def assert_agreement(apps: list[App]) -> None:
    graph, secrets = set(), set()
    for app in apps:
        for body in app.objects:
            found = references_of(body, app.namespace)
            for one in found:
                target = one.target._replace(type=one.target.kind)
                if not KINDS[one.target.type].has_built_in(one.target.name):
                    graph.add(target)
                if one.target.type == "Secret":
                    secrets.add(target)
            own = references_of(body)
            assert seen_by_check(body) == {one.path for one in own if is_required(body, one)}
    assert seen_by_graph(apps) == graph
    assert seen_by_secrets(apps) == secrets


def compiled(root: Path, source: Path) -> list[App]:
    """The apps of a repository, or of one file in an empty repository."""
    if source.is_file():
        (root / "specs").mkdir()
        (root / "specs" / source.name).write_bytes(source.read_bytes())
        (root / "kaigen.yaml").write_text(CONFIG, encoding="utf-8")
        source = root
    config = load_config(source)
    apps = compile_specs((), config).apps
    return [App(item.app.namespace, [each.body for each in item.objects]) for item in apps]


def examples() -> list[str]:
    """Every example: a repository, or a file."""
    folders = [path for path in EXAMPLES.iterdir() if path.is_dir()]
    return sorted(
        str(path.relative_to(EXAMPLES))
        for folder in folders
        for path in ([folder] if (folder / "kaigen.yaml").is_file() else folder.glob("*.yaml"))
    )


@pytest.mark.parametrize("name", examples())
def test_readers_agree_on_every_example(name: str, tmp_path: Path) -> None:
    apps = compiled(tmp_path, EXAMPLES / name)
    assert apps
    assert_agreement(apps)


def test_the_certificate_of_a_route_is_in_the_graph_and_among_the_secrets(tmp_path: Path) -> None:
    apps = compiled(tmp_path, EXAMPLES / "topology" / "template.yaml")
    certificates = {one for one in seen_by_secrets(apps) if one.name.endswith("-tls")}
    assert certificates
    assert certificates <= seen_by_graph(apps)


def fields_of(row: ObjectKind) -> list[tuple[str, ReferenceField]]:
    """Every reference of a kind with its path from the object's root."""
    found = [(field.path, field) for field in row.references or ()]
    for pod in row.pods:
        prefix = f"{pod.path}.spec" if pod.path else "spec"
        found += [(f"{prefix}.{field.path}", field) for field in POD_REFERENCES]
    return found


ROWS = [row for row in KINDS.values() if fields_of(row) and row.kind in index()["kinds"]]


class Made(NamedTuple):
    """A made object, and what it refers to."""

    body: Object
    targets: set[Identity]


@st.composite
def made_objects(draw: st.DrawFn) -> Made:
    row = draw(st.sampled_from(ROWS))
    version = next(version for version in index()["kinds"][row.kind] if version.rpartition("/")[0] == row.group)
    cluster = is_cluster_type(row.kind, row.group)
    metadata = {"name": f"own-{draw(st.integers(0, 99))}"} | ({} if cluster else {"namespace": NAMESPACE})
    body: Object = {"apiVersion": version, "kind": row.kind, "metadata": metadata}
    for pod in row.pods:
        put(body, f"{pod.path}.spec.containers" if pod.path else "spec.containers", [])
    targets = set()
    fields = fields_of(row)
    chosen = draw(st.lists(st.sampled_from(range(len(fields))), unique=True, max_size=12))
    for number in chosen:
        path, field = fields[number]
        names = [row.type for row in KINDS.values() if row.scalable] if SCALABLE in field.targets else []
        target = draw(st.sampled_from([*names, *(name for name in field.targets if name != SCALABLE)]))
        name = f"target-{number}"
        put(body, path, name)
        kind = target.partition(".")[0]
        if target != field.targets[0]:
            put(body, f"{path.rpartition('.')[0]}.kind", kind)
        inside = "" if cluster or is_cluster_type(kind, target.partition(".")[2]) else NAMESPACE
        targets.add(Identity(target, inside, name))
    return Made(body, targets)


def put(body: Any, path: str, value: object) -> None:
    """Set a field at a dotted path; `[]` is the first item of a list, `*` a key of any name."""
    steps = path.replace("[]", ".[]").split(".")
    here = body
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        key: Any = {"[]": 0, "*": "csi"}.get(step, step)
        if following == "":
            here[key] = value
        elif isinstance(key, int):
            if not here:
                here.append({})
            here = here[0]
        else:
            here = here.setdefault(key, [] if following == "[]" else {})


@given(st.lists(made_objects(), min_size=1, max_size=4))
def test_every_reference_that_an_object_is_made_with_is_found_by_all_readers(made: list[Made]) -> None:
    for one in made:
        assert {reference.target for reference in references_of(one.body)} == one.targets
    assert_agreement([App(NAMESPACE, [one.body for one in made])])


PODS = {"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "m"}}]}]}


def test_readers_agree_on_the_pods_of_a_kind_that_kaigen_does_not_know() -> None:
    body: Object = {
        "apiVersion": "example.com/v1",
        "kind": "Unknown",
        "metadata": {"name": "x", "namespace": NAMESPACE},
        "spec": {"deep": [{"podSpec": PODS}], "auth": {"passwordSecretRef": {"name": "p"}}},
    }
    assert find_kind("example.com/v1", "Unknown").references is None
    assert {one.target.name for one in references_of(body)} == {"s", "m", "p"}
    assert_agreement([App(NAMESPACE, [body])])
