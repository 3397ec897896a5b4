"""Blocks of a Topology: how requests reach the app."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kaigen.kinds.base import (
    Annotations,
    Block,
    Choice,
    Duration,
    LabelName,
    Object,
    ObjectName,
)

HOST = r"^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
ROUTE_PATH = r"^/[A-Za-z0-9/_.~%-]*$"

Port = Annotated[int, Field(ge=1, le=65535)]


class Service(Block):
    """The Service of the app."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = Field(
        "ClusterIP",
        description="Type of the Service.",
    )
    port: Port = Field(80, description="Port of the Service.")
    annotations: Annotations = Field(
        {}, description="Annotations of the Service, such as those for the cloud's load balancer."
    )
    load_balancer_class: Annotated[str, Field(min_length=1, max_length=317)] | None = Field(
        None, description="Load balancer class, for type LoadBalancer. Default: that of the cluster."
    )
    load_balancer_source_ranges: list[Annotated[str, Field(pattern=r"^[0-9a-fA-F.:]+/[0-9]{1,3}$")]] = Field(
        [],
        description="Source ranges that may connect, for type LoadBalancer. Default: all.",
        examples=[["203.0.113.0/24"]],
    )
    allow_from: list[Object] = Field(
        [],
        description="Peers of a NetworkPolicy that may connect from inside the cluster. Default: all.",
        examples=[[{"namespaceSelector": {"matchLabels": {"team": "apps"}}}]],
    )


class Gateway(Choice):
    """The Gateway of a route: an existing one, or one for this route."""

    exactly_one: ClassVar[tuple[str, ...]] = ("name", "className")

    name: ObjectName | None = Field(None, description="An existing Gateway.", examples=["public"])
    class_name: ObjectName | None = Field(
        None, description="GatewayClass; kaigen creates a Gateway for this host.", examples=["istio"]
    )
    namespace: LabelName | None = Field(
        None, description="Namespace of the Gateway `name`. Default: that of the app."
    )
    section_name: ObjectName | None = Field(None, description="Listener of the Gateway `name`. Default: all.")
    timeout: Duration | None = Field(
        None,
        description="Time limit of a request; a streamed response counts as one request. Default: none.",
        examples=["10m"],
    )


class Ingress(Block):
    """An Ingress, for clusters without a Gateway."""

    class_name: ObjectName | None = Field(
        None, description="IngressClass. Default: that of the cluster.", examples=["nginx"]
    )
    annotations: Annotations = Field({}, description="Annotations of the Ingress.")


class Tls(Block):
    """The TLS certificate of a host."""

    secret_name: ObjectName = Field(
        description="Secret of type `kubernetes.io/tls` with the certificate.", examples=["chat-tls"]
    )
    cluster_issuer: ObjectName | None = Field(
        None, description="ClusterIssuer of cert-manager that creates the Secret. Default: the Secret exists."
    )


class Route(Choice):
    """How requests from outside the cluster reach the app."""

    exactly_one: ClassVar[tuple[str, ...]] = ("gateway", "ingress")

    host: Annotated[str, Field(pattern=HOST, max_length=253)] = Field(
        description="Host name of requests.", examples=["chat.example.com"]
    )
    path: Annotated[str, Field(pattern=ROUTE_PATH, max_length=1024)] | None = Field(
        None,
        description="Path prefix of requests; it is not rewritten. Default: `/v1` with `auth` and vLLM, which asks for "
        "the key on few other paths; else `/`.",
        examples=["/v1"],
    )
    gateway: Gateway | None = Field(None, description="Use Gateway API with an HTTPRoute.")
    ingress: Ingress | None = Field(None, description="Use an Ingress.")
    tls: Tls | None = Field(None, description="Certificate of the host. An existing Gateway has its own.")


class InferencePool(Block):
    """Gateway API Inference Extension: an endpoint picker chooses the pod of each request."""

    endpoint_picker: ObjectName = Field(
        description="Service of the endpoint picker, in the same namespace.", examples=["chat-epp"]
    )
    port: Port = Field(9002, description="Port of the endpoint picker.")
    failure_mode: Literal["FailOpen", "FailClose"] = Field(
        "FailClose",
        description="Whether requests go to any pod or are rejected when the endpoint picker does not answer.",
    )


class Auth(Block):
    """The API key that requests must have, as `Authorization: Bearer KEY`."""

    secret: ObjectName = Field(description="Name of the Secret.", examples=["chat-api-key"])
    key: Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]+$", max_length=253)] = Field(
        "api-key", description="Key of the API key."
    )
