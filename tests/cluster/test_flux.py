"""What kaigen emits for Flux, under its three controllers: sources, Kustomizations, HelmReleases, tenants, lockdown."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from kaigen.cli.main import run
from kaigen.oci.attachments import attach, descriptor
from kaigen.oci.reference import parse_reference
from kaigen.oci.registry import MANIFEST, Registry, digest_of
from kaigen.signing.bundle import BUNDLE, canonical_json
from tests.cluster.apps import JOB, add_gpu_node, demo_specs
from tests.cluster.client import Object, is_true
from tests.cluster.flux import HELM_RELEASE, KUSTOMIZATION, OCI_REPOSITORY, SECRET, Flux
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.publisher import Publisher
from tests.cluster.registry import LocalRegistry
from tests.cluster.simulate import Course, end_course, queues_full, set_course
from tests.cluster.team import Team, bootstrap_flux, changed, remove_bootstrap
from tests.keys import write_keys

ACCOUNT = "deployer"
REGISTRY_SECRET = "registry-password"
KEYS = "signing-keys"
DEPLOYMENT = "apps/v1/Deployment"
SERVICE = "v1/Service"
CHAT: Object = {
    "apiVersion": "kaigen.dev/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "chat"},
    "spec": {"engine": "transformers", "model": "qwen", "resources": {"memory": "4Gi"}},
}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    running = LocalRegistry(tmp_path_factory.mktemp("registry") / "registry")
    yield running
    running.close()


@dataclass
class Tree:
    """A published tree and its state under Flux.

    Attributes:
        plane: the control plane.
        flux: Flux's controllers on it.
        publisher: publishes the tree.
        registry: has charts and artifacts.
        kind: of the objects that sync the apps.
        public_key: verifies the artifacts; None where they are not signed.
    """

    plane: Plane
    flux: Flux
    publisher: Publisher
    registry: LocalRegistry
    kind: str
    public_key: Path | None = None

    @property
    def team(self) -> Team:
        """The team whose tree it is."""
        return self.publisher.team

    @property
    def home(self) -> str:
        """Namespace of the objects that sync the apps."""
        tenant = self.team.gitops.get("tenancy", {}).get("serviceAccount")
        return self.team.space if tenant else self.flux.namespace

    def publish(self) -> str:
        """Publish the specs, and have Flux fetch them now.

        Returns:
            The commit.
        """
        commit, _ = self.publisher.publish()
        self.fetch()
        return commit

    def fetch(self) -> None:
        """Have Flux fetch every source of the tree now."""
        self.flux.fetch_all(f"kaigen.dev/environment={self.team.environment}")

    def begin(self) -> None:
        """Publish, and do what is done once by hand: bootstrap, and the passwords in the namespaces of tenants."""
        client = self.plane.client
        client.apply(self.registry.secret(REGISTRY_SECRET, self.flux.namespace))
        if self.public_key:
            client.apply(keys_secret(self.public_key, self.flux.namespace))
        self.publisher.publish()
        bootstrap_flux(self.plane, self.team, self.publisher.files())
        client.wait("v1/Namespace", self.team.space, "", bool, "made", 60)
        if self.home == self.team.space:
            self.flux.give_credentials(self.team.space)
            client.apply(self.registry.secret(REGISTRY_SECRET, self.team.space))
            if self.public_key:
                client.apply(keys_secret(self.public_key, self.team.space))
        wait_until(self._has_sources, "there are sources", 60)
        self.fetch()

    def _has_sources(self) -> bool:
        return self.home == self.flux.namespace or bool(
            self.plane.client.objects(KUSTOMIZATION, self.home) or self.plane.client.objects(HELM_RELEASE, self.home)
        )

    def object(self, app: str) -> Object:
        """Return the object that syncs an app."""
        return self.plane.client.get(self.kind, self.team.name(self.team.space, app), self.home)

    def wait(self, app: str, check: Callable[[Object], bool], what: str, timeout: float = 120) -> Object:
        """Wait until the object that syncs an app has a state."""
        name = self.team.name(self.team.space, app)
        return self.plane.client.wait(self.kind, name, self.home, check, what, timeout)

    def wait_ready(self) -> None:
        """Wait until every app is ready, and print the seconds that it took."""
        began = time.monotonic()
        for app in self.team.specs:
            self.wait(app, is_ready, "ready")
            print(f"{app} is ready after {time.monotonic() - began:.0f} s")

    def remove(self) -> None:
        """Delete the bootstrap, then every app with its objects."""
        client, labels = self.plane.client, f"kaigen.dev/environment={self.team.environment}"
        remove_bootstrap(self.plane, self.flux, self.team.environment)
        for kind in (HELM_RELEASE, KUSTOMIZATION):
            found = [each["metadata"] for each in client.objects(kind, labels=labels)]
            found = [each for each in found if each["namespace"] == self.home]
            for each in found:
                client.delete(kind, each["name"], each["namespace"])
            for each in found:
                client.wait_gone(kind, each["name"], each["namespace"])
        assert client.objects(DEPLOYMENT, self.team.space) == []
        assert client.objects(JOB, self.team.space) == []


def keys_secret(public_key: Path, namespace: str) -> Object:
    """Return a Secret with a public key, as Flux reads it."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": KEYS, "namespace": namespace},
        "stringData": {"kaigen.pub": public_key.read_text()},
    }


