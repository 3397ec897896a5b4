"""The kind `Notebook`: a Jupyter server whose files stay while it is suspended."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import AppName, Duration, Metadata, MountPath, Port, Quantity, TokenSecret
from kaigen.kinds.block import Block, later
from kaigen.kinds.blocks import Image, Mounted, Params, ParamsFile, Placement, Resources, Security, Volume
from kaigen.kinds.entry import API_VERSION
from kaigen.kinds.exposure import ProtectedRoute
from kaigen.kinds.pod import Args, BuiltImage, Command, PodFields, Variables
from kaigen.kinds.schedule import Hours

if TYPE_CHECKING:
    from kaigen.kinds.monitoring import RunMonitoring
else:
    RunMonitoring = later("kaigen.kinds.monitoring:RunMonitoring")


class HomeVolume(Volume):
    """The volume with the home folder of the notebook."""

    size: Annotated[Quantity, Meta(description="Size to request, in bytes with a unit.")] = "10Gi"
    mount_path: Annotated[
        MountPath, Meta(description="The home folder, in which the server starts and of which it shows the files.")
    ] = "/home/notebook"
    retain: Annotated[bool, Meta(description="Keep the volume when the spec is deleted.")] = True


class Idle(Block):
    """What happens when nobody uses the notebook: its pod stops, and its GPUs are free. The files stay."""

    after: Annotated[
        Duration,
        Meta(
            description="Time without activity of every kernel and terminal after which the pod stops. A single "
            "kernel or terminal of kaigen's image ends after it.",
            examples=["2h"],
        ),
    ]


class NotebookService(Block):
    """The Service of the notebook."""

    port: Annotated[Port, Meta(description="Port of the Service.")] = 8888
    allow_from: Annotated[
        list[JsonObject],
        Meta(
            description="Peers of a NetworkPolicy that may connect from inside the cluster. Default: none, as a "
            "port-forward needs none; with `route` all, whom its proxy asks to sign in.",
            examples=[[{"namespaceSelector": {"matchLabels": {"team": "research"}}}]],
        ),
    ] = field(default_factory=list)


class NotebookSpec(PodFields):
    """The image of the notebook, what it reads, and where its files are."""

    image: Annotated[
        Image | None,
        Meta(
            description="Image with a Jupyter server on port 8888, which reads its token from the file that "
            "`JUPYTER_TOKEN_FILE` names. Default: kaigen's own."
        ),
    ] = None
    build: BuiltImage = None
    command: Command = None
    args: Args = None
    monitoring: Annotated[
        RunMonitoring | None, Meta(description="Alerts on a notebook that is not ready. Default: none.")
    ] = None
    suspend: Annotated[
        bool,
        Meta(description="Run no pod. The volume stays, and with `false` the notebook starts with its files again."),
    ] = False
    token_secret: Annotated[
        TokenSecret | None,
        Meta(
            description="Secret with the token that opens the notebook. Default: the key `token` of the Secret "
            "`NAME-token`.",
            examples=[{"name": "research-token"}],
        ),
    ] = None
    env: Variables = field(default_factory=dict)
    params: Annotated[
        Params, Meta(description="Parameters of the notebook, as `PARAM_*` variables and in `/etc/kaigen/params.json`.")
    ] = field(default_factory=dict)
    params_file: ParamsFile = None
    models: Annotated[
        list[AppName | Mounted],
        Meta(
            max_length=20,
            description="Models to read, each the name of a Model or a block; mounted read-only.",
            examples=[["qwen"]],
        ),
    ] = field(default_factory=list)
    datasets: Annotated[
        list[AppName | Mounted],
        Meta(
            max_length=20,
            description="Datasets to read, each the name of a Dataset or a block; mounted read-only.",
            examples=[["instructions"]],
        ),
    ] = field(default_factory=list)
    storage: Annotated[HomeVolume, Meta(description="The volume with the home folder of the notebook.")] = field(
        default_factory=HomeVolume
    )
    idle: Annotated[
        Idle | None,
        Meta(description="Stop the notebook when nobody uses it. Default: it runs until somebody suspends it."),
    ] = None
    hours: Annotated[
        list[Hours],
        Meta(
            max_length=20,
            description="Times at which the notebook starts and stops. In between users may start and suspend it. "
            "Default: none.",
            examples=[[{"start": "0 8 * * MON-FRI", "end": "0 19 * * MON-FRI", "timeZone": "Europe/Berlin"}]],
        ),
    ] = field(default_factory=list)
    resources: Annotated[Resources, Meta(description="Resources of the container.")] = field(default_factory=Resources)
    placement: Annotated[Placement, Meta(description="Where the pod runs.")] = field(default_factory=Placement)
    security: Annotated[Security, Meta(description="Security settings of the pod.")] = field(default_factory=Security)
    service: Annotated[NotebookService, Meta(description="The Service of the notebook.")] = field(
        default_factory=NotebookService
    )
    route: Annotated[
        ProtectedRoute | None,
        Meta(description="How users reach the notebook from outside the cluster. Default: by a port-forward only."),
    ] = None


class Notebook(Block):
    """A Jupyter server with Models and Datasets to read, and files that stay while it is suspended."""

    api_version: Annotated[Literal["kaigen.dev/v1alpha1"], Meta(description="Version of kaigen's kinds.")] = API_VERSION
    kind: Annotated[Literal["Notebook"], Meta(description="Kind of the document.")] = "Notebook"
    metadata: Annotated[Metadata, Meta(description="Name, namespace, labels and annotations of the app.")]
    spec: Annotated[NotebookSpec, Meta(description="Desired state.")] = field(default_factory=NotebookSpec)
