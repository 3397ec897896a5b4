"""URLs of servers in specs: a host, and a port that there is."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from kaigen.kinds.base import ADDRESS


@pytest.mark.parametrize(
    "url",
    [
        *("http://otel", "https://hub.example.com:8443/a@b", "http://[::1]:80/x", "http://[fe80::1%25eth0]"),
        *("http://a:1", "http://a:65535", "http://a?b=c", "http://a:80?b=c/d@e"),
    ],
)
def test_a_url_of_a_server_is_accepted(url: str) -> None:
    assert re.match(ADDRESS, url)
    assert urlsplit(url).port != 0


@pytest.mark.parametrize(
    "url",
    [
        *("http://a:65536", "http://a:99999", "http://a:0", "http://a:", "http://a:b", "http://a:1:2"),
        *("http://[::1", "http://::1", "http://[x]", "http://user@a", "http://a?b@c", "http://a#b@c"),
        *("http://a/$b", "ftp://a", "http://", "http://a b"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    assert not re.match(ADDRESS, url)
