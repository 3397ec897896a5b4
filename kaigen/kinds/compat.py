"""Names that a foreign system gave its objects, kept so that a migration can be compared object by object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Naming:
    """How the objects of a Job are named.

    Attributes:
        container: name of the main container.
        init: name of the container that fetches the weights.
        fetch_command: its command in place of kaigen's downloader; it runs the Job's own image.
        volume: name of the pod's volume for results.
        plain: names of objects are the app's own, without a hash or an ending.
    """

    container: str = "run"
    init: str = "fetch-model"
    fetch_command: tuple[str, ...] = ()
    volume: str = "output"
    plain: bool = False


@dataclass(frozen=True, slots=True)
class ServingNaming:
    """How what a Topology serves by is named.

    Attributes:
        labels: further labels of the pods and of what selects them; an empty value stands for the app's name.
        ports: of the Service, beside its own.
        headless: ending of the name of the headless Service.
        paths: folders in the engine's container, by kaigen's own.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    headless: str = "-nodes"
    paths: Mapping[str, str] = field(default_factory=dict)
