"""Names that a dialect keeps from its foreign system, so that a migration can be compared object by object."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field


class Naming(Struct, frozen=True):
    """Names in the objects of a Job.

    Attributes:
        container: name of the main container.
        init: name of the container that fetches the weights.
        fetch_command: its command in place of kaigen's downloader; it runs in the Job's own image.
        volume: name of the pod's volume for results.
        plain: name the objects after the app, without a hash or a suffix.
        run_prefix: beginning of the name of a plain Job, before that of the app.
        claim_prefix: beginning of the name of the claim for results, which then has no suffix.
        pod_labels: further labels of the pods and of their selectors; an empty value is the app's name.
    """

    container: str = "run"
    init: str = "fetch-model"
    fetch_command: tuple[str, ...] = ()
    volume: str = "output"
    plain: bool = False
    run_prefix: str = ""
    claim_prefix: str = ""
    pod_labels: Mapping[str, str] = field(default_factory=dict)


class Folders(Struct, frozen=True):
    """Folders in an engine's container.

    Attributes:
        model: mount path of a model's volume.
        adapters: parent of the adapters' folders.
        cache: folder that the engine may write to.
        downloaded: weights that kaigen's downloader fetches in the pod.
    """

    model: str = "/model"
    adapters: str = "/adapters"
    cache: str = "/cache"
    downloaded: str = "/cache/model"


class ServingNaming(Struct, frozen=True):
    """Names in the objects of a Topology.

    Attributes:
        pod_labels: further labels of the pods and of their selectors; an empty value is the app's name.
        container: name of the engine's container; empty for the app's name.
        service_ports: further ports of the Service.
        publish_not_ready: whether the Service also routes to pods that are not ready.
        headless_suffix: end of the headless Service's name.
        folders: folders in the engine's container.
        middleware: class, in a program of kaigen's, that answers routes of the foreign system in front of vLLM's; empty
            for none.
    """

    pod_labels: Mapping[str, str] = field(default_factory=dict)
    container: str = "serve"
    service_ports: Mapping[str, int] = field(default_factory=dict)
    publish_not_ready: bool = False
    headless_suffix: str = "-nodes"
    folders: Folders = Folders()
    middleware: str = ""
