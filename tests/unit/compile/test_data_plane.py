"""Ports of KV events and KV transfer, caches that several engines share, and balancing over nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.compile.specs import Object, objects, problem_paths, topology
from tests.unit.compile.topologies import CONTEXT, HUB

NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_both"}
LMCACHE = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
EVENTS = {"enable_kv_cache_events": True}
REMOTE = {"LMCACHE_REMOTE_URL": "lm://cache:65432"}
ARGS = "spec.engineArgs"


def several(*connectors: Object) -> Object:
    return {"kv_connector": "MultiConnector", "kv_connector_extra_config": {"connectors": list(connectors)}}


def open_ports(**spec: Any) -> list[Any]:
    """Return the ports after that of requests: numbers, or the first and the last one."""
    (rule,) = objects(topology(model=HUB, **spec), CONTEXT)["NetworkPolicy"]["spec"]["ingress"]
    return [(each["port"], each["endPort"]) if "endPort" in each else each["port"] for each in rule["ports"][1:]]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"engineArgs": {"kv-events-config": EVENTS}}, [5557]),
        ({"engineArgs": {"kv-events-config": {**EVENTS, "enable_kv_cache_events": False}}}, []),
        ({"engineArgs": {"kv-events-config.enable_kv_cache_events": True}}, [5557]),
        ({"engineArgs": {"kv-events-config": {**EVENTS, "endpoint": "inproc://x"}}}, []),
        (
            {
                "engineArgs": {
                    "kv-events-config": {**EVENTS, "endpoint": "tcp://*:6000", "replay_endpoint": "tcp://*:7"}
                }
            },
            [6000, 7],
        ),
        ({"engineArgs": ['--kv-events-config={"enable_kv_cache_events": true}']}, [5557]),
        ({"engineArgs": {"kv-transfer-config": NIXL}}, [5600]),
        ({"engineArgs": {"kv-transfer-config": several(LMCACHE, NIXL)}}, [5600]),
        ({"engineArgs": {"kv-transfer-config": NIXL}, "env": {"VLLM_NIXL_SIDE_CHANNEL_PORT": "5700"}}, [5700]),
        ({"engineArgs": {"kv-transfer-config": LMCACHE}}, []),
        (
            {"engineArgs": {"kv-events-config": EVENTS}, "shape": {"dataParallel": 2}, "resources": {"gpus": 2}},
            [(5557, 5558)],
        ),
    ],
)
def test_the_network_policy_opens_the_ports_of_the_data_plane(spec: Object, expected: list[Any]) -> None:
    assert open_ports(**spec) == expected


def test_ports_that_nothing_names_are_a_warning() -> None:
    assert problem_paths(topology(model=HUB, engineArgs={"kv-transfer-config": NIXL})) == [("KG0382", ARGS)]


@pytest.mark.parametrize(
    ("connector", "env", "shared"),
    [
        (LMCACHE, REMOTE, True),
        (LMCACHE, {"LMCACHE_CONFIG_FILE": "/etc/lmcache.yaml"}, True),
        ({**LMCACHE, "kv_connector_extra_config": {"lmcache.remote_url": "lm://cache:1"}}, {}, True),
        ({"kv_connector": "LMCacheMPConnector"}, {}, True),
        ({"kv_connector": "MooncakeStoreConnector"}, {}, True),
        (several({"kv_connector": "OffloadingConnector"}, LMCACHE), REMOTE, True),
        (LMCACHE, {"LMCACHE_LOCAL_CPU": "True"}, False),
        ({"kv_connector": "OffloadingConnector"}, REMOTE, False),
    ],
)
def test_models_at_one_path_must_not_share_a_cache(connector: Object, env: Object, *, shared: bool) -> None:
    spec: Object = {"engineArgs": {"kv-transfer-config": connector}, "env": env}
    expected = [("KG0383", ARGS)] if shared else []
    assert problem_paths(topology(model="many", **spec), CONTEXT) == expected
    assert problem_paths(topology(model={"name": "many", "mountPath": "/model/many-1"}, **spec), CONTEXT) == []
    assert problem_paths(topology(model=HUB, **spec), CONTEXT) == []


@pytest.mark.parametrize("flag", ["data-parallel-hybrid-lb", "data-parallel-external-lb"])
def test_headless_workers_have_no_server_of_their_own(flag: str) -> None:
    several_nodes = {"shape": {"nodes": 2, "dataParallel": 16, "pipelineParallel": 1}, "resources": {"gpus": 8}}
    spec: Object = {"model": HUB, "engineArgs": {flag: True}}
    assert problem_paths(topology(**spec, **several_nodes)) == [("KG0343", f"{ARGS}.{flag}")]
    assert problem_paths(topology(**spec)) == []
    short = ["-dph" if "hybrid" in flag else "-dpe"]
    assert problem_paths(topology(model=HUB, engineArgs=short, **several_nodes)) == [("KG0343", f"{ARGS}.0")]
