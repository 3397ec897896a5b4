"""The block `network` of kaigen.yaml: how pods reach servers outside the cluster."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from kaigen.config.block_settings import NetworkSettings
from kaigen.kinds.base import ADDRESS, ObjectName, text
from kaigen.kinds.block import Block

Url = Annotated[str, text(ADDRESS, max_length=1024)]
_EXCEPTION = r"^[^\s,$]+$"


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


class Network(Block):
    """Proxies, mirrors and authorities for all pods of apps. Variables that a spec sets itself take precedence."""

    hub_endpoint: Annotated[
        Url | None, Meta(description="URL of the Hugging Face Hub.", examples=["https://hub.example.com"])
    ] = None
    http_proxy: Annotated[
        Url | None,
        Meta(
            description="Proxy for http URLs, without a password.", examples=["http://proxy.example.com:3128"]
        ),
    ] = None
    https_proxy: Annotated[
        Url | None,
        Meta(
            description="Proxy for https URLs, without a password.",
            examples=["http://proxy.example.com:3128"],
        ),
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
        Meta(
            description="Index of Python packages, for pip and uv.",
            examples=["https://packages.example.com/simple"],
        ),
    ] = None


def network_settings(layers: Iterable[Network | None]) -> NetworkSettings | None:
    """Return the settings of the last layer that has each field; None without a block."""
    given = [layer for layer in layers if layer is not None]
    if not given:
        return None

    def last(name: str) -> str:
        return next((value for layer in reversed(given) if (value := getattr(layer, name))), "")

    bundle = next((layer.ca_bundle for layer in reversed(given) if layer.ca_bundle), None)
    exceptions = next((layer.no_proxy for layer in reversed(given) if layer.no_proxy is not None), [])
    return NetworkSettings(
        hub_endpoint=last("hub_endpoint"),
        http_proxy=last("http_proxy"),
        https_proxy=last("https_proxy"),
        no_proxy=tuple(exceptions),
        ca_config_map=bundle.config_map if bundle else "",
        ca_key=bundle.key if bundle else "",
        package_index=last("package_index"),
    )
