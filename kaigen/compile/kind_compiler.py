"""The shape that the compiler of every kind has.

A compiler is four functions, called in this order:

1. `resolve` decides everything that a spec leaves open, and returns it as a frozen record, the resolution;
2. `check` reports decisions that contradict each other;
3. `objects` returns the objects; it decides and reports nothing;
4. `describe` returns the summary and the notes for readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from kaigen.compile.app import App, Note, Object, collect_settings
from kaigen.compile.builders.frame import Frame
from kaigen.compile.connections import Connections, connection_policies
from kaigen.compile.context import Context
from kaigen.compile.finish import check_labels, finish
from kaigen.compile.problems import Problems
from kaigen.kinds.base import Metadata
from kaigen.kinds.block import Block as KindFields
from kaigen.kinds.pod import PodFields


class Block(Protocol):
    """A spec of any kind."""

    @property
    def kind(self) -> str:
        """Its kind."""

    @property
    def metadata(self) -> Metadata:
        """Name, namespace, labels and annotations of the app."""

    @property
    def spec(self) -> KindFields:
        """The kind's own fields; of most kinds with those about pods."""


class Resolution(Protocol):
    """What the resolutions of all kinds have in common."""

    @property
    def metadata(self) -> Metadata:
        """Metadata of the spec."""

    @property
    def frame(self) -> Frame:
        """Names and labels of the objects."""

    @property
    def context(self) -> Context:
        """What the spec is compiled for."""


BlockT = TypeVar("BlockT", bound=Block)
NamingT = TypeVar("NamingT")
ResolutionT = TypeVar("ResolutionT", bound=Resolution)


class Description(Struct, frozen=True):
    """Information about an app for its readers and for the checks.

    Attributes:
        summary: one sentence.
        pod_security: Pod Security level that the pods must satisfy.
        app_version: commit of the model; empty when unknown.
        notes: what kaigen decided.
        external_objects: kind and name of objects that the app refers to but does not make.
        built: images that its Jobs build.
    """

    summary: str
    pod_security: str = "restricted"
    app_version: str = ""
    notes: tuple[Note, ...] = ()
    external_objects: tuple[tuple[str, str], ...] = ()
    built: tuple[str, ...] = ()


def _none(resolution: Resolution) -> Connections:
    return Connections()


class KindCompiler(Struct, Generic[BlockT, NamingT, ResolutionT], frozen=True):
    """The compiler of one kind; call it to compile a spec.

    Attributes:
        resolve: decides what a spec leaves open.
        check: reports decisions that contradict each other.
        objects: makes the objects.
        describe: makes summary and notes.
        default_naming: names in the objects where no dialect brings its own.
        settings_order: first parts of settings' paths, in the order of values.yaml.
        connections: returns what the pods connect to, for namespaces that deny egress.
    """

    resolve: Callable[[BlockT, Context, Problems, NamingT], ResolutionT]
    check: Callable[[ResolutionT, Problems], None]
    objects: Callable[[ResolutionT], list[Object]]
    describe: Callable[[ResolutionT], Description]
    default_naming: NamingT
    settings_order: Sequence[str]
    connections: Callable[[ResolutionT], Connections] = _none

    def __call__(self, block: BlockT, context: Context, problems: Problems, naming: NamingT | None = None) -> App:
        """Return the app of a spec.

        Args:
            block: the spec.
            context: what it is compiled for, and every other spec of the run.
            problems: collects errors and warnings; after an error the app is incomplete.
            naming: names that a dialect keeps from its foreign system.
        """
        names = self.default_naming if naming is None else naming
        check_labels(block.metadata, block.spec if isinstance(block.spec, PodFields) else None, problems)
        resolution = self.resolve(block, context, problems, names)
        self.check(resolution, problems)
        objects = self.objects(resolution)
        namespace = resolution.metadata.namespace or context.config.namespace
        given = self.connections(resolution)
        objects += connection_policies(resolution.frame, namespace, context, objects, given, problems)
        description = self.describe(resolution)
        return finish(
            block.kind,
            resolution.metadata,
            resolution.frame,
            context,
            objects,
            collect_settings(objects, self.settings_order),
            problems,
            pod_security=description.pod_security,
            summary=description.summary,
            app_version=description.app_version,
            notes=description.notes,
            external_objects=description.external_objects,
            built=description.built,
        )
