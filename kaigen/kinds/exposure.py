"""Blocks of a Topology and its aliases: how requests reach the app."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from kaigen.core.json_types import JsonObject
from kaigen.kinds.base import (
    ADDRESS,
    NO_BLANKS,
    SHA256,
    Annotations,
    Duration,
    LabelName,
    ObjectName,
    ObjectRef,
    Port,
    text,
)
from kaigen.kinds.block import Block, Choice

_DOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
HOST = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
ROUTE_PATH = r"^/[A-Za-z0-9/_.~%-]*$"

EVERY_REQUEST = 100
"""The weight of a canary that gets every request."""
Weight = Annotated[int, Meta(ge=0, le=EVERY_REQUEST)]
"""A percentage of requests."""


class AliasService(Block):
    """The Service of another name of an app."""

    type: Annotated[Literal["ClusterIP", "NodePort", "LoadBalancer"], Meta(description="Type of the Service.")] = (
        "ClusterIP"
    )
    port: Annotated[Port, Meta(description="Port of the Service.")] = 80
    annotations: Annotated[
        Annotations, Meta(description="Annotations of the Service, such as those for the cloud's load balancer.")
    ] = field(default_factory=dict)
    load_balancer_class: Annotated[
        Annotated[str, Meta(min_length=1, max_length=317)] | None,
        Meta(description="Load balancer class, for type LoadBalancer. Default: that of the cluster."),
    ] = None
    load_balancer_source_ranges: Annotated[
        list[Annotated[str, text(r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]],
        Meta(
            description="Source ranges that may connect, for type LoadBalancer. Default: all.",
            examples=[["203.0.113.0/24"]],
        ),
    ] = field(default_factory=list)


class Service(AliasService):
    """The Service of the app."""

    allow_from: Annotated[
        list[JsonObject],
        Meta(
            description="Peers of a NetworkPolicy that may connect from inside the cluster. Default: all.",
            examples=[[{"namespaceSelector": {"matchLabels": {"team": "apps"}}}]],
        ),
    ] = field(default_factory=list)


class Gateway(Choice):
    """The Gateway of a route: an existing one, or one for this route."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "className")

    name: Annotated[ObjectName | None, Meta(description="An existing Gateway.", examples=["public"])] = None
    class_name: Annotated[
        ObjectName | None, Meta(description="GatewayClass; kaigen creates a Gateway for this host.", examples=["istio"])
    ] = None
    namespace: Annotated[
        LabelName | None, Meta(description="Namespace of the Gateway `name`. Default: that of the app.")
    ] = None
    section_name: Annotated[ObjectName | None, Meta(description="Listener of the Gateway `name`. Default: all.")] = None
    timeout: Annotated[
        Duration | None,
        Meta(
            description="Time limit of a request; a streamed response counts as one request. Default: none.",
            examples=["10m"],
        ),
    ] = None


class Ingress(Block):
    """An Ingress, for clusters without a Gateway."""

    class_name: Annotated[
        ObjectName | None, Meta(description="IngressClass. Default: that of the cluster.", examples=["nginx"])
    ] = None
    annotations: Annotated[Annotations, Meta(description="Annotations of the Ingress.")] = field(default_factory=dict)


class Tls(Block):
    """The TLS certificate of a host."""

    formerly: ClassVar[Mapping[str, tuple[str, ...]]] = {"secretName": ("secret",)}

    secret: Annotated[
        ObjectRef,
        Meta(description="Secret of type `kubernetes.io/tls` with the certificate.", examples=[{"name": "chat-tls"}]),
    ]
    cluster_issuer: Annotated[
        ObjectName | None,
        Meta(description="ClusterIssuer of cert-manager that creates the Secret. Default: the Secret exists."),
    ] = None


class HostRoute(Choice):
    """How requests for a host reach the app from outside the cluster."""

    exactly_one: ClassVar[tuple[str, ...]] = ("gateway", "ingress")

    host: Annotated[
        str, text(HOST, max_length=253, description="Host name of requests.", examples=["chat.example.com"])
    ]
    gateway: Annotated[Gateway | None, Meta(description="Use Gateway API with an HTTPRoute.")] = None
    ingress: Annotated[Ingress | None, Meta(description="Use an Ingress.")] = None
    tls: Annotated[Tls | None, Meta(description="Certificate of the host. An existing Gateway has its own.")] = None


class Route(HostRoute):
    """How requests from outside the cluster reach the app."""

    path: Annotated[
        Annotated[str, text(ROUTE_PATH, max_length=1024)] | None,
        Meta(
            description="Path prefix of requests; it is not rewritten. Default: `/v1` with `auth` and vLLM, "
            "which asks for the key on few other paths; else `/`.",
            examples=["/v1"],
        ),
    ] = None


