"""The pods of a Topology that read weights, and weights from the Hub, which the engine pulls or a pod downloads."""

from __future__ import annotations

import re

from kaigen.catalog.catalog import Catalog
from kaigen.catalog.presets import Preset
from kaigen.compile.builders import settings
from kaigen.compile.builders.mounts import Mounted, Readers
from kaigen.compile.builders.sources import moving_revision
from kaigen.compile.builders.weights import Fetch, fetch_container
from kaigen.compile.engines.base import Engine
from kaigen.compile.engines.launch import Weights
from kaigen.compile.expressions import Tree
from kaigen.compile.known_model import model_of_repository
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.kinds.base import TokenSecret
from kaigen.kinds.block import set_fields
from kaigen.kinds.blocks import HubRepository, HuggingFace, Source, Transfer
from kaigen.kinds.compat import Folders
from kaigen.kinds.serving import PulledModel
from kaigen.kinds.topology import TopologySpec

CACHE_VOLUME = "cache"
UNREAD = (
    *("*.bin", "*.ckpt", "*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.onnx_data", "*.ot", "*.pt", "*.pth", "*.tflite"),
    *("coreml/*", "onnx/*", "original/*"),
)
"""Files that kaigen's own server does not read: the same weights in other formats.

Falcon 7B has 13 GiB of safetensors, as much in pickles, and as much for Core ML.
"""

COMMIT = re.compile("[0-9a-f]{40}")


def preset_weights(spec: TopologySpec, preset: Preset, consumer: Consumer, problems: Problems) -> Weights:
    """Return the weights of a preset, which the engine pulls from the Hub."""
    at = ("spec", "preset")
    if preset.gated and spec.token_secret is None and "HF_TOKEN" not in spec.env:
        problems.error(
            "KG0355",
            f"the repository of `{preset.name}` is gated, and the spec has no token for it",
            at,
            "set `tokenSecret` to a Secret with a Hub token, or download the weights as a Model",
        )
    locked = consumer.context.lock.find(preset.repo, "main", None) if consumer.context.lock else None
    revision = preset.revision or (locked.commit if locked else "")
    if not revision:
        problems.warning(
            "KG0310",
            f"the catalogue has no commit of {preset.repo}",
            at,
            "run `kaigen lock`, or set repository and commit in `model.huggingFace`",
        )
    hub = PulledModel(repo=preset.repo, revision=revision or "main", token_secret=spec.token_secret)
    return hub_weights(hub, at, consumer, problems, chosen=False)


def hub_weights(
    hub: PulledModel, origin: FieldPath, consumer: Consumer, problems: Problems, *, chosen: bool = True
) -> Weights:
    """Return weights from the Hub, which the engine pulls, or kaigen's downloader fetches, when a pod starts.

    Args:
        hub: the repository.
        origin: the spec's field of the repository.
        consumer: the pods that read them.
        chosen: whether the spec names the repository, rather than a catalogue.
    """
    size = preset_bytes(hub.repo, consumer.context.catalog)
    commit = hub.revision if COMMIT.fullmatch(hub.revision) else ""
    if chosen:
        check_commit(hub, origin, "run `kaigen lock`, or set", problems)
    if not consumer.engine.understands("model.huggingFace"):
        return Weights()
    if not consumer.engine.pulls_weights:
        return _downloaded_weights(hub, origin, consumer, commit, size, chosen=chosen)
    token_at: FieldPath = (*origin, "tokenSecret") if chosen else ("spec", "tokenSecret")
    env: list[Tree] = [_token(hub.token_secret, token_at)] if hub.token_secret else []
    if hub.endpoint:
        env.append({"name": "HF_ENDPOINT", "value": hub.endpoint})
    return Weights(
        reference=f"{hub.repo}:{hub.gguf}" if hub.gguf else hub.repo,
        pulled=hub,
        env=env,
        source="hub",
        size=size,
        revision=commit,
    )


def check_commit(hub: PulledModel | HubRepository, origin: FieldPath, hint: str, problems: Problems) -> None:
    """Warn of a revision that is not a commit.

    Args:
        hub: the repository.
        origin: the spec's field of it.
        hint: beginning of the hint.
        problems: collects the warning.
    """
    if not COMMIT.fullmatch(hub.revision):
        written = "revision" in set_fields(hub)
        problems.warning(
            "KG0310",
            moving_revision(hub.revision, written=written),
            (*origin, "revision" if written else "repo"),
            f"{hint} `revision` to a commit, 40 hex digits",
        )


def _token(secret: TokenSecret, origin: FieldPath) -> Tree:
    return {
        "name": "HF_TOKEN",
        "valueFrom": {
            "secretKeyRef": {
                "name": settings.text(
                    "model.tokenSecret.name",
                    secret.name,
                    "Secret with the Hugging Face token.",
                    origin=(*origin, "name"),
                ),
                "key": settings.text(
                    "model.tokenSecret.key", secret.key, "Key of the token in the Secret.", origin=(*origin, "key")
                ),
            }
        },
    }


def _downloaded_weights(
    hub: PulledModel, origin: FieldPath, consumer: Consumer, commit: str, size: int | None, *, chosen: bool
) -> Weights:
    """Return weights that kaigen's downloader fetches into a folder before the engine starts."""
    source = Source(
        hugging_face=HuggingFace(
            repo=hub.repo,
            revision=hub.revision,
            exclude=list(UNREAD),
            token_secret=hub.token_secret,
            endpoint=hub.endpoint,
        )
    )
    fetch = Fetch(
        source=source,
        origin=origin[:-1],
        destination=consumer.folders.downloaded,
        transfer=consumer.transfer,
        own_token=chosen,
    )
    mount = {"name": CACHE_VOLUME, "mountPath": consumer.folders.cache}
    init = fetch_container(fetch, consumer.context, name="fetch-model", mounts=[mount])
    return Weights(consumer.folders.downloaded, Mounted(init=[init], downloaded=True), size=size, revision=commit)


def preset_bytes(repo: str, catalog: Catalog) -> int | None:
    """Return the bytes of a Hub repository's weights; None when the catalogue does not have it."""
    model = model_of_repository(repo, catalog)
    return model.weights_bytes if model is not None else None


class Consumer(Readers, frozen=True, kw_only=True):
    """The pods of a Topology, which read weights.

    Attributes:
        engine: the engine that loads the weights.
        transfer: settings of kaigen's downloader.
        folders: folders in the engine's container.
    """

    engine: Engine
    transfer: Transfer
    folders: Folders

    @property
    def own_downloader(self) -> Transfer | None:
        """Settings of the downloader if the spec names an image of it, which waiting containers use too."""
        return self.transfer if self.transfer.image is not None else None
