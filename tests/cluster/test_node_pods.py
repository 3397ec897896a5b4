"""What specs add to pods, seen inside pods of a real node: accounts, variables, volumes, sidecars, host names."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.apps import JOB, compiled, job_name, spec
from tests.cluster.client import Object, is_true
from tests.cluster.images import BASE
from tests.cluster.node import Node
from tests.cluster.test_node import run_client

SMALL = {"cpu": "100m", "memory": "128Mi"}
POD_FIELDS: Object = {
    "podLabels": {"team": "research"},
    "serviceAccount": {"create": {"annotations": {"example.com/identity": "trainer"}}},
    "envFrom": [{"secret": "keys"}, {"config": "flags", "prefix": "FLAG_"}],
    "hostAliases": [{"ip": "10.9.8.7", "hostnames": ["models.corp.example.com"]}],
    "volumes": {
        "models": {"claimName": "models", "mountPath": "/mnt/models"},
        "conf": {"configMap": {"name": "flags", "items": {"level": "sub/level"}}, "mountPath": "/etc/conf"},
        "token": {
            "projected": {"sources": [{"serviceAccountToken": {"audience": "cloud", "path": "token"}}]},
            "mountPath": "/tokens",
        },
        "shared": {"emptyDir": {}, "mountPath": "/shared"},
        "logs": {"emptyDir": {}},
    },
    # It never ends, and ready only once it has written: the next container starts after that.
    "sidecars": {
        "agent": {
            "image": BASE,
            "command": ["python", "-u", "-c"],
            "args": ["import time; open('/shared/agent', 'w').write('here'); time.sleep(3600)"],
            "mounts": {"shared": "/shared", "logs": "/logs"},
            "startupProbe": {
                "exec": {"command": ["python", "-c", "open('/shared/agent')"]},
                "periodSeconds": 1,
                "failureThreshold": 60,
                "timeoutSeconds": 30,
            },
        }
    },
    "initContainers": {
        "prepare": {
            "image": BASE,
            "command": ["python", "-c", "open('/models/weights', 'a').write('w')"],
            "mounts": {"models": "/models"},
        }
    },
}
SEEN = """
import base64, json, os, socket
token = open("/tokens/token").read().split(".")[1]
claims = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
seen = {
    "secret": os.environ["KEY"],
    "flag": os.environ["FLAG_level"],
    "own": os.environ.get("level", ""),
    "file": open("/etc/conf/sub/level").read(),
    "agent": open("/shared/agent").read(),
    "weights": open("/mnt/models/weights").read()[:1],
    "host": socket.gethostbyname("models.corp.example.com"),
    "subject": claims["sub"],
    "audience": claims["aud"],
    "api": os.path.exists("/var/run/secrets/kubernetes.io/serviceaccount/token"),
}
print(json.dumps(seen), flush=True)
"""
# Locks more memory than the limit allows.
LOCKS = """
import ctypes, resource
resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))
memory = ctypes.create_string_buffer(1 << 20)
print(ctypes.CDLL(None, use_errno=True).mlock(memory, len(memory)))
"""


@pytest.fixture
def outside(node: Node, node_namespace: str) -> None:
    """Make what specs refer to, and Git does not have."""
    claim: Object = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "local-path",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    for kind, name, fields in (
        ("PersistentVolumeClaim", "models", {"spec": claim}),
        ("Secret", "keys", {"stringData": {"KEY": "value"}}),
        ("ConfigMap", "flags", {"data": {"level": "debug"}}),
    ):
        metadata = {"name": name, "namespace": node_namespace}
        node.client.apply({"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields})


@pytest.mark.ran("ServiceAccount", by="node")
@pytest.mark.usefixtures("outside")
def test_pods_have_what_their_specs_add(node: Node, node_namespace: str, tmp_path: Path) -> None:
    serve = "import http.server as h, os; os.chdir('/model'); h.test(h.SimpleHTTPRequestHandler, port=8000)"
    documents = [
        spec("Job", "look", image=BASE, command=["python", "-c", SEEN], resources=SMALL, **POD_FIELDS),
        spec(
            "Topology",
            "served",
            engine="container",
            image=BASE,
            model={"volume": {"claimName": "models"}},
            command=["python", "-c", f"{SEEN}\n{serve}"],
            probes={"ready": "/weights"},
            resources=SMALL,
            **POD_FIELDS,
        ),
    ]
    apps = compiled(tmp_path / "specs", documents, node_namespace, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    job = job_name(apps["look"])
    node.client.wait(JOB, job, node_namespace, partial(is_true, condition="Complete"), "complete")
    node.client.wait(
        "apps/v1/Deployment",
        "served",
        node_namespace,
        lambda found: found.get("status", {}).get("readyReplicas") == 1,
        "ready",
    )
    for name, workload, container in (("look", f"job/{job}", "run"), ("served", "deploy/served", "serve")):
        printed = node.run("kubectl", "logs", "--namespace", node_namespace, workload, "-c", container).stdout
        assert json.loads(printed.splitlines()[0]) == {
            "secret": "value",
            "flag": "debug",
            "own": "",
            "file": "debug",
            "agent": "here",
            "weights": "w",
            "host": "10.9.8.7",
            "subject": f"system:serviceaccount:{node_namespace}:{name}",
            "audience": ["cloud"],
            "api": False,
        }
    read = "import urllib.request as u; print(u.urlopen('http://served/weights').read().decode()[:1])"
    assert run_client(node, node_namespace, read).strip() == "w"
    labelled = ("kubectl", "get", "pods", "--namespace", node_namespace, "-l", "team=research", "-o", "name")
    assert len(node.run(*labelled).stdout.split()) == 2


def test_only_a_container_with_the_capability_locks_memory(node: Node, tmp_path: Path) -> None:
    namespace = "locks-memory"
    node.make_namespace(namespace, pod_security="privileged")
    levels: dict[str, Object] = {
        "lock": {"podSecurity": "privileged", "capabilities": ["IPC_LOCK"]},
        "no-lock": {"podSecurity": "baseline"},
    }
    command = ["python", "-c", LOCKS]
    documents = [
        spec("Job", name, image=BASE, command=command, resources=SMALL, security=security)
        for name, security in levels.items()
    ]
    apps = compiled(tmp_path / "specs", documents, namespace, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    printed = {}
    for name, app in apps.items():
        job = job_name(app)
        node.client.wait(JOB, job, namespace, partial(is_true, condition="Complete"), "complete")
        printed[name] = node.run("kubectl", "logs", "--namespace", namespace, f"job/{job}").stdout.strip()
    node.client.delete("v1/Namespace", namespace)
    assert printed == {"lock": "0", "no-lock": "-1"}
