"""`RAGEngine`: KAITO's retrieval server, as a Topology with a pod template."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import FieldPath
from kaigen.dialects.kaito.blocks import Foreign, ImageText, Resource, ResourceV1Alpha1, Text
from kaigen.dialects.kaito.compat import RAG, serving_names
from kaigen.dialects.kaito.nodes import Nodes, node_request, put_placement
from kaigen.dialects.kaito.pod_template import with_placement, with_programs
from kaigen.dialects.kaito.resource import ResourceLowering
from kaigen.dialects.kaito.serving import PORT, put_service
from kaigen.kinds.base import MountPath, ObjectName
from kaigen.kinds.block import Block, Choice
from kaigen.kinds.lowering import LoweringContext, LoweringResult
from kaigen.kinds.positioned import Positioned
from kaigen.kinds.topology import Topology
from kaigen.programs.files import program

IMAGE = "mcr.microsoft.com/aks/kaito/kaito-rag-service:0.12.0"
"""KAITO's server (source: KAITO v0.12.0)."""

DATA = "/mnt/data"
POLICY_FOLDER = "/etc/ragengine/guardrails"
POLICY_FILE = "guardrails.yaml"
USER = 65532


class LocalEmbedding(Block):
    """An embedding model that runs in the server."""

    image: Annotated[ImageText | None, Meta(description="Image of the model.")] = None
    image_pull_secret: Annotated[ObjectName | None, Meta(description="Secret to pull the image.")] = None
    model_id: Annotated[
        Text | None, Meta(description="Repository on the Hub.", examples=["BAAI/bge-small-en-v1.5"])
    ] = field(default=None, name="modelID")
    model_access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with a Hub token under the key `HF_TOKEN`.")
    ] = None


class RemoteEmbedding(Block):
    """A service that computes embeddings."""

    url: Annotated[Text, Meta(description="URL of the service.")]
    access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with the access key under `REMOTE_EMBEDDING_ACCESS_SECRET`.")
    ] = None


class Embedding(Choice):
    """Embedding of texts."""

    exactly_one: ClassVar[tuple[str, ...]] = ("local", "remote")

    local: Annotated[LocalEmbedding | None, Meta(description="An embedding model that runs in the server.")] = None
    remote: Annotated[RemoteEmbedding | None, Meta(description="A service that computes embeddings.")] = None


class InferenceServiceV1Alpha1(Block):
    """The model server that answers queries."""

    url: Annotated[Text | None, Meta(description="URL of the service.")]
    access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with the access key under `LLM_ACCESS_SECRET`.")
    ] = None
    context_window_size: Annotated[int, Meta(ge=1, description="Context length of the model, in tokens.")]


class InferenceService(InferenceServiceV1Alpha1):
    """The model server that answers queries."""

    url: Annotated[Text | None, Meta(description="URL of the service.")] = None


class PersistentVolume(Block):
    """A volume for the index."""

    persistent_volume_claim: Annotated[ObjectName, Meta(description="Name of the PersistentVolumeClaim.")]
    mount_path: Annotated[
        MountPath | None, Meta(description=f"Folder of the volume in the container. Default: `{DATA}`.")
    ] = None


class VectorDb(Block):
    """A database for the index."""

    engine: Annotated[Text, Meta(description="Database engine.", examples=["qdrant"])]
    url: Annotated[Text, Meta(description="URL of the service.")]
    access_secret: Annotated[
        ObjectName | None, Meta(description="Secret with the access key under `VECTOR_DB_ACCESS_SECRET`.")
    ] = None


class Storage(Choice):
    """Storage of the index."""

    exactly_one: ClassVar[tuple[str, ...]] = ("persistentVolume", "vectorDB")

    persistent_volume: Annotated[PersistentVolume | None, Meta(description="A volume.")] = None
    vector_db: Annotated[VectorDb | None, Meta(description="A database.")] = field(default=None, name="vectorDB")


class StorageV1Alpha1(Block):
    """Storage of the index."""

    persistent_volume_claim: Annotated[ObjectName | None, Meta(description="Name of the PersistentVolumeClaim.")] = None
    mount_path: Annotated[
        MountPath | None, Meta(description=f"Folder of the volume in the container. Default: `{DATA}`.")
    ] = None


class ConfigMapName(Block):
    """A ConfigMap."""

    name: Annotated[ObjectName, Meta(description="Name of the ConfigMap.")]


class Guardrails(Block):
    """Rules for answers."""

    enabled: Annotated[bool, Meta(description="Whether the rules apply.")] = False
    config_map_ref: Annotated[
        ConfigMapName | None, Meta(description=f"ConfigMap with the rules under the key `{POLICY_FILE}`.")
    ] = None


class RagSpecV1Alpha1(Block):
    """Desired state."""

    compute: Annotated[ResourceV1Alpha1 | None, Meta(description="Nodes of the server.")] = None
    storage: Annotated[StorageV1Alpha1 | None, Meta(description="Storage of the index.")] = None
    embedding: Annotated[Embedding, Meta(description="Embedding of texts.")]
    inference_service: Annotated[
        InferenceServiceV1Alpha1 | None, Meta(description="The model server that answers queries.")
    ] = None
    query_service_name: Annotated[Text | None, Meta(description="Name of the Service for queries.")] = None
    index_service_name: Annotated[Text | None, Meta(description="Name of the Service for the index.")] = None


