"""Graphs to test with: real ones from specs, and made ones of any shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kaigen.config.load import load_config
from kaigen.graph import build_graph
from kaigen.graph.model import AppNode, Edge, ExternalNode, Graph, Location, ObjectNode, Relation
from kaigen.pipeline.run import compile_specs

DEMO = Path(__file__).parents[3] / "examples" / "demo"

CONFIG = "apiVersion: kaigen.dev/v1alpha1\nkind: Config\nprofile: generic\nnamespace: ml\npassthrough: true\n"


def graph_of(root: Path, environment: str = "") -> Graph:
    """The graph of a repository, in one of its environments or as they all begin."""
    config = load_config(root, environment)
    return build_graph(compile_specs((), config), config.external)


def repository(root: Path, files: Mapping[str, str]) -> Graph:
    """The graph of a repository of these files, `kaigen.yaml` added."""
    for path, text in {"kaigen.yaml": CONFIG, **files}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return graph_of(root)


def edges(graph: Graph) -> set[tuple[str, str, str]]:
    """Every edge as source, words and target."""
    return {(edge.source, edge.relation.value, edge.target) for edge in graph.edges}


def made(
    apps: Sequence[Sequence[int]],
    joined: Sequence[tuple[int, int]],
    outer: Sequence[int] = (),
    *,
    word: str = "",
    kind: str = "Job",
) -> Graph:
    """A graph of any shape.

    Args:
        apps: the waves of the objects of each app.
        joined: pairs of objects by number, of which the first needs the second.
        outer: objects that need something external.
        word: appended to every text.
        kind: of every object.
    """
    nodes: list[AppNode] = []
    flat: list[str] = []
    for number, waves in enumerate(apps):
        app = f"ns{word}/app-{number:03}{word}"
        place = Location(f"specs/{number}{word}.yaml", 1)
        objects = tuple(
            ObjectNode(
                id=f"{app}/role-{index}",
                app=app,
                api_version=f"v1{word}",
                kind=f"{kind}{word}",
                namespace=f"ns{word}",
                name=f"object-{index}{word}",
                wave=wave,
                path=f"{app}/manifests/{index}.yaml",
                yaml=f"name: object-{index}\ntext: {word!r}\n",
                location=place,
                lines=(place, None),
            )
            for index, wave in enumerate(sorted(waves))
        )
        flat += [node.id for node in objects]
        nodes.append(
            AppNode(
                app, f"ns{word}", f"app-{number:03}{word}", f"Job{word}", f"what{word}", place, f"a: {word}", objects
            )
        )
    external = ExternalNode(f"external/Secret/ns/token{word}", f"Secret{word}", "ns", f"token{word}")
    found = dict.fromkeys(
        Edge(flat[source], flat[target], Relation.WAITS if (source + target) % 3 == 0 else Relation.MOUNTS)
        for source, target in joined
        if source != target
    )
    found |= dict.fromkeys(Edge(flat[source], external.id, Relation.READS) for source in outer)
    return Graph(tuple(nodes), (external,) if outer else (), tuple(found))