def is_ready(obj: Object) -> bool:
    """Whether a Kustomization or HelmRelease is ready at its current generation."""
    return is_true(obj, "Ready") and obj["status"]["observedGeneration"] == obj["metadata"]["generation"]


def versions(release: Object) -> list[int]:
    """The numbers of a HelmRelease's releases that were deployed, newest first."""
    return [entry["version"] for entry in release["status"].get("history", [])]


@pytest.fixture
def tree(
    plane: Plane, registry: LocalRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Tree]]:
    """Returns a function that makes a tree with settings; its objects go at the end."""
    for name, value in {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    registry.login(tmp_path / "docker")
    add_gpu_node(plane)
    made: list[Tree] = []

    def make(flux: Flux, form: str, settings: Object, **publish: object) -> Tree:
        publisher = Publisher(tmp_path / "clone", flux.server, **publish)
        team = publisher.team
        team.specs = {"qwen": demo_specs()["qwen"], "chat": CHAT}
        own = {"interval": "5s", "secret": SECRET, "chartsSecret": REGISTRY_SECRET}
        more = {key: value for key, value in settings.items() if key != "flux"}
        team.gitops = {"branch": "deploy", "flux": {**own, **settings.get("flux", {})}, **more}
        team.settings["format"] = form
        kind = HELM_RELEASE if form == "chart" else KUSTOMIZATION
        made.append(Tree(plane, flux, publisher, registry, kind))
        return made[-1]

    yield make
    for each in made:
        plane.client.delete("v1/Namespace", each.team.space)


def tenant(**flux: object) -> Object:
    """Settings for Flux under lockdown."""
    return {
        "flux": {"serviceAccount": "flux-admin", **flux},
        "tenancy": {"namespaces": True, "serviceAccount": ACCOUNT},
    }


@pytest.mark.ran("HelmRelease", by="helm-controller")
@pytest.mark.ran("OCIRepository", by="source-controller")
def test_charts_in_a_registry_are_upgraded_to_the_version_that_was_pushed(
    plane: Plane, flux: Flux, registry: LocalRegistry, tree: Callable[..., Tree]
) -> None:
    flux.start_helm()
    where = f"oci://{registry.host}/charts"
    settings: Object = {"tenancy": {"namespaces": True}, "charts": where}
    scene = tree(flux, "chart", settings, charts=where, versionSuffix=True)
    scene.begin()
    check_upgrade(plane, scene)


@pytest.mark.ran("Kustomization", by="kustomize-controller")
@pytest.mark.ran("GitRepository", by="source-controller")
def test_a_tenant_under_lockdown_waits_for_a_queue_and_a_fix_ends_the_wait_for_its_fault(
    plane: Plane, locked_down: Flux, tree: Callable[..., Tree]
) -> None:
    scene = tree(locked_down, "manifests", tenant())
    team = scene.team
    begin_with_full_queue(scene)
    scene.wait_ready()
    writers = {entry.user for entry in plane.audit.writes_since(0, namespace=team.space)}
    assert f"system:serviceaccount:{team.space}:{ACCOUNT}" in writers

    # No node has this label, so the pod never starts. Its time to start is much longer than this test.
    team.specs["chat"] = changed(CHAT, placement={"nodeSelector": {"disk": "none"}})
    broken = scene.publish()
    scene.wait("chat", partial(attempts, commit=broken), "waiting for the fault")
    assert int(scene.object("chat")["spec"]["timeout"].removesuffix("s")) > 600
    team.specs["chat"] = changed(CHAT, contextLength=2048)
    fixed = scene.publish()
    scene.wait("chat", partial(applied, commit=fixed), "fixed", 60)
    scene.remove()


def begin_with_full_queue(scene: Tree) -> None:
    """See that the Job of a Model waits in its queue, and that the app which needs the Model waits with it."""
    team, client = scene.team, scene.plane.client
    team.specs["qwen"] = changed(team.specs["qwen"], placement={"queue": "batch"})
    with queues_full(client):
        scene.begin()
        wait_until(lambda: any(job["spec"].get("suspend") for job in client.objects(JOB, team.space)), "queued", 60)
        scene.wait("chat", partial(says, text="dependency"), "waiting")
        assert not is_true(scene.object("qwen"), "Ready")
        assert client.find(DEPLOYMENT, "chat", team.space) is None
    # What Kueue does when there is quota.
    (job,) = client.objects(JOB, team.space)
    client.patch(JOB, job["metadata"]["name"], team.space, {"spec": {"suspend": False}})


def says(obj: Object, text: str) -> bool:
    """Whether a condition's message contains a text."""
    return any(text in entry["message"] for entry in obj.get("status", {}).get("conditions", []))


def attempts(kustomization: Object, commit: str) -> bool:
    """Whether a Kustomization has applied a commit and waits for its health."""
    status = kustomization["status"]
    return commit in status.get("lastAttemptedRevision", "") and says(kustomization, "health check")


def applied(kustomization: Object, commit: str) -> bool:
    """Whether a Kustomization is ready at a commit."""
    return commit in kustomization["status"].get("lastAppliedRevision", "") and is_ready(kustomization)


@pytest.mark.promise("Ephemeral GPU", "Reconciliation ensures the desired state")
@pytest.mark.ran("HelmRelease", by="helm-controller")
def test_a_tenants_charts_under_lockdown_upgrade_alone_fail_without_rollback_and_correct_drift(
    plane: Plane, locked_down: Flux, tree: Callable[..., Tree]
) -> None:
    scene = tree(locked_down, "chart", tenant(timeout="2m"))
    team, client = scene.team, plane.client
    scene.begin()
    scene.wait_ready()
    assert (
        plane.client.get(DEPLOYMENT, "chat", team.space)["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    )

    # One changed spec is one upgrade; the other release does not notice the commit.
    others = versions(scene.object("qwen"))
    team.specs["chat"] = changed(CHAT, contextLength=4096)
    scene.publish()
    # On a busy machine the first attempt may fail, and Flux tries again.
    scene.wait("chat", lambda release: is_ready(release) and versions(release)[:1] >= [2], "upgraded")
    assert "--max-model-len=4096" in arguments(plane, team)
    assert versions(scene.object("qwen")) == others == [1]

    # Drift is corrected.
    client.delete(SERVICE, "chat", team.space)
    client.patch(DEPLOYMENT, "chat", team.space, {"spec": {"replicas": 3}})
    scene.flux.fetch(HELM_RELEASE, team.name(team.space, "chat"), scene.home)
    client.wait(SERVICE, "chat", team.space, bool, "there again", 60)
    client.wait(DEPLOYMENT, "chat", team.space, lambda obj: obj["spec"]["replicas"] == 1, "one again", 60)

    # A release that fails stays as it is for inspection, and the next commit upgrades it.
    rule = set_course(client, team.space, Course(state="unready"))
    team.gitops["flux"]["timeout"] = "20s"
    team.specs["chat"] = changed(CHAT, contextLength=1024)
    scene.publish()
    scene.wait("chat", partial(says, text="failed"), "failed", 120)
    assert "--max-model-len=1024" in arguments(plane, team)
    end_course(client, rule)
    team.gitops["flux"]["timeout"] = "2m"
    team.specs["chat"] = changed(CHAT, contextLength=2048)
    scene.publish()
    scene.wait("chat", is_ready, "ready again")
    assert "--max-model-len=2048" in arguments(plane, team)

    # A removed spec is uninstalled.
    del team.specs["chat"]
    scene.publish()
    client.wait_gone(HELM_RELEASE, team.name(team.space, "chat"), scene.home)
    assert client.objects(DEPLOYMENT, team.space) == []
    scene.remove()


def arguments(plane: Plane, team: Team) -> list[str]:
    """The arguments of the server."""
    pod = plane.client.get(DEPLOYMENT, "chat", team.space)["spec"]["template"]["spec"]
    found: list[str] = pod["containers"][0]["args"]
    return found


@pytest.mark.ran("HelmRelease", by="helm-controller")
@pytest.mark.ran("OCIRepository", by="source-controller")
def test_a_tenant_under_lockdown_takes_tree_and_charts_from_a_registry(
    plane: Plane,
    locked_down: Flux,
    registry: LocalRegistry,
    tree: Callable[..., Tree],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where, artifact = f"oci://{registry.host}/tenant/charts", f"oci://{registry.host}/tenant/tree"
    private, public = write_keys(tmp_path / "keys")
    monkeypatch.setenv("KAIGEN_SIGN_KEY", str(private))
    verified = tenant(oci=artifact, secret=REGISTRY_SECRET, verifySecret=KEYS)
    settings = {**verified, "charts": where}
    scene = tree(locked_down, "chart", settings, charts=where, manifests=artifact, versionSuffix=True)
    scene.public_key = public
    begin_with_full_queue(scene)
    sources = plane.client.objects(OCI_REPOSITORY, scene.home)
    assert len(sources) == 3
    # The chart that waits for the Model is fetched at any time after its source was created.
    for source in sources:
        name, is_verified = source["metadata"]["name"], partial(is_true, condition="SourceVerified")
        plane.client.wait(OCI_REPOSITORY, name, scene.home, is_verified, "verified", 60)
    check_upgrade(plane, scene)


@pytest.mark.ran("OCIRepository", by="source-controller")
def test_flux_and_kaigen_verify_accept_only_what_the_key_signed(
    flux: Flux, registry: LocalRegistry, tree: Callable[..., Tree], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = f"signed/{flux.namespace}"
    artifact = f"oci://{registry.host}/{repository}"
    ours, theirs = (write_keys(tmp_path / "keys", name) for name in ("ours", "theirs"))
    settings = {"flux": {"oci": artifact, "secret": REGISTRY_SECRET, "verifySecret": KEYS}}
    scene = tree(flux, "manifests", settings, manifests=artifact)
    client, team = scene.plane.client, scene.team
    client.apply(registry.secret(REGISTRY_SECRET, flux.namespace))
    client.apply(keys_secret(ours[1], flux.namespace))
    place = Registry(parse_reference(artifact, tag=False))

    def published(length: int, key: Path | None) -> bytes:
        """Return the manifest of what is published with a key."""
        team.specs["chat"] = changed(CHAT, contextLength=length)
        monkeypatch.delenv("KAIGEN_SIGN_KEY", raising=False)
        if key:
            monkeypatch.setenv("KAIGEN_SIGN_KEY", str(key))
        scene.publisher.publish()
        manifest = place.manifest("latest")
        assert manifest is not None
        return manifest

    cases = {
        "unsigned": published(1024, None),
        "foreign": published(1025, theirs[0]),
        "signed": published(1026, ours[0]),
    }
    cases["tampered"] = cases["signed"].replace(b"opencontainers.image.created", b"opencontainers.image.changed")
    bundle = bundle_of(place, cases["signed"])
    attach(place, descriptor(MANIFEST, cases["tampered"]), [(BUNDLE, bundle)])
    place.push_manifest("tampered", cases["tampered"], MANIFEST)
    bootstrap = team.objects(team.files(), "_flux/bootstrap")
    (source,) = [each for each in bootstrap if each["kind"] == "OCIRepository"]
    for case, manifest in cases.items():
        spec = {**source["spec"], "ref": {"digest": digest_of(manifest)}, "interval": "1h"}
        client.apply({**source, "metadata": {**source["metadata"], "name": case}, "spec": spec})
    found = client.wait(OCI_REPOSITORY, "signed", flux.namespace, partial(is_true, condition="Ready"), "ready", 60)
    assert is_true(found, "SourceVerified")
    for case in cases.keys() - {"signed"}:
        client.wait(OCI_REPOSITORY, case, flux.namespace, is_refused, "refused", 60)
    for case, manifest in cases.items():
        status = run(["verify", "--key", str(ours[1]), f"{artifact}@{digest_of(manifest)}"])
        assert status == (0 if case == "signed" else 1), case

    # What docs/supply-chain.md says about Flux and cosign's older format.
    replay(place, digest_of(cases["unsigned"]), bundle)
    flux.fetch(OCI_REPOSITORY, "unsigned")
    client.wait(OCI_REPOSITORY, "unsigned", flux.namespace, partial(is_true, condition="SourceVerified"), "fooled", 60)
    assert run(["verify", "--key", str(ours[1]), f"{artifact}@{digest_of(cases['unsigned'])}"]) == 1
    for case in cases:
        client.delete(OCI_REPOSITORY, case, flux.namespace)


def replay(place: Registry, digest: str, bundle: bytes) -> None:
    """Attach the signature of one artifact to another one, in the format of cosign 2."""
    envelope = json.loads(bundle)["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    content = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    for each in (b"{}", content):
        place.push_blob(each)
    layer = descriptor("application/vnd.dev.cosign.simplesigning.v1+json", content)
    layer["annotations"] = {"dev.cosignproject.cosign/signature": envelope["signatures"][0]["sig"]}
    config = descriptor("application/vnd.oci.image.config.v1+json", b"{}")
    manifest = canonical_json({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]})
    place.push_manifest(f"{digest.replace(':', '-')}.sig", manifest, MANIFEST)


def is_refused(source: Object) -> bool:
    """Whether Flux found no signature of an artifact, and has no content of it."""
    conditions = {each["type"]: each for each in source.get("status", {}).get("conditions", [])}
    verified = conditions.get("SourceVerified", {})
    assert "artifact" not in source.get("status", {})
    return (verified.get("status"), verified.get("reason")) == ("False", "VerificationError")


def bundle_of(place: Registry, manifest: bytes) -> bytes:
    """Return the bundle with the signature of a manifest."""
    (entry,) = [each for each in place.referrers(digest_of(manifest)) if each["artifactType"] == BUNDLE]
    (layer,) = json.loads(place.manifest(entry["digest"]) or b"")["layers"]
    return place.whole_blob(layer["digest"])


def check_upgrade(plane: Plane, scene: Tree) -> None:
    """See that releases are installed, and that a changed spec upgrades its own release and no other."""
    team = scene.team
    scene.wait_ready()
    # An event of the source may cancel the wait of an installation, which is then an upgrade.
    others, (last, *_) = versions(scene.object("qwen")), versions(scene.object("chat"))
    team.specs["chat"] = changed(CHAT, contextLength=4096)
    scene.publish()
    scene.wait("chat", lambda release: is_ready(release) and versions(release)[0] == last + 1, "upgraded")
    assert "--max-model-len=4096" in arguments(plane, team)
    assert versions(scene.object("qwen")) == others
    scene.remove()
