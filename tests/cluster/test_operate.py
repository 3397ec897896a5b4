"""The commands of docs/operate do what the pages say, on a control plane that Argo CD syncs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cluster.apps import CLAIM, JOB, POD, add_gpu_node, demo_specs, spec
from tests.cluster.argocd import APPLICATION, ArgoCD
from tests.cluster.client import Object, is_true
from tests.cluster.git import Repository
from tests.cluster.live import call
from tests.cluster.operate import FOLDER, ROOT, commands
from tests.cluster.plane import Plane
from tests.cluster.processes import wait_until
from tests.cluster.team import PROJECT, remove_applications, wait_application

DEPLOYMENT = "apps/v1/Deployment"
EXTERNAL_SECRET = "external-secrets.io/v1/ExternalSecret"
ENVIRONMENT = "prod"
CHAT = spec(
    "Topology",
    "chat",
    engine="transformers",
    model="qwen",
    auth={"secret": "chat-key"},
    resources={"memory": "4Gi"},
)
RESEARCH = spec("Notebook", "research", models=["qwen"], storage={"size": "1Gi"})
PLANNED = spec("Topology", "chat", preset="phi-4", resources={"gpuType": "A100-80GB"})
"""A spec for `kaigen plan`, in a folder of its own: no cluster of the tests runs it."""


@dataclass(frozen=True)
class Elsewhere:
    """A command that does not run here.

    Attributes:
        why: the reason.
        test: a file with a test that runs it; empty for none.
    """

    why: str
    test: str = ""


@dataclass(frozen=True)
class Run:
    """A command that runs here.

    Attributes:
        words: the command with names of the test in place of the page's; the page's own when empty.
        text: what it prints.
        codes: exit codes that the page allows.
        folder: where it runs, relative to the repository.
    """

    words: str = ""
    text: str = ""
    codes: tuple[int, ...] = (0,)
    folder: str = "."


NO_PROGRAM = Elsewhere("the program is not in the tests")
ABOUT_PYTHON = Elsewhere("removes kaigen from the machine")
NAMESPACED = "{words} -n {space}"
STATUS = Run(text="chat", codes=(0, 1))
SECRETS = Run(text="chat-key")
CREATING = Run(text="kubectl create secret")
REQUIREMENTS = Run(text="nvidia.com/gpu")
CHECKED = Run(text="StorageClass", codes=(0, 1))
DOCTOR = Run(text="needed at specs/chat.yaml", codes=(1,))
PLAN = Run("kaigen plan chat", "phi-4 on 1 × A100-80GB", folder="../plan")
GPUS = Run("kaigen gpus show L4", "L4")
DIFF = Run(text="No changes")
RENDER = Run(text="apps")
PUBLISH = Elsewhere("needs a remote", "tests/cluster/test_flux.py")
LOGS = Elsewhere("simulated pods print nothing", "tests/cluster/test_live_jobs.py")
IMAGES = Elsewhere("needs a registry", "tests/cluster/test_images.py")
RENAME = Run("kaigen rename model qwen small --dry-run", "small")

CASES: Mapping[str, Mapping[str, Run | Elsewhere]] = {
    "capacity.md": {
        "kaigen requirements": REQUIREMENTS,
        "kaigen requirements --check": CHECKED,
        "kaigen doctor": DOCTOR,
        "kaigen plan chat": PLAN,
        "kaigen gpus show L4": GPUS,
        "kaigen plan": PLAN,
        "kaigen lock": Elsewhere("asks the Hub", "tests/unit/lock/test_lock.py"),
        "kaigen status": STATUS,
        "kaigen diff": DIFF,
    },
    "change.md": {
        "kaigen diff": DIFF,
        "kaigen rename": RENAME,
        "kaigen rename model qwen small": RENAME,
        "kaigen plan chat": PLAN,
        "kubectl get storageclass": Run(text="ALLOWVOLUMEEXPANSION"),
        "kaigen status": STATUS,
        "kaigen secrets -o kubectl": CREATING,
    },
    "monitor.md": {
        "kaigen status": STATUS,
        "kaigen job logs": LOGS,
        "kaigen status --watch": Run(text="chat"),
        "kaigen status --env prod": STATUS,
    },
    "recover.md": {
        "git revert COMMIT": Run("git revert --no-edit HEAD"),
        "kaigen render": RENDER,
        "kaigen diff --base HEAD~1": Run(text="MODE"),
        "kubectl rollout undo": Run("kubectl rollout undo deployment/chat -n {space}", "rolled back"),
        "flux suspend kustomization NAME": NO_PROGRAM,
        "argocd app set NAME --sync-policy none": NO_PROGRAM,
        "kaigen publish": PUBLISH,
        "kaigen mirror --list": Run(text="ghcr.io/kaigen-dev"),
        "kaigen requirements --env prod": REQUIREMENTS,
        "kaigen doctor --env prod": DOCTOR,
        "kaigen secrets --env prod -o kubectl": CREATING,
        "kaigen requirements": REQUIREMENTS,
        "kubectl apply -k rendered/prod/_argocd/bootstrap": Run(text="application.argoproj.io/team-prod-root"),
        "kaigen status --env prod --watch": Run(text="chat"),
        "git log": Run("git log --oneline -- rendered", "Change"),
        "kubectl delete job -l app.kubernetes.io/instance=MODEL -n NAMESPACE": Run(
            "kubectl delete job -l app.kubernetes.io/instance=qwen -n {space}", "deleted"
        ),
    },
    "rotate.md": {
        "kaigen secrets": SECRETS,
        "kubectl rollout restart statefulset/NAME": Run(
            "kubectl rollout restart statefulset/research -n {space}", "restarted"
        ),
        "kaigen publish --sign-key": Elsewhere("needs a registry", "tests/cluster/test_flux.py"),
        "kubectl exec POD -- cat /etc/kaigen/auth/api-key": Elsewhere(
            "simulated pods have no files", "tests/cluster/test_chat.py"
        ),
        "kubectl annotate pod POD acme.example/keys=2 --overwrite": Run(
            "kubectl annotate pod {pod} acme.example/keys=2 --overwrite -n {space}", "annotated"
        ),
        "kubectl annotate externalsecret NAME force-sync=$(date +%s) --overwrite": Run(
            "kubectl annotate externalsecret keys force-sync=1 --overwrite -n {space}", "annotated"
        ),
        "kubectl get externalsecret NAME": Run("kubectl get externalsecret keys -n {space}", "keys"),
        "kaigen secrets -o kubectl": CREATING,
        "sops specs/FILE.yaml": Elsewhere("opens an editor", "tests/cluster/test_sops.py"),
        "kaigen verify": Elsewhere("needs a registry", "tests/cluster/test_flux.py"),
        "kaigen verify … --key NEW.pub": Elsewhere("needs a registry", "tests/cluster/test_flux.py"),
    },
    "take-over.md": {
        "kubectl get deployment web -o yaml": Run("kubectl get deployment chat -o yaml -n {space}", "kind: Deployment"),
        "kaigen check FILE": Run("kaigen check rendered/prod/{space}/qwen/manifests", "no problems"),
        "kaigen secrets": SECRETS,
    },
    "troubleshoot.md": {
        "kaigen status -o wide": STATUS,
        "kaigen doctor": DOCTOR,
        "kaigen job logs finetune": LOGS,
        "kaigen explain KG0302": Run(text="KG0302"),
        "kaigen status": STATUS,
        "kaigen requirements": REQUIREMENTS,
        "kaigen plan APP": PLAN,
        "kaigen gpus show GPU": GPUS,
        "kaigen images check": IMAGES,
        "kaigen images push": IMAGES,
        "kaigen secrets -o kubectl": CREATING,
        "kaigen secrets": SECRETS,
        "kaigen explain KG0520": Run(text="KG0520"),
        "kaigen requirements --check": CHECKED,
        "kaigen job get JOB": Run("kaigen job get finetune -n {space}", "finetune"),
        "kaigen diff": DIFF,
        "kaigen publish": PUBLISH,
        "kaigen render": RENDER,
    },
    "uninstall.md": {
        "kubectl get pvc -A -l app.kubernetes.io/managed-by=kaigen": Run(text="qwen"),
        "kubectl delete -k rendered/prod/_argocd/bootstrap": Run(text="deleted"),
        "kubectl delete -k rendered/prod/_flux/apps": Elsewhere(
            "the environment is Argo CD's", "tests/cluster/test_flux.py"
        ),
        "helm uninstall kaigen-reaper": Run(text="uninstalled"),
        "kaigen policies | kubectl delete -f -": Run(text="deleted"),
        "pip uninstall kaigen": ABOUT_PYTHON,
        "pipx uninstall kaigen": ABOUT_PYTHON,
        "uv tool uninstall kaigen": ABOUT_PYTHON,
    },
}
ORDER = ("capacity.md", "change.md", "monitor.md", "rotate.md", "take-over.md", "troubleshoot.md")
"""Pages whose commands change nothing that matters to the next one."""


class Site:
    """A repository with one environment, which Argo CD syncs."""

    def __init__(self, plane: Plane, argocd: ArgoCD, folder: Path) -> None:
        self.plane, self.argocd = plane, argocd
        self.space = f"operate-{uuid.uuid4().hex[:6]}"
        self.repository = Repository(folder / "repository")
        self.folder = self.repository.folder
        self.specs = {**demo_specs(), "chat": CHAT, "research": RESEARCH}

    def write(self) -> None:
        """Write the specs and kaigen.yaml."""
        config = {
            "apiVersion": "kaigen.dev/v1alpha1",
            "kind": "Config",
            "profile": "k3s",
            "gitops": {"repository": self.repository.url, "project": "team", "argocd": {"namespace": "argocd"}},
            "environments": {ENVIRONMENT: {"namespace": self.space}},
        }
        head = {key: config[key] for key in ("apiVersion", "kind")}
        self._write(self.folder, config, self.specs)
        self._write(self.folder / "../plan", {**head, "namespace": self.space}, {"chat": PLANNED})

    def _write(self, folder: Path, config: Object, specs: Mapping[str, Object]) -> None:
        (folder / "specs").mkdir(parents=True, exist_ok=True)
        for name, body in specs.items():
            (folder / f"specs/{name}.yaml").write_text(yaml.safe_dump(body))
        (folder / "kaigen.yaml").write_text(yaml.safe_dump(config))

    def commit(self) -> str:
        """Commit what is in the folder; return the commit."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".git" not in path.parts]
        return self.repository.commit({str(path.relative_to(self.folder)): path.read_text() for path in files})

    def change(self) -> str:
        """Write, render and commit; return the commit."""
        self.write()
        call(self.plane, "kaigen", "render", folder=self.folder)
        return self.commit()

    def wait(self, revision: str) -> None:
        """Wait until every app has a commit and is healthy."""
        self.argocd.refresh("team-prod-root")
        for name in self.specs:
            wait_application(self.plane, self.argocd, f"{ENVIRONMENT}.{self.space}.{name}", revision)

    def run(self, words: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        """Run a command in a folder."""
        program, *rest = words.split()
        if program == "kaigen":
            path = str(Path(sys.executable).parent / "kaigen")
        else:
            path = "git" if program == "git" else str(self.plane.program(program))
        identity = {f"GIT_{role}_{key}": "kaigen" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
        return subprocess.run(
            self.plane.network.command([path, *rest]),
            cwd=self.folder / folder,
            env=os.environ | identity | {"KUBECONFIG": str(self.plane.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def check(self, command: str, case: Run, **names: str) -> str:
        """Run a command of a page, and return what it prints.

        Raises:
            AssertionError: it ends with another exit code, or prints something else.
        """
        words = (case.words or command).format(space=self.space, **names)
        done = self.run(words, case.folder)
        printed = done.stdout + done.stderr
        assert done.returncode in case.codes, f"{words}: {done.returncode}\n{printed}"
        assert case.text in printed, f"{words}: {case.text!r} is not in\n{printed}"
        return printed

    def pod(self, app: str) -> str:
        """Return the name of a pod of an app."""
        return str(self.plane.client.objects(POD, self.space, f"app.kubernetes.io/name={app}")[0]["metadata"]["name"])


@pytest.fixture(scope="module")
def site(plane: Plane, argocd: ArgoCD, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    add_gpu_node(plane)
    found = Site(plane, argocd, tmp_path_factory.mktemp("site"))
    plane.make_namespace(found.space)
    secret = {"apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret"}
    source = {"secretStoreRef": {"name": "vault", "kind": "ClusterSecretStore"}, "target": {"name": "keys"}}
    data = [{"secretKey": "token", "remoteRef": {"key": "token"}}]
    plane.client.create({**secret, "metadata": {"name": "keys"}, "spec": {**source, "data": data}}, found.space)
    revision = found.change()
    # Step 4 of "Rebuild an empty cluster", as the page prints it.
    found.check(*_case("recover.md", "kubectl apply -k rendered/prod/_argocd/bootstrap"))
    config = found.folder / "rendered/prod/_argocd/argocd-cm.yaml"
    plane.client.apply(yaml.safe_load(config.read_text()))
    found.wait(revision)
    yield found
    remove_applications(plane, argocd, ENVIRONMENT)
    plane.client.delete("v1/Namespace", found.space)


def _case(page: str, command: str) -> tuple[str, Run]:
    case = CASES[page][command]
    assert isinstance(case, Run)
    return command, case


@pytest.mark.parametrize("page", sorted(path.name for path in FOLDER.glob("*.md")))
def test_every_command_of_a_page_has_a_case(page: str) -> None:
    assert list(commands(page)) != []
    assert set(commands(page)) == CASES[page].keys()


def test_what_does_not_run_here_runs_in_another_test() -> None:
    for command, case in [item for page in CASES.values() for item in page.items()]:
        if isinstance(case, Elsewhere) and case.test:
            text = (ROOT / case.test).read_text()
            words = [word for word in command.split()[1:3] if word.isalpha()]
            assert words == [] or any(word in text for word in words), (command, case.test)


@pytest.mark.parametrize("page", ORDER)
def test_the_commands_of_a_page_work(site: Site, page: str) -> None:
    for command, case in CASES[page].items():
        if isinstance(case, Run):
            site.check(command, case, pod=site.pod("chat"))


def test_a_rollback_is_a_revert_and_not_an_undone_rollout(site: Site) -> None:
    client, run = site.plane.client, partial(_checked, site, "recover.md")
    site.specs["chat"] = {**CHAT, "spec": {**CHAT["spec"], "env": {"MODE": "fast"}}}
    site.wait(site.change())

    def has_mode(deployment: Object) -> bool:
        return "MODE" in str(deployment["spec"]["template"])

    client.wait(DEPLOYMENT, "chat", site.space, has_mode, "changed")
    before = client.get(DEPLOYMENT, "chat", site.space)["metadata"]["generation"]
    run("kubectl rollout undo")
    undone = partial(_is_newer, generation=before + 1)
    client.wait(DEPLOYMENT, "chat", site.space, lambda found: undone(found) and has_mode(found), "synced back")

    run("git log")
    run("git revert COMMIT")
    run("kaigen render")
    run("kaigen diff --base HEAD~1")
    site.specs["chat"] = CHAT
    site.wait(site.commit())
    client.wait(DEPLOYMENT, "chat", site.space, lambda found: not has_mode(found), "rolled back")


def test_a_deleted_volume_is_filled_again_after_its_job_is_deleted(site: Site) -> None:
    client, space = site.plane.client, site.space
    label = "app.kubernetes.io/instance=qwen"
    ((job, uid),) = [(each["metadata"]["name"], each["metadata"]["uid"]) for each in client.objects(JOB, space, label)]
    _checked(site, "recover.md", "kubectl delete job -l app.kubernetes.io/instance=MODEL -n NAMESPACE")

    def again(found: Object) -> bool:
        return found["metadata"]["uid"] != uid and is_true(found, "Complete")

    wait_until(lambda: (found := client.find(JOB, job, space)) is not None and again(found), f"{job} ran again")


def test_the_other_commands_of_a_rebuilt_cluster_work(site: Site) -> None:
    done = {"git revert COMMIT", "kubectl rollout undo", "git log", "kaigen render", "kaigen diff --base HEAD~1"}
    for command, case in CASES["recover.md"].items():
        if isinstance(case, Run) and command not in done and "delete job" not in command:
            site.check(command, case)


def test_an_environment_is_uninstalled_but_for_its_data(site: Site, tmp_path: Path) -> None:
    client, run = site.plane.client, partial(_checked, site, "uninstall.md")
    claims = {each["metadata"]["name"] for each in client.objects(CLAIM, site.space)}
    assert claims
    printed = run("kubectl get pvc -A -l app.kubernetes.io/managed-by=kaigen")
    assert all(name in printed for name in claims)

    chart = ["--namespace", "kaigen-reaper", "--create-namespace"]
    site.plane.run("helm", "install", "kaigen-reaper", str(ROOT / "charts/kaigen-reaper"), *chart)
    uninstall = Run("helm uninstall kaigen-reaper -n kaigen-reaper", "uninstalled")
    site.check("helm uninstall kaigen-reaper", uninstall)

    policies = site.folder.parent / "tenants"
    shutil.copytree(site.folder / "specs", policies / "specs")
    config = {"namespace": "team-a", "tenants": {"a": {"folders": ["specs"], "namespaces": ["team-a"]}}}
    head = {"apiVersion": "kaigen.dev/v1alpha1", "kind": "Config"}
    (policies / "kaigen.yaml").write_text(yaml.safe_dump({**head, **config}))
    emitted = call(site.plane, "kaigen", "policies", folder=policies)
    assert "ValidatingAdmissionPolicy" in emitted
    site.plane.run("kubectl", "apply", "--filename", "-", stdin=emitted)
    assert "deleted" in site.plane.run("kubectl", "delete", "-f", "-", stdin=emitted).stdout

    run("kubectl delete -k rendered/prod/_argocd/bootstrap")
    apps = site.folder / "rendered/prod/_argocd/apps"
    found = [yaml.safe_load(path.read_text()) for path in apps.glob("*.yaml")]
    names = [each["metadata"]["name"] for each in found if each["kind"] == "Application"]
    assert names
    site.plane.run("kubectl", "delete", "application", *names, "--namespace", "argocd", "--timeout=240s")
    for name in names:
        assert client.find(APPLICATION, name, "argocd") is None
    projects = [each["metadata"]["name"] for each in client.objects(PROJECT, "argocd") if "team" in str(each)]
    site.plane.run("kubectl", "delete", "appproject", *projects, "--namespace", "argocd", "--ignore-not-found")
    assert client.objects(DEPLOYMENT, site.space) == []
    left = {each["metadata"]["name"]: each for each in client.objects(CLAIM, site.space)}
    assert left
    assert all(each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep" for each in left.values())


def _checked(site: Site, page: str, command: str) -> str:
    return site.check(*_case(page, command))


def _is_newer(found: Object, generation: int) -> bool:
    return bool(found["metadata"]["generation"] > generation)