class Oidc(Block):
    """Who may open the app: users of an OpenID Connect provider, whom oauth2-proxy asks to sign in."""

    issuer: Annotated[
        str,
        text(
            ADDRESS,
            max_length=1024,
            description="URL of the provider, which has `/.well-known/openid-configuration`.",
            examples=["https://login.example.com/realms/ml"],
        ),
    ]
    client_id: Annotated[
        str,
        text(
            NO_BLANKS,
            min_length=1,
            max_length=512,
            description="ID of the client at the provider. Its redirect URL is `https://HOST/oauth2/callback`.",
            examples=["notebooks"],
        ),
    ]
    secret: Annotated[
        ObjectRef | None,
        Meta(
            description="Secret with the keys `client-secret`, of the provider, and `cookie-secret`, 16, 24 or 32 "
            "random bytes, also in Base64. Default: `NAME-oidc`.",
            examples=[{"name": "research-oidc"}],
        ),
    ] = None
    allowed_groups: Annotated[
        list[Annotated[str, text(r"^[^\s,\"$]([^,\"$]*[^\s,\"$])?$", max_length=253)]],
        Meta(description="Groups, one of which a user must have. Default: any.", examples=[["research"]]),
    ] = field(default_factory=list)
    allowed_emails: Annotated[
        list[Annotated[str, text(r"^[^\s@,\"#]+@[^\s@,\"]+$", max_length=320)]],
        Meta(description="Addresses of users.", examples=[["ada@example.com"]]),
    ] = field(default_factory=list)
    allowed_domains: Annotated[
        list[Annotated[str, text(_DOMAIN, max_length=253)]],
        Meta(
            description="Domains of addresses. With `allowedEmails`, a user must match one of both.",
            examples=[["example.com"]],
        ),
    ] = field(default_factory=list)


class ProtectedRoute(HostRoute):
    """How users reach the app from outside the cluster, after they sign in. The host must have TLS."""

    host: Annotated[
        str,
        text(_DOMAIN, max_length=253, description="Host name, to which users return.", examples=["lab.example.com"]),
    ]
    oidc: Annotated[Oidc, Meta(description="Who may open the app.")]


class InferencePool(Block):
    """Gateway API Inference Extension: an endpoint picker chooses the pod of each request."""

    endpoint_picker: Annotated[
        ObjectName, Meta(description="Service of the endpoint picker, in the same namespace.", examples=["chat-epp"])
    ]
    port: Annotated[Port, Meta(description="Port of the endpoint picker.")] = 9002
    failure_mode: Annotated[
        Literal["FailOpen", "FailClose"],
        Meta(description="Whether requests go to any pod or are rejected when the endpoint picker does not answer."),
    ] = "FailOpen"


class Router(Block):
    """Envoy in front of the replicas, for vLLM with the endpoint picker of the Gateway API Inference Extension."""

    policy: Annotated[
        Literal["prefix", "load", "session"],
        Meta(
            description="Which replica gets a request: `prefix` prefers one that has the beginning of the prompt in "
            "its cache, `load` the one with the fewest requests and the most free cache; `session` sends all requests "
            "with one value of `sessionHeader` to one replica, without a picker. Other engines than vLLM have no "
            "picker; their default is `load`."
        ),
    ] = "prefix"
    session_header: Annotated[
        str,
        text(
            r"^[a-z0-9][-a-z0-9]*$",
            max_length=100,
            description="Request header of `policy: session`, such as the number of a conversation or the name of a "
            "user. Requests without it go to any replica.",
        ),
    ] = "x-session-id"
    replicas: Annotated[
        int, Meta(ge=1, le=20, description="Pods of the router; for vLLM, each has its own picker.")
    ] = 2
    failure_mode: Annotated[
        Literal["open", "closed"],
        Meta(
            description="What happens to requests while the picker does not answer: `open` sends them to the replica "
            "with the fewest, `closed` answers 503."
        ),
    ] = "open"
    hold: Annotated[
        Duration | None,
        Meta(
            description="How long the router holds requests that no replica can take. Default: with "
            "`autoscale.min: 0`, the longest time until a pod is ready and two minutes; else none.",
            examples=["5m"],
        ),
    ] = None
    metrics_from: Annotated[
        list[JsonObject],
        Meta(
            description="Peers of a NetworkPolicy that may connect to the ports with metrics, which are also those of "
            "the replicas. Default: all pods of the cluster with `monitoring`, else none.",
            examples=[[{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]],
        ),
    ] = field(default_factory=list)


class KeySecret(Block):
    """The Secret with API keys."""

    text_means: ClassVar[str] = "name"

    name: Annotated[ObjectName, Meta(description="Name of the Secret.", examples=["chat-api-key"])]
    key: Annotated[
        str,
        text(
            r"^[-._a-zA-Z0-9]+$",
            max_length=253,
            description="Key in the Secret, whose value are the API keys, one a line. Default: `api-key`.",
        ),
    ] = "api-key"


class Auth(Choice):
    """The API keys, one of which requests must have as `Authorization: Bearer KEY`."""

    exactly_one: ClassVar[tuple[str, ...]] = ("secret", "sha256")
    formerly: ClassVar[Mapping[str, tuple[str, ...]]] = {"key": ("secret", "key")}

    secret: Annotated[
        KeySecret | None, Meta(description="Secret with the keys.", examples=[{"name": "chat-api-key"}])
    ] = None
    sha256: Annotated[
        Annotated[list[Annotated[str, text(SHA256)]], Meta(min_length=1)] | None,
        Meta(description="SHA-256 checksums of the keys, in place of a Secret; only for `engine: distributedLlama`."),
    ] = None

    @property
    def key(self) -> str:
        """Key in the Secret; empty without one."""
        return self.secret.key if self.secret is not None else ""
