"""The block `network`: peers and ranges of addresses that are none, and the rule of a peer."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import ValidationError

from kaigen.config.network import AddressBlock, Peer
from kaigen.kinds.block import read_block

EITHER = "needs either `ipBlock`, or `namespaceSelector` and `podSelector`"


@pytest.mark.parametrize(
    "peer",
    [
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
        {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16", "10.0.0.0/8"]}},
        {"ipBlock": {"cidr": "fd00::/8", "except": ["fd00::/64"]}},
        {"namespaceSelector": {}},
        {"podSelector": {"matchLabels": {"a": "b"}}},
        {"namespaceSelector": {"matchLabels": {"a": "b"}}, "podSelector": {}},
    ],
)
def test_a_peer_is_written_as_it_is_in_a_network_policy(peer: dict[str, Any]) -> None:
    assert read_block(Peer, peer).rule() == peer


@pytest.mark.parametrize(
    "peer",
    [
        {},
        {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
        {"ipBlock": {"cidr": "10.0.0.0/8"}, "namespaceSelector": {}},
    ],
)
def test_a_peer_is_either_addresses_or_pods(peer: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"^{EITHER}$"):
        read_block(Peer, peer)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"cidr": "10.0.0.1/8"}, "10.0.0.1/8 has host bits set"),
        ({"cidr": "10.0.0.0/16", "except": ["10.0.1.0/24", "10.1.0.0/24"]}, "`10.1.0.0/24` is not in `10.0.0.0/16`"),
        ({"cidr": "10.0.0.0/16", "except": ["10.0.0.0/8"]}, "`10.0.0.0/8` is not in `10.0.0.0/16`"),
        ({"cidr": "10.0.0.0/8", "except": ["fd00::/64"]}, "`fd00::/64` is not in `10.0.0.0/8`"),
        ({"cidr": "10.0.0.0/8", "except": ["10.0.0.1/24"]}, "10.0.0.1/24 has host bits set"),
    ],
)
def test_exceptions_are_in_the_range(block: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as raised:
        read_block(AddressBlock, block)
    assert str(raised.value).startswith(message)
