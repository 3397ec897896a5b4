"""Problems of Topologies."""

from __future__ import annotations

from typing import Any

import pytest

from kaigen.compile.problems import Problems
from tests.unit.compile.specs import compiled, problem_paths, topology
from tests.unit.compile.topologies import CONTAINER, CONTEXT, FOLDER, HUB, KEDA, TEMPLATE


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, [("KG0341", "spec")]),
        ({"engine": "transformers"}, [("KG0341", "spec")]),
        ({"engine": "container"}, [("KG0341", "spec.engine")]),
        ({"model": "none"}, [("KG0301", "spec.model")]),
        ({"model": {"name": "none"}}, [("KG0301", "spec.model.name")]),
        ({"model": {**FOLDER, "mountPath": "/x"}}, [("KG0340", "spec.model.mountPath")]),
        ({"model": {**HUB, "mountPath": "/x"}}, [("KG0340", "spec.model.mountPath")]),
        ({"model": {"huggingFace": {"repo": "a/b"}}}, [("KG0310", "spec.model.huggingFace.repo")]),
        (
            {"model": {"huggingFace": {"repo": "a/b", "revision": "v1"}}},
            [("KG0310", "spec.model.huggingFace.revision")],
        ),
        ({**CONTAINER, "model": HUB}, [("KG0340", "spec.model.huggingFace")]),
        ({"model": "many", "args": ["x"]}, [("KG0340", "spec.args")]),
        ({"model": "many", "command": ["x"]}, [("KG0340", "spec.command")]),
        (
            {**CONTAINER, "contextLength": 5, "auth": {"secret": {"name": "s"}}},
            [("KG0340", "spec.contextLength"), ("KG0340", "spec.auth")],
        ),
        ({"engine": "transformers", "model": "many", "quantization": "fp8"}, [("KG0340", "spec.quantization")]),
        (
            {"engine": "transformers", "model": "many", "shape": {"tensorParallel": 2}},
            [("KG0340", "spec.shape.tensorParallel")],
        ),
        ({"engine": "transformers", "model": "many", "shape": {"nodes": 2}}, [("KG0343", "spec.shape.nodes")]),
        ({"engine": "transformers", "model": "many", "servedNames": ["a", "b"]}, [("KG0340", "spec.servedNames.1")]),
        ({"model": "many", "transfer": {"memory": "1Gi"}}, [("KG0340", "spec.transfer")]),
        ({"model": "many", "tokenSecret": {"name": "s"}}, [("KG0340", "spec.tokenSecret")]),
        (
            {"model": FOLDER, "adapters": [{"name": "a", "model": "many"}, {"name": "a", "model": "many"}]},
            [("KG0342", "spec.adapters.1.name")],
        ),
        ({"model": FOLDER, "adapters": [{"name": "a", "model": "no"}]}, [("KG0301", "spec.adapters.0.model")]),
        ({"model": FOLDER, "adapters": [{"name": "a", "model": "one"}]}, [("KG0311", "spec.adapters.0.model")]),
        ({"model": "one", "shape": {"nodes": 2}}, [("KG0309", "spec.model"), ("KG0311", "spec.model")]),
        ({"model": "one", "shape": {"replicas": 2}, "resources": {"gpus": 0}}, [("KG0309", "spec.model")]),
        ({"model": "many", "engineArgs": {"port": 1}}, [("KG0347", "spec.engineArgs.port")]),
        ({"model": "many", "engineArgs": {"max_model_len": 1}}, [("KG0347", "spec.engineArgs.max_model_len")]),
        (
            {"model": "many", "engineArgs": {"no-trust-remote-code": True}},
            [("KG0347", "spec.engineArgs.no-trust-remote-code")],
        ),
        ({"model": "many", "engineArgs": ["--seed", "1", "-tp", "2"]}, [("KG0347", "spec.engineArgs.2")]),
        ({"model": "many", "engineArgs": ["--api-key=x"]}, [("KG0347", "spec.engineArgs.0")]),
        (
            {"model": "many", "resources": {"gpus": 4}, "shape": {"tensorParallel": 3}},
            [("KG0344", "spec.shape.tensorParallel")],
        ),
        (
            {"model": "many", "resources": {"gpus": 4}, "shape": {"dataParallel": 3}},
            [("KG0344", "spec.shape.dataParallel")],
        ),
        ({"model": "many", "resources": {"instanceType": "g6.xlarge", "gpus": 4}}, [("KG0344", "spec.resources.gpus")]),
        (
            {"model": "many", "resources": {"gpus": {"profile": "1g.10gb", "count": 2}}},
            [("KG0345", "spec.resources.gpus")],
        ),
        ({"model": "many", "shape": {"executor": "ray"}}, [("KG0340", "spec.shape.executor")]),
        ({"model": "many", "shape": {"groups": "statefulSet"}}, [("KG0340", "spec.shape.groups")]),
        ({"model": "many", "shape": {"nodes": 2, "executor": "ray"}}, [("KG0343", "spec.shape.executor")]),
        (
            {"model": "many", "engineVersion": "0.11", "shape": {"nodes": 2, "executor": "native"}},
            [("KG0343", "spec.shape.executor")],
        ),
        ({"model": "many", "engineVersion": "0.5", "shape": {"nodes": 2}}, [("KG0343", "spec.shape.nodes")]),
        (
            {
                "model": "many",
                "engineVersion": "0.11",
                "shape": {"nodes": 2, "dataParallel": 2},
                "resources": {"gpus": 2},
            },
            [("KG0343", "spec.shape.dataParallel")],
        ),
        (
            {
                "model": "many",
                "shape": {"nodes": 2, "groups": "statefulSet"},
                "autoscale": {"max": 2},
                "monitoring": {},
            },
            [("KG0353", "spec.autoscale")],
        ),
        (
            {
                "model": "many",
                "storage": {"size": "1Gi"},
                "placement": {"queue": "q"},
                "autoscale": {"max": 2},
                "monitoring": {},
            },
            [("KG0353", "spec.autoscale.max")],
        ),
        (
            {
                "model": "many",
                "storage": {"size": "1Gi"},
                "placement": {"queue": "q"},
                "autoscale": {"max": 1},
                "monitoring": {},
            },
            [],
        ),
        ({"model": "many", "placement": {"queue": "q"}, "autoscale": {"max": 2}, "monitoring": {}}, []),
        (
            {"model": "many", "shape": {"nodes": 2, "groups": "statefulSet"}, "placement": {"queue": "q"}},
            [("KG0360", "spec.placement.queue")],
        ),
        (
            {"model": "many", "shape": {"nodes": 2, "replicas": 0, "groups": "statefulSet"}},
            [("KG0353", "spec.shape.replicas")],
        ),
        ({"model": "many", "autoscale": {"min": 0, "max": 2}}, [("KG0349", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {**KEDA, "min": 0}}, [("KG0349", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {"min": 3, "max": 2}}, [("KG0348", "spec.autoscale.min")]),
        ({"model": "many", "autoscale": {"max": 2, "scaler": "keda"}}, [("KG0348", "spec.autoscale")]),
        ({"model": "many", "autoscale": {"max": 2, "query": "x"}}, [("KG0348", "spec.autoscale.query")]),
        ({"model": "many", "autoscale": {**KEDA, "query": "x"}}, [("KG0348", "spec.autoscale")]),
        ({"model": "many", "autoscale": {**KEDA, "podMetric": "x"}}, [("KG0348", "spec.autoscale.podMetric")]),
        ({"model": "many", "autoscale": {"max": 2, "idleAfter": "2h"}}, [("KG0348", "spec.autoscale.idleAfter")]),
        (
            {
                "model": "many",
                "autoscale": {"max": 2, "prometheus": {"address": "http://p:9090", "authModes": ["basic"]}},
            },
            [("KG0348", "spec.autoscale.prometheus.authModes")],
        ),
        ({**CONTAINER, "autoscale": {"max": 2}}, [("KG0348", "spec.autoscale")]),
        ({**CONTAINER, "autoscale": {"max": 2, "metric": "cache"}}, [("KG0348", "spec.autoscale.metric")]),
        (
            {"model": "many", "autoscale": {"max": 2}, "shape": {"replicas": 2}},
            [("KG0340", "spec.shape.replicas"), ("KG0357", "spec.autoscale")],
        ),
        ({"model": "many", "disruption": {"minAvailable": 1}}, [("KG0340", "spec.disruption")]),
        (
            {"model": "many", "rollout": {"maxSurge": 0, "maxUnavailable": "0%"}},
            [("KG0351", "spec.rollout.maxUnavailable")],
        ),
        (
            {"model": "many", "storage": {"size": "1Gi"}, "rollout": {"maxSurge": 1}},
            [("KG0340", "spec.rollout.maxSurge")],
        ),
        ({"model": "many", "provisioning": "karpenter"}, [("KG0350", "spec.provisioning")]),
        (
            {"model": "many", "provisioning": "karpenter", "resources": {"instanceType": "g6.xlarge"}},
            [("KG0350", "spec.provisioning")],
        ),
        ({"model": "many", "service": {"type": "LoadBalancer"}}, [("KG0352", "spec.service.type")]),
        (
            {"model": "many", "service": {"type": "LoadBalancer"}, "auth": {"secret": {"name": "s"}}},
            [("KG0359", "spec.service.type")],
        ),
        (
            {"model": "many", "service": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}},
            [("KG0340", "spec.service.loadBalancerSourceRanges")],
        ),
        (
            {"model": "many", "route": {"host": "h", "gateway": {"name": "g"}, "tls": {"secret": {"name": "s"}}}},
            [("KG0340", "spec.route.tls")],
        ),
        (
            {"model": "many", "route": {"host": "h", "gateway": {"className": "g", "namespace": "n"}}},
            [("KG0340", "spec.route.gateway.namespace")],
        ),
        (
            {"model": "many", "route": {"host": "h", "ingress": {}}, "inferencePool": {"endpointPicker": "e"}},
            [("KG0340", "spec.inferencePool")],
        ),
        (
            {"model": "many", "auth": {"secret": {"name": "s"}}, "env": {"VLLM_API_KEY": "x"}},
            [("KG0313", "spec.env.VLLM_API_KEY")],
        ),
        ({"model": {"name": "many", "mountPath": "/cache/"}}, [("KG0314", "spec.model")]),
        ({"model": "many", "security": {"runAsUser": 0}}, [("KG0305", "spec.security.runAsUser")]),
        ({"template": {}}, [("KG0341", "spec.template"), ("KG0341", "spec.template")]),
        ({"template": {**TEMPLATE, "x": 1}}, [("KG0340", "spec.template.x")]),
        ({"template": {"spec": {"containers": [{"name": "a"}]}}}, [("KG0341", "spec.template")]),
        (
            {"template": TEMPLATE, "model": "many", "env": {"A": "b"}},
            [("KG0340", "spec.model"), ("KG0340", "spec.env")],
        ),
        ({"template": TEMPLATE, "placement": {"spot": True}}, [("KG0340", "spec.placement.spot")]),
        ({"template": TEMPLATE, "security": {"runAsUser": 5}}, [("KG0340", "spec.security.runAsUser")]),
        ({"preset": "fhi-4"}, [("KG1101", "spec.preset")]),
        ({"preset": "llama-3.1-8b-instruct", "resources": {"gpuType": "L4"}}, [("KG0355", "spec.preset")]),
        ({"preset": "llama-3.1-8b-instruct", "resources": {"gpuType": "L4"}, "tokenSecret": {"name": "s"}}, []),
        ({"preset": "kimi-k2.6", "model": "many"}, [("KG0354", "spec.preset")]),
        ({"preset": "phi-4", "resources": {"gpuType": "L4"}, "shape": {"nodes": 1}}, [("KG1105", "spec.shape.nodes")]),
        (
            {"preset": "phi-4", "resources": {"gpuType": "A100-80GB"}, "contextLength": 1000000},
            [("KG1105", "spec.contextLength")],
        ),
        ({**CONTAINER, "preset": "phi-4"}, [("KG0340", "spec.preset")]),
    ],
    ids=lambda value: str(value)[:90],
)
def test_problem_is_reported_at_its_field(spec: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert problem_paths(topology(**spec), CONTEXT) == expected


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ({"model": "many"}, "require a key with `auth`, or list the allowed networks in `loadBalancerSourceRanges`"),
        (CONTAINER, "list the allowed networks in `loadBalancerSourceRanges`"),
        ({"template": TEMPLATE}, "list the allowed networks in `loadBalancerSourceRanges`"),
    ],
    ids=["engine", "container", "template"],
)
def test_open_load_balancer_hints_at_a_key_only_where_the_engine_supports_one(spec: dict[str, Any], hint: str) -> None:
    problems = Problems()
    compiled(topology(**spec, service={"type": "LoadBalancer"}), CONTEXT, problems)
    assert [item.hint for item in problems.items if item.code == "KG0352"] == [hint]