class RagSpec(Block):
    """Desired state."""

    compute: Annotated[Resource | None, Meta(description="Nodes of the server.")] = None
    storage: Annotated[Storage | None, Meta(description="Storage of the index.")] = None
    embedding: Annotated[Embedding, Meta(description="Embedding of texts.")]
    inference_service: Annotated[
        InferenceService | None, Meta(description="The model server that answers queries.")
    ] = None
    guardrails: Annotated[Guardrails | None, Meta(description="Rules for answers.")] = None


class RagEngineV1Alpha1(Foreign):
    """KAITO's `RAGEngine` of `kaito.sh/v1alpha1`."""

    api_version: Annotated[Literal["kaito.sh/v1alpha1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["RAGEngine"], Meta(description="Kind of the document.")]
    spec: Annotated[RagSpecV1Alpha1, Meta(description="Desired state.")]


class RagEngine(Foreign):
    """KAITO's `RAGEngine` of `kaito.sh/v1beta1`."""

    api_version: Annotated[Literal["kaito.sh/v1beta1"], Meta(description="Version of KAITO's API.")]
    kind: Annotated[Literal["RAGEngine"], Meta(description="Kind of the document.")]
    spec: Annotated[RagSpec, Meta(description="Desired state.")]


def lower(engine: RagEngine | RagEngineV1Alpha1, document: Positioned, context: LoweringContext) -> LoweringResult:
    """Return a RAGEngine as a Topology with a pod template.

    Args:
        engine: the validated document.
        document: the document with positions.
        context: what else the lowering may read.
    """
    lowering = ResourceLowering(engine.metadata, document, context)
    options = lowering.options()
    lowering.unused_weights("the server downloads its model itself; set `embedding.local` for it")
    spec = engine.spec
    draft = lowering.draft("Topology")
    draft.origins["spec",] = ("spec",)
    put_service(draft, options, lowering, key=False)
    nodes = Nodes()
    if spec.compute is not None:
        older = isinstance(engine, RagEngineV1Alpha1)
        local = spec.embedding.local is not None
        request = node_request(spec.compute, ("spec", "compute"), default=older, gpus_needed=False)
        nodes = put_placement(draft, request, options, lowering)
        if spec.compute.count not in {None, 1}:
            lowering.unused(("spec", "compute", "count"), "the index has one server")
        if not local:
            nodes = Nodes(named=nodes.named)
    for name in ("queryServiceName", "indexServiceName"):
        if isinstance(spec, RagSpecV1Alpha1) and name in document.data["spec"]:
            lowering.unused(("spec", name), "one Service, named like the resource, serves both")
    pod = _Server(lowering, nodes).template(spec)
    draft.put(("spec", "template"), with_placement(with_programs(pod), draft, nodes, ("spec", "compute"), lowering))
    # A second server would not see the index of the first.
    draft.put(("spec", "rollout"), {"maxSurge": 0, "maxUnavailable": 1})
    topology = draft.finish(Topology, lowering) if not lowering.failed else None
    naming = serving_names(RAG, compat=options.compat)
    if topology is None:
        return lowering.result()
    return lowering.result(draft.lowered(topology, naming))


class _Server:
    """Builds the pod template."""

    def __init__(self, lowering: ResourceLowering, nodes: Nodes) -> None:
        self.lowering = lowering
        self.nodes = nodes
        self.env: list[dict[str, Any]] = [{"name": "HOME", "value": "/scratch"}]
        self.mounts: list[dict[str, Any]] = [
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "scratch", "mountPath": "/tmp"},
            {"name": "shm", "mountPath": "/dev/shm"},
        ]
        self.volumes: list[dict[str, Any]] = [
            {"name": "scratch", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        ]
        self.persistent = False

    def set(self, name: str, value: str) -> None:
        """Set an environment variable."""
        self.env.append({"name": name, "value": value})

    def set_url(self, name: str, url: str, at: FieldPath) -> None:
        """Set an environment variable to the URL of a server, which is checked."""
        if self.lowering.is_placeholder(url, at, "a URL"):
            return
        self.lowering.names_server(url, at)
        self.set(name, url)

    def set_secret(self, name: str, secret: str | None) -> None:
        """Set an environment variable from the key of the same name in a Secret."""
        if secret is not None:
            reference = {"secretKeyRef": {"name": secret, "key": name}}
            self.env.append({"name": name, "valueFrom": reference})

    def template(self, spec: RagSpec | RagSpecV1Alpha1) -> dict[str, Any]:
        """Return the pod template."""
        self._embedding(spec.embedding, ("spec", "embedding"))
        self._storage(spec)
        service = spec.inference_service
        if service is not None:
            if service.url is not None:
                self.set_url("LLM_INFERENCE_URL", service.url, ("spec", "inferenceService", "url"))
            self.set_secret("LLM_ACCESS_SECRET", service.access_secret)
            self.set("LLM_CONTEXT_WINDOW", str(service.context_window_size))
        if isinstance(spec, RagSpec) and spec.guardrails is not None:
            self._guardrails(spec.guardrails)
        return {"spec": self._pod()}

    def _embedding(self, embedding: Embedding, at: FieldPath) -> None:
        """Set the variables that the server reads; KAITO sets others, which have no effect."""
        if embedding.remote is not None:
            self.set("EMBEDDING_SOURCE_TYPE", "remote")
            self.set_url("REMOTE_EMBEDDING_URL", embedding.remote.url, (*at, "remote", "url"))
            self.set_secret("REMOTE_EMBEDDING_ACCESS_SECRET", embedding.remote.access_secret)
            return
        local = embedding.local
        assert local is not None
        self.set("EMBEDDING_SOURCE_TYPE", "local")
        if local.model_id is not None:
            self.set("LOCAL_EMBEDDING_MODEL_ID", local.model_id)
        self.set_secret("HF_TOKEN", local.model_access_secret)
        for name, value in (("image", local.image), ("imagePullSecret", local.image_pull_secret)):
            if value is not None:
                self.lowering.unused((*at, "local", name), "the server downloads its model by `modelID`")

    def _storage(self, spec: RagSpec | RagSpecV1Alpha1) -> None:
        if spec.storage is None:
            return
        if isinstance(spec.storage, StorageV1Alpha1):
            claim, folder = spec.storage.persistent_volume_claim, spec.storage.mount_path
        elif spec.storage.vector_db is not None:
            database = spec.storage.vector_db
            self.set("VECTOR_DB_TYPE", database.engine)
            self.set_url("VECTOR_DB_URL", database.url, ("spec", "storage", "vectorDB", "url"))
            self.set_secret("VECTOR_DB_ACCESS_SECRET", database.access_secret)
            return
        else:
            assert spec.storage.persistent_volume is not None
            volume = spec.storage.persistent_volume
            claim, folder = volume.persistent_volume_claim, volume.mount_path
        folder = (folder or DATA).rstrip("/") or DATA
        source: dict[str, Any] = {"persistentVolumeClaim": {"claimName": claim}} if claim else {"emptyDir": {}}
        if claim:
            self.lowering.find_claim(claim)
        self.volumes.append({"name": "index", **source})
        self.mounts.append({"name": "index", "mountPath": folder})
        self.set("DEFAULT_VECTOR_DB_PERSIST_DIR", folder)
        self.persistent = True

    def _guardrails(self, guardrails: Guardrails) -> None:
        at: FieldPath = ("spec", "guardrails")
        if not guardrails.enabled:
            if guardrails.config_map_ref is not None:
                self.lowering.unused((*at, "configMapRef"), "`enabled` is not true")
            return
        self.set("OUTPUT_GUARDRAILS_ENABLED", "true")
        if guardrails.config_map_ref is None:
            self.lowering.error(
                "KG0413",
                "`configMapRef` is missing; KAITO would copy rules from its own namespace",
                at,
                f"set `configMapRef` to a ConfigMap with the key `{POLICY_FILE}`",
            )
            return
        self.set("OUTPUT_GUARDRAILS_POLICY_PATH", f"{POLICY_FOLDER}/{POLICY_FILE}")
        name = guardrails.config_map_ref.name
        self.volumes.append({"name": "guardrails", "configMap": {"name": name}})
        self.mounts.append({"name": "guardrails", "mountPath": POLICY_FOLDER, "readOnly": True})

    def _pod(self) -> dict[str, Any]:
        gpus = self.nodes.gpus
        device: dict[str, Any] = {}
        if gpus and (self.nodes.profile or self.nodes.instance is not None):
            device = dict(self.nodes.device(gpus, self.lowering.context.profile))
        cpu, memory = ("4", "16Gi") if device else ("500m", "4Gi")
        health: dict[str, Any] = {"httpGet": {"path": "/health", "port": PORT}}
        container: dict[str, Any] = {
            "name": "server",
            "image": IMAGE,
            "command": ["python3", "main.py"],
            "env": self.env,
            "ports": [{"name": "http", "containerPort": PORT}],
            "resources": {"requests": {"cpu": cpu, "memory": memory, **device}, "limits": {"memory": memory, **device}},
            "startupProbe": {**health, "periodSeconds": 10, "failureThreshold": 120},
            "readinessProbe": {**health, "periodSeconds": 10},
            "livenessProbe": {**health, "periodSeconds": 10, "failureThreshold": 6},
            **({"lifecycle": {"postStart": _ask("load"), "preStop": _ask("persist")}} if self.persistent else {}),
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": self.mounts,
        }
        return {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 60,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "fsGroup": USER,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": self.volumes,
        }


def _ask(what: str) -> dict[str, Any]:
    return {"exec": {"command": ["python3", program("indexes.py"), what]}}
