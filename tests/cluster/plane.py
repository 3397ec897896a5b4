"""A whole control plane on loopback: etcd, API server, controller manager, scheduler, and simulated nodes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cluster import world
from tests.cluster.audit import POLICY, Audit
from tests.cluster.client import ApiError, Client, Credentials, Object, is_true
from tests.cluster.network import Loopback, Network
from tests.cluster.patience import PATIENCE
from tests.cluster.pki import Authority, Pair, signing_pair
from tests.cluster.processes import Command, PlaneError, Processes, free_ports, listening
from tests.cluster.tools.parts import locate

_HOST = "127.0.0.1"
_STAGES = Path(__file__).parent / "stages"
_ADMINS = "system:masters"
_CUSTOM_KIND = "apiextensions.k8s.io/v1/CustomResourceDefinition"
# Name of the only cluster, user and context of a kubeconfig.
_NAME = "kaigen"


RUNNING: list[Plane] = []
"""The planes of this process that are running."""


def _pod_security(level: str) -> dict[str, str]:
    return {f"pod-security.kubernetes.io/{mode}": level for mode in ("enforce", "warn")}


class Plane:
    """A running control plane.

    Attributes:
        folder: Everything it keeps; ``logs`` in it has a log a process and the audit log.
        processes: Its processes, to stop, pause and start again by name.
        client: A client with all rights, for what is not itself tested.
        kubeconfig: The same as a file.
        audit: The audit log.
    """

    folder: Path
    processes: Processes
    client: Client
    kubeconfig: Path
    audit: Audit
    network: Network

    def __init__(self, *, custom_kinds: bool = True, network: Network | None = None) -> None:
        """Start a plane and wait until it works.

        Args:
            custom_kinds: Whether it serves the kinds of ``crds``; without them it is up in seconds.
            network: Where its processes listen; loopback where None.

        Raises:
            ToolsMissing: Its programs are not there.
            PlaneError: A process did not come up.
        """
        self._programs = self._locate()
        self._custom_kinds = custom_kinds
        self.network = network or Loopback()
        for attempt in range(3):
            try:
                self._start()
                RUNNING.append(self)
                return
            except PlaneError as error:
                # Another process took a port between its choice and its use.
                if attempt == 2 or "address already in use" not in str(error):
                    raise
                shutil.rmtree(self.folder)

    def _locate(self) -> Mapping[str, Path]:
        return locate()

    def _start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="kaigen-plane-"))
        data = self.folder / "data"
        data.mkdir()
        self._clients: list[Client] = []
        self.processes = Processes(self.folder, data, self.network)
        try:
            etcd, peers, api, kubelet = free_ports(4)
            self._authority = Authority(self.folder / "pki", "ca")
            self.client = self._client(api, self._admin("kaigen-tests"))
            self.kubeconfig = self.kubeconfig_of(self.client, "admin")
            audit = self.processes.logs / "audit.jsonl"
            self.audit = Audit(audit, self.client)
            with ThreadPoolExecutor(1) as pool:
                kinds = pool.submit(lambda: world.custom_kinds() if self._custom_kinds else [])
                self._start_etcd(etcd, peers, data)
                self._start_api_server(api, etcd, audit)
                self._install(kinds.result())
            self._start_controllers()
            self._start_nodes(kubelet)
            self.processes.wait_until(self._works, "the controllers and the nodes work")
        except BaseException:
            self._end_processes()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(keep=kind is not None)

    def _end_processes(self) -> None:
        for client in self._clients:
            client.close()
        self.processes.close()
        self.network.close()

    def stop(self, *, keep: bool = False) -> None:
        """End every process and remove the folder, except the logs if ``keep`` is set."""
        if self in RUNNING:
            RUNNING.remove(self)
        self._end_processes()
        for entry in self.folder.iterdir():
            if entry.is_dir() and not (keep and entry == self.processes.logs):
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.is_file():
                entry.unlink()
        if not keep:
            self.folder.rmdir()

    # Credentials

    def _admin(self, name: str) -> Credentials:
        """Return credentials of a user with all rights; the audit log shows the name."""
        return _credentials(self._authority.issue(f"user-{name}", name, [_ADMINS]))

    def _client(self, port: int, credentials: Credentials, agent: str = "kaigen-tests") -> Client:
        client = Client(self.network.host, port, self._authority.pair.cert, credentials, agent, self.network)
        self._clients.append(client)
        return client

    def as_user(self, name: str, groups: Sequence[str] = ()) -> Client:
        """Return a client with a certificate of that user, who has no rights of its own."""
        pair = self._authority.issue(f"user-{uuid.uuid4().hex[:8]}", name, groups)
        return self._client(self.client.port, _credentials(pair), name)

    def as_admin(self, name: str) -> Client:
        """Return a client with all rights; the audit log shows its name."""
        return self.as_user(name, [_ADMINS])

    def as_service_account(self, namespace: str, name: str) -> Client:
        """Return a client with a real token of a service account, limited to its rights.

        Raises:
            ApiError: There is no such service account.
        """
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = self.client.path("v1/ServiceAccount", name, namespace, "token")
        token = self.client.request("POST", path, request).body["status"]["token"]
        return self._client(self.client.port, Credentials(token=token), f"{namespace}/{name}")

    def kubeconfig_of(self, client: Client, name: str = "", namespace: str = "default") -> Path:
        """Write a kubeconfig with a client's credentials, for programs.

        Args:
            client: From this plane.
            name: The file's name; a new one where empty.
            namespace: What requests without a namespace mean.
        """
        credentials = client.credentials
        user: Object = {"token": credentials.token} if credentials.token else {}
        if credentials.cert is not None:
            user = {"client-certificate": str(credentials.cert), "client-key": str(credentials.key)}
        cluster = {"server": client.url, "certificate-authority": str(client.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _NAME,
            "clusters": [{"name": _NAME, "cluster": cluster}],
            "users": [{"name": _NAME, "user": user}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME, "namespace": namespace}}],
        }
        path = self.folder / f"{name or uuid.uuid4().hex[:8]}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path

    def kubeconfig_for(self, user: str) -> Path:
        """Write a kubeconfig for a component of the plane: all rights, under its own name."""
        return self.kubeconfig_of(self._client(self.client.port, self._admin(user)), user)

    def certificate(self, name: str, hosts: Sequence[str]) -> Pair:
        """Return a certificate of a server, which it can use as a client too.

        Args:
            name: Common name, and the files' name.
            hosts: DNS names and addresses of the server.
        """
        return self._authority.issue(name, name, hosts=hosts)

    # Processes

    def program(self, name: str) -> Path:
        """Return the path of a program of the plane."""
        return self._programs[name]

    def start(self, name: str, *argv: str, env: Mapping[str, str] | None = None) -> None:
        """Start another process of the plane; ``argv`` begins with the program's path."""
        self.processes.start(Command(name, argv, env or {}))

    def listens(self, port: int, host: str = _HOST) -> bool:
        """Return whether a process of the plane listens on a port."""
        with self.network.entered():
            return listening(port, host)

    def _start_etcd(self, port: int, peers: int, data: Path) -> None:
        url, peer_url = f"http://{_HOST}:{port}", f"http://{_HOST}:{peers}"
        self.start(
            "etcd",
            str(self.program("etcd")),
            f"--data-dir={data / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            # Its data ends with the plane, so it need not survive a power cut.
            "--unsafe-no-fsync",
            "--log-level=warn",
        )

    def _start_api_server(self, port: int, etcd: int, audit: Path) -> None:
        serving = self._authority.issue(
            "api-server", "kube-apiserver", hosts=["localhost", "kubernetes", *self._api_hosts]
        )
        kubelet_user = self._authority.issue("api-server-as-client", "kube-apiserver-kubelet-client", [_ADMINS])
        tokens = signing_pair(self.folder / "pki", "service-accounts")
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(POLICY))
        self.start(
            "kube-apiserver",
            str(self.program("kube-apiserver")),
            f"--etcd-servers=http://{_HOST}:{etcd}",
            f"--bind-address={self.network.host}",
            f"--advertise-address={self.network.host}",
            f"--secure-port={port}",
            f"--endpoint-reconciler-type={self._endpoint_reconciler}",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--client-ca-file={self._authority.pair.cert}",
            f"--tls-cert-file={serving.cert}",
            f"--tls-private-key-file={serving.key}",
            f"--kubelet-certificate-authority={self._authority.pair.cert}",
            f"--kubelet-client-certificate={kubelet_user.cert}",
            f"--kubelet-client-key={kubelet_user.key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-signing-key-file={tokens.key}",
            f"--service-account-key-file={tokens.cert}",
            "--authorization-mode=Node,RBAC",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={audit}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=2000",
            "--allow-privileged=true",
            *self._aggregation(),
            "--profiling=false",
        )
        self.processes.wait_until(self._answers, "the API server is ready")

    def _aggregation(self) -> list[str]:
        """Return the flags for API servers behind this one, such as those of metrics."""
        proxy = self._authority.issue("front-proxy", "front-proxy")
        return [
            f"--requestheader-client-ca-file={self._authority.pair.cert}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={proxy.cert}",
            f"--proxy-client-key-file={proxy.key}",
        ]

    def _answers(self) -> bool:
        try:
            self.client.request("GET", "/readyz")
        except (OSError, ApiError):
            return False
        return True

    def wait_ready(self, timeout: float = PATIENCE) -> None:
        """Wait until the API server answers, such as after a restart.

        Raises:
            PlaneError: It does not.
        """
        self.processes.wait_until(self._answers, "the API server is ready", timeout)

    def _install(self, kinds: Sequence[Object]) -> None:
        """Create custom kinds, classes and nodes, before the controllers start, so that they know all kinds."""
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(self.client.create, [*kinds, *self._world()]))
        established = partial(is_true, condition="Established")
        for kind in kinds:
            name = kind["metadata"]["name"]
            self.client.wait(_CUSTOM_KIND, name, "", established, "established")

    def _world(self) -> Sequence[Object]:
        """Return the classes and nodes of a new plane."""
        return world.objects()

    def _start_controllers(self) -> None:
        tokens = self.folder / "pki" / "service-accounts.key"
        for name in ("kube-controller-manager", "kube-scheduler"):
            pair = self._authority.issue(name, f"system:{name}")
            client = self._client(self.client.port, _credentials(pair))
            own = [
                f"--service-account-private-key-file={tokens}",
                f"--root-ca-file={self._authority.pair.cert}",
                "--use-service-account-credentials=true",
                # Do not evict every pod after a laptop slept or a test stopped the API server.
                "--node-monitor-grace-period=10m",
                # How often the binder resyncs, in case it missed an event.
                "--pvclaimbinder-sync-period=2s",
                "--horizontal-pod-autoscaler-sync-period=5s",
            ]
            self.start(
                name,
                str(self.program(name)),
                f"--kubeconfig={self.kubeconfig_of(client, name)}",
                "--leader-elect=false",
                "--secure-port=0",
                "--kube-api-qps=500",
                "--kube-api-burst=1000",
                *(own if name == "kube-controller-manager" else []),
            )

    def _start_nodes(self, port: int) -> None:
        serving = self._authority.issue("kubelets", "kubelets", hosts=[_HOST])
        config = self.folder / "kwok.yaml"
        log = self.processes.logs / "containers.log"
        # The log format of container runtimes: time, stream, F for a full line, text.
        log.write_text("2026-01-01T00:00:00.000000000Z stdout F simulated\n")
        logs = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "all"},
            "spec": {"logs": [{"logsFile": str(log)}]},
        }
        stages = [path.read_text() for path in sorted(_STAGES.glob("*.yaml"))]
        config.write_text("\n---\n".join([*stages, json.dumps(logs)]))
        self.start(
            "kwok",
            str(self.program("kwok")),
            f"--kubeconfig={self.kubeconfig_for('kwok')}",
            f"--config={config}",
            "--manage-all-nodes=true",
            f"--node-ip={_HOST}",
            f"--node-port={port}",
            f"--server-address={_HOST}:{port}",
            f"--tls-cert-file={serving.cert}",
            f"--tls-private-key-file={serving.key}",
            "--node-lease-duration-seconds=240",
        )

    def _works(self) -> bool:
        account = self.client.find("v1/ServiceAccount", "default", "default")
        return account is not None and all(is_true(node, "Ready") for node in self.client.objects("v1/Node"))

    @property
    def _api_hosts(self) -> Sequence[str]:
        """Addresses and names in the certificate of the API server."""
        return [self.network.host]

    has_real_node = False
    """Whether containers run."""

    # With simulated nodes nothing uses the Service of the API server.
    _endpoint_reconciler = "none"

    def run(
        self,
        program: str,
        *arguments: str,
        kubeconfig: Path | None = None,
        stdin: str | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of the plane's programs to its end.

        Args:
            program: ``kubectl``, ``helm``, ``kustomize``.
            arguments: Its arguments.
            kubeconfig: In whose name; with all rights where None.
            stdin: Its input.
            check: Whether an exit code other than 0 is an error.

        Raises:
            AssertionError: It failed; the text is what it printed.
        """
        env = os.environ | {"KUBECONFIG": str(kubeconfig or self.kubeconfig)}
        env |= {f"HELM_{kind}_HOME": str(self.folder / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            self.network.command([str(self.program(program)), *arguments]),
            env=env,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode != 0:
            command = " ".join([program, *arguments])
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    # Content

    def make_namespace(self, name: str, *, pod_security: str = "restricted", **labels: str) -> None:
        """Make a namespace that enforces a Pod Security level and warns of it, ready for pods.

        Args:
            name: Its name.
            pod_security: ``restricted``, ``baseline`` or ``privileged``.
            labels: More of its labels.
        """
        labels = _pod_security(pod_security) | labels
        self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.client.wait("v1/ServiceAccount", "default", name, lambda _: True, "there")

    def set_pod_security(self, namespace: str, level: str) -> None:
        """Make a namespace enforce another Pod Security level for new pods, and warn of it."""
        labels = _pod_security(level)
        self.client.patch("v1/Namespace", namespace, "", {"metadata": {"labels": labels}})

    def install_kinds(self, folder: Path) -> None:
        """Serve the kinds of a controller, in the version of its program.

        Args:
            folder: its CustomResourceDefinitions.
        """
        self.run("kubectl", "apply", "--server-side", "--force-conflicts", "--filename", str(folder))
        self.run("kubectl", "wait", "--for=condition=Established", "--filename", str(folder))

    def add_node(self, node: Object) -> None:
        """Add a node (see ``world.node``) and wait until it is ready."""
        self.client.create(node)
        self.client.wait("v1/Node", node["metadata"]["name"], "", partial(is_true, condition="Ready"), "ready")


def _credentials(pair: Pair) -> Credentials:
    return Credentials(pair.cert, pair.key)
