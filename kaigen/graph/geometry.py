"""The shapes of a drawn graph, in pixels from its upper left corner."""

from __future__ import annotations

from dataclasses import dataclass

from kaigen.graph.model import AppNode, Edge, ExternalNode, ObjectNode

BOX_WIDTH, BOX_HEIGHT = 212, 42
HEAD_HEIGHT = 40

Point = tuple[int, int]
Node = ObjectNode | ExternalNode


@dataclass(frozen=True, slots=True)
class Box:
    """One drawn node; an external one is drawn in every app that refers to it."""

    node: Node
    app: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class FrameBox:
    """One drawn app, with the x and the title of each of its columns."""

    app: AppNode
    x: int
    y: int
    width: int
    height: int
    columns: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn edge, from the dependent object to the one that it needs."""

    edge: Edge
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing."""

    width: int
    height: int
    frames: tuple[FrameBox, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
