"""The block `network` of kaigen.yaml: how pods reach servers outside the cluster."""

from ipaddress import ip_network
from typing import Annotated

from msgspec import Meta, field, to_builtins

from kaigen.core.json_types import Json, JsonObject
from kaigen.kinds.base import ADDRESS, ObjectName, Port, text
from kaigen.kinds.block import Block

Url = Annotated[str, text(ADDRESS, max_length=1024)]
_EXCEPTION = r"^[^\s,$]+$"
_RANGE = r"^[0-9a-fA-F.:]+/[0-9]{1,3}$"


class CaBundle(Block):
    """A ConfigMap with certificates of authorities, in the namespace of each app."""

    config_map: Annotated[ObjectName, Meta(description="Name of the ConfigMap.", examples=["corporate-ca"])]
    key: Annotated[
        str,
        text(
            r"^[-._a-zA-Z0-9]+$",
            max_length=253,
            description="Key of the bundle, in PEM. It replaces the authorities of the images, so it also has the "
            "public ones that pods need.",
        ),
    ] = "ca.crt"


class AddressBlock(Block, omit_defaults=True):
    """Addresses outside the cluster."""

    cidr: Annotated[str, text(_RANGE, max_length=49, description="Range of addresses.", examples=["10.20.0.0/16"])]
    except_: Annotated[
        list[Annotated[str, text(_RANGE, max_length=49)]],
        Meta(description="Ranges in it that do not belong to it.", examples=[["10.20.1.0/24"]]),
    ] = field(default_factory=list, name="except")

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            ValueError: one of them is not a range, or not in `cidr`.
        """
        whole = ip_network(self.cidr)
        for each in self.except_:
            inner = ip_network(each)
            if inner.version != whole.version or not inner.subnet_of(whole):  # type: ignore[arg-type]
                raise ValueError(f"`{each}` is not in `{self.cidr}`")


class Peer(Block, omit_defaults=True):
    """A peer of a NetworkPolicy: addresses, or pods by the labels of their namespace and their own."""

    ip_block: Annotated[AddressBlock | None, Meta(description="Addresses outside the cluster.")] = None
    namespace_selector: Annotated[
        JsonObject | None,
        Meta(
            description="Namespaces of the cluster, by a label selector.",
            examples=[{"matchLabels": {"kubernetes.io/metadata.name": "minio"}}],
        ),
    ] = None
    pod_selector: Annotated[
        JsonObject | None, Meta(description="Pods in these namespaces, or in that of the app, by a label selector.")
    ] = None

    def __post_init__(self) -> None:
        """Check which fields are set.

        Raises:
            ValueError: none of them, or addresses and selectors.
        """
        selects = self.namespace_selector is not None or self.pod_selector is not None
        if selects == (self.ip_block is not None):
            raise ValueError("needs either `ipBlock`, or `namespaceSelector` and `podSelector`")

    def rule(self) -> dict[str, Json]:
        """Return the peer as in a NetworkPolicy."""
        found: dict[str, Json] = to_builtins(self)
        return found


class EgressBlock(Block):
    """What pods that download may connect to. Without the block, nothing restricts them."""

    api_server: Annotated[
        list[Peer],
        Meta(
            min_length=1,
            description="Where the API server is: the address of its Service and those of its endpoints. Pods of "
            "Models and Datasets write their measurements to it.",
            examples=[[{"ipBlock": {"cidr": "10.96.0.1/32"}}]],
        ),
    ]
    to: Annotated[
        Annotated[list[Peer], Meta(min_length=1)] | None,
        Meta(
            description="Where files may be downloaded from, and proxies are, on the ports of the URLs in specs. "
            "Default: addresses and Services that the URLs name, and any address for other hosts.",
            examples=[[{"ipBlock": {"cidr": "10.20.0.0/16"}}]],
        ),
    ] = None
    ports: Annotated[
        list[Port],
        Meta(
            description="Ports besides those of the URLs: of servers to which others redirect, and of the pods of a "
            "Service with another port.",
            examples=[[9000]],
        ),
    ] = field(default_factory=list)
    dns: Annotated[
        list[Peer],
        Meta(
            description="Where the DNS is. Default: the pods `k8s-app: kube-dns` in `kube-system`.",
            examples=[[{"ipBlock": {"cidr": "169.254.20.10/32"}}]],
        ),
    ] = field(default_factory=list)
    jobs: Annotated[
        bool,
        Meta(
            description="Restrict Jobs that download `inputs` or `model.source`, too. Their own containers then reach "
            "nothing else."
        ),
    ] = False


class Network(Block):
    """Proxies, mirrors and authorities for all pods of apps. Variables that a spec sets itself take precedence."""

    hub_endpoint: Annotated[
        Url | None, Meta(description="URL of the Hugging Face Hub.", examples=["https://hub.example.com"])
    ] = None
    http_proxy: Annotated[
        Url | None,
        Meta(description="Proxy for http URLs, without a password.", examples=["http://proxy.example.com:3128"]),
    ] = None
    https_proxy: Annotated[
        Url | None,
        Meta(description="Proxy for https URLs, without a password.", examples=["http://proxy.example.com:3128"]),
    ] = None
    no_proxy: Annotated[
        list[Annotated[str, text(_EXCEPTION, min_length=1, max_length=253)]] | None,
        Meta(
            description="Hosts, domains and address ranges without a proxy, besides those of the cluster.",
            examples=[[".example.com", "10.0.0.0/8"]],
        ),
    ] = None
    ca_bundle: Annotated[CaBundle | None, Meta(description="Certificates of authorities to trust.")] = None
    package_index: Annotated[
        Url | None,
        Meta(description="Index of Python packages, for pip and uv.", examples=["https://packages.example.com/simple"]),
    ] = None
    download_egress: Annotated[
        EgressBlock | None,
        Meta(description="NetworkPolicies that let pods which download connect to nothing but what they need."),
    ] = None
