"""The shapes of a drawn graph, in pixels from its upper left corner."""

from __future__ import annotations

from msgspec import Struct

from kaigen.graph.model import AppNode, Edge, ExternalNode, ObjectNode

BOX_WIDTH, BOX_HEIGHT = 212, 42
HEAD_HEIGHT = 40

Point = tuple[int, int]
Node = ObjectNode | ExternalNode


class Box(Struct, frozen=True):
    """One drawn node; an external one is drawn in every app that refers to it."""

    node: Node
    app: str
    x: int
    y: int


class FrameBox(Struct, frozen=True):
    """One drawn app, with the x and the title of each of its columns."""

    app: AppNode
    x: int
    y: int
    width: int
    height: int
    columns: tuple[tuple[int, str], ...]


class Line(Struct, frozen=True):
    """One drawn edge, from the dependent object to the one that it needs."""

    edge: Edge
    points: tuple[Point, ...]


class Layout(Struct, frozen=True):
    """A drawing."""

    width: int
    height: int
    frames: tuple[FrameBox, ...]
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
