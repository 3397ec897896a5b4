"""The resolution of an Endpoint: which Topology serves which model, and which client may use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kaigen.compile.builders.frame import Frame
from kaigen.compile.builders.other_apps import find_spec
from kaigen.compile.builders.pools import find_serving
from kaigen.compile.context import Context
from kaigen.compile.endpoint.access import Access, Client
from kaigen.compile.engines.registry import engine_of
from kaigen.compile.finish import frame_of
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.problem import ProblemError
from kaigen.kinds.base import Metadata, TokenSecret
from kaigen.kinds.endpoint import Endpoint, EndpointClient, EndpointModel, EndpointSpec
from kaigen.kinds.topology import Topology

EVERY = "*"


class Backend(Struct, frozen=True):
    """A Topology behind an Endpoint.

    Attributes:
        name: its name.
        topology: its spec.
        path: the field that names it.
        canary: name of the Topology of its next version; empty without one.
        weight: percentage of the requests that the next version gets.
    """

    name: str
    topology: Topology
    path: FieldPath
    canary: str = ""
    weight: int = 0

    @property
    def service(self) -> str:
        """Name of the Service of the version that serves."""
        return self.topology.metadata.name


class EndpointResolution(Struct, frozen=True):
    """An Endpoint with every decision that its spec leaves open.

    Attributes:
        metadata: metadata of the spec.
        spec: the spec.
        context: what it is compiled for.
        frame: names and labels of its objects.
        backends: its Topologies, in the order of the spec.
        access: who may use what.
        keys: Secret and key with each client's keys.
    """

    metadata: Metadata
    spec: EndpointSpec
    context: Context
    frame: Frame
    backends: Sequence[Backend]
    access: Access
    keys: Mapping[str, TokenSecret]


def resolve_endpoint(endpoint: Endpoint, context: Context, problems: Problems, naming: None) -> EndpointResolution:
    """Decide what an Endpoint leaves open.

    Args:
        endpoint: the spec.
        context: what it is compiled for, and every other spec of the run.
        problems: collects what cannot be decided.
        naming: there are no names of other systems.
    """
    spec, metadata = endpoint.spec, endpoint.metadata
    namespace = metadata.namespace or context.config.namespace
    backends: dict[str, Backend] = {}
    models: dict[str, str] = {}
    for index, given in enumerate(spec.models):
        block = EndpointModel(name=given) if isinstance(given, str) else given
        path: FieldPath = ("spec", "models", index, *(() if isinstance(given, str) else ("name",)))
        try:
            serving = find_serving(context, namespace, block.name, path)
            topology = serving.topology
            if serving.weight:
                find_spec(Topology, context, namespace, serving.canary, path)
            names = _names(block, topology, ("spec", "models", index))
        except ProblemError as error:
            problems.add(error.problem)
            continue
        backends[block.name] = Backend(block.name, topology, path, serving.canary, serving.weight)
        for name in names:
            owner = models.setdefault(name, block.name)
            if owner != block.name:
                message = f"`{owner}` and `{block.name}` both serve a model `{name}`"
                hint = (
                    f"give one of them another name in its `servedNames`, or list the others in `serves` of `{owner}`"
                )
                problems.error("KG0485", message, path, hint)
    clients = {name: _client(name, client, models, problems) for name, client in spec.clients.items()}
    guarded = frozenset(name for name, backend in backends.items() if backend.topology.spec.auth is not None)
    secret = spec.keys_secret.name if spec.keys_secret else f"{metadata.name}-keys"
    return EndpointResolution(
        metadata=metadata,
        spec=spec,
        context=context,
        frame=frame_of(metadata, context, spec),
        backends=tuple(backends.values()),
        access=Access(clients, models, guarded),
        keys={name: client.secret or TokenSecret(name=secret, key=name) for name, client in spec.clients.items()},
    )


def served_by(topology: Topology) -> tuple[str, ...]:
    """Return the names of models that a Topology serves; none where kaigen does not know them."""
    spec, engine = topology.spec, engine_of(topology.spec)
    if not engine.understands("servedNames"):
        return ()
    adapters = [each.name for each in spec.adapters] if spec.engine == "vllm" else []
    return (*(spec.served_names or [topology.metadata.name]), *adapters)


def _names(block: EndpointModel, topology: Topology, path: FieldPath) -> Sequence[str]:
    """Return the names of a Topology's models that the Endpoint has.

    Raises:
        ProblemError: they are unknown, or it does not serve one of them.
    """
    known = served_by(topology)
    if not known and not block.serves:
        message = f"kaigen does not know the names of the models that `{block.name}` serves"
        hint = f"list them: `{{name: {block.name}, serves: [MODEL]}}`"
        raise ProblemError("KG0488", message, path, hint)
    for index, name in enumerate(block.serves):
        if known and name not in known:
            where = f" of `{block.name}`"
            raise ProblemError.unknown("KG0486", "model", name, known, (*path, "serves", index), where=where)
    return block.serves or known


def _client(name: str, client: EndpointClient, models: Mapping[str, str], problems: Problems) -> Client:
    """Return what a client may use."""
    allowed: set[str] = set()
    for index, model in enumerate(client.models):
        if model == EVERY:
            allowed |= models.keys()
        elif model in models:
            allowed.add(model)
        else:
            path: FieldPath = ("spec", "clients", name, "models", index)
            problems.add(ProblemError.unknown("KG0486", "model", model, models, path).problem)
    return Client(client.requests_per_minute, tuple(sorted(allowed)))
