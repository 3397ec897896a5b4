"""Hostile pull requests against the scripts of the GitHub Action, in a real checkout.

Whatever a pull request contains, no step runs its code, writes outside of the checkout, prints a token or a command
for the runner, or puts text of the author at the margin of kaigen's comment. Either a check fails, or the comment
shows what would be deployed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from msgspec import Struct

from tests.pipelines.checkout import Checkout, plant_modules
from tests.pipelines.forge import TOKEN, Forge, running
from tests.pipelines.test_github_action import Job, obeyed
from tests.unit.extend.repository import HEAD, KIND, SCHEMA, SPEC

BELOW = "platform/ai"
"""Folder of kaigen.yaml in the repository."""
APPROVAL = "APPROVED by the platform team"
BREAKOUT = f"x\n```\n</details>\n# {APPROVAL}\n::set-output name=changed::false\n"
STEPS = ("kaigen validate", "kaigen validate, for code scanning", "kaigen render --check", "kaigen diff")
JOB = "specs/finetune.yaml"
MANIFESTS = "rendered/ml/finetune/manifests"
CHART = "rendered/ml/finetune/chart"
ADMIN = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everything}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: ml}]
"""
INDEX = "# kaigen index 1: the files in this directory that kaigen wrote and may remove.\n"
RUN = "touch $RUNNER_TEMP/ran"


class Attack(Struct, frozen=True):
    """A hostile pull request.

    Attributes:
        change: makes it in a checkout.
        refused: text of the failed check; None where the checks pass.
        shown: text of the comment; None where nothing is deployed that differs.
        render: commit what kaigen renders, as an author does who wants the checks to pass.
        base: name of the branch to compare with.
        merge: check out the merge with a base that has moved on, as GitHub does for a pull request.
    """

    change: Callable[[Checkout], None]
    refused: str | None = None
    shown: str | None = None
    render: bool = True
    base: str = "main"
    merge: bool = False


def write(files: dict[str, str]) -> Callable[[Checkout], None]:
    """Return a change that writes files below the folder of kaigen.yaml."""

    def change(checkout: Checkout) -> None:
        for name, text in files.items():
            path = checkout.here / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", "surrogateescape"))

    return change


def link(name: str, target: str) -> Callable[[Checkout], None]:
    """Return a change that puts a symbolic link in the place of a file or a folder."""

    def change(checkout: Checkout) -> None:
        path = checkout.here / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    return change


def configure(text: str, **files: str) -> Callable[[Checkout], None]:
    """Return a change that appends to kaigen.yaml and writes files; `__` in a name is a slash, `_yaml` its ending."""

    def change(checkout: Checkout) -> None:
        with (checkout.here / "kaigen.yaml").open("a", encoding="utf-8") as file:
            file.write(text)
        write({f"{name.replace('__', '/')}.yaml": body for name, body in files.items()})(checkout)

    return change


def spec(old: str, new: str) -> Callable[[Checkout], None]:
    """Return a change of the Job's spec."""
    return lambda checkout: checkout.edit(JOB, old, new)


def also(*changes: Callable[[Checkout], None]) -> Callable[[Checkout], None]:
    """Return a change made of several."""

    def change(checkout: Checkout) -> None:
        for each in changes:
            each(checkout)

    return change


def listed_foreign_file(checkout: Checkout) -> None:
    """Add an object to the output, and to the index of what kaigen wrote."""
    write({f"{MANIFESTS}/admin.yaml": ADMIN})(checkout)
    index = checkout.here / "rendered/.kaigen-index"
    lines = index.read_text().splitlines()
    (entry,) = [line for line in lines if line.endswith(f"{MANIFESTS}/job.yaml".removeprefix("rendered/"))]
    index.write_text("\n".join([*lines, entry.replace("job.yaml", "admin.yaml")]) + "\n")


def submodule(path: str, *, mapped: bool = True) -> Callable[[Checkout], None]:
    """Return a change that adds a submodule, which a checkout has as an empty folder, below that of kaigen.yaml."""

    def change(checkout: Checkout) -> None:
        if mapped:
            text = f'[submodule "x"]\n\tpath = {BELOW}/{path}\n\turl = https://evil.example/x.git\n'
            (checkout.top / ".gitmodules").write_text(text)
        (checkout.here / path).mkdir(parents=True)
        checkout.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{BELOW}/{path}")

    return change


def huge(path: str) -> Callable[[Checkout], None]:
    """Return a change that adds a file of 40 MB."""
    return write({path: "x: y\n" * 8_000_000})


def copied_output(checkout: Checkout) -> None:
    """Copy the output to where a cache could be."""
    shutil.copytree(checkout.here / "rendered", checkout.here / ".cache" / "kaigen")


def annotated(text: str) -> Callable[[Checkout], None]:
    """Return a change that annotates the Job."""
    quoted = yaml.safe_dump({"note": text}, default_flow_style=True, width=10_000).strip()
    return spec("  name: finetune\n", f"  name: finetune\n  annotations: {quoted}\n")


BARE = {
    "HEAD": "ref: refs/heads/main\n",
    "objects/keep": "",
    "refs/remotes/origin/main": f"{'1' * 40}\n",
    "config": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n[core]\n"
    f'\tfsmonitor = "{RUN};"\n\tsshCommand = "{RUN};"\n\talternateRefsCommand = "{RUN};"\n'
    f'[remote "origin"]\n\turl = .\n\tpromisor = true\n\tuploadpack = "{RUN};"\n',
}
"""A bare repository in the folder in which the steps run. Git fetches missing objects from a promisor remote."""

MINE = """\
apiVersion: kaigen.dev/v1alpha1
kind: Job
metadata: {name: mine, namespace: kube-system}
spec:
  image: evil.example/x:1
  command: [x]
  resources: {memory: 1Gi}
"""
TEMPLATE = {
    "kinds/thing/kind.yaml": KIND,
    "kinds/thing/schema.yaml": SCHEMA,
    "kinds/thing/templates/object.yaml.jinja": HEAD
    + "  a: {{ ''.__class__.__mro__[1].__subclasses__() }}\n"
    + "  b: {{ cycler.__init__.__globals__.os.popen('id').read() }}\n",
    "specs/thing.yaml": SPEC,
}

ATTACKS = {
    "modules of Python next to kaigen.yaml": Attack(
        also(lambda checkout: plant_modules(checkout.here), spec("24Gi", "25Gi")), shown="25Gi"
    ),
    "modules of Python at the top": Attack(
        also(lambda checkout: plant_modules(checkout.top), spec("24Gi", "25Gi")), shown="25Gi"
    ),
    "a bare repository in the working folder": Attack(
        also(write(BARE), spec("24Gi", "25Gi")), refused="safe.bareRepository"
    ),
    "a bare repository, and a base that must be fetched": Attack(
        also(write(BARE), spec("24Gi", "25Gi")), refused="safe.bareRepository", base="absent"
    ),
    "a base with the syntax of a shell": Attack(
        spec("24Gi", "25Gi"), refused="fatal", base=f"main$({RUN})`{RUN}`"
    ),
    "a diff driver in .gitattributes": Attack(
        also(write({".gitattributes": "* diff=evil -text\nrendered/** binary\n"}), spec("24Gi", "25Gi")),
        shown="25Gi",
    ),
    "a filter in .gitattributes": Attack(
        also(write({".gitattributes": "* filter=evil\n"}), spec("24Gi", "25Gi")), refused="KG0608"
    ),
    "an encoding in .gitattributes at the top": Attack(
        write({"../../.gitattributes": "**/job.yaml working-tree-encoding=ISO-8859-1\n"}),
        refused="KG0608",
        render=False,
    ),
    "a submodule that runs a command": Attack(
        also(
            write({"../../.gitmodules": f'[submodule "x"]\n\tpath = x\n\turl = "ext::sh -c {RUN}"\n'}),
            spec("24Gi", "25Gi"),
        ),
        shown="25Gi",
    ),
    "hooks of Git and settings of tools": Attack(
        also(
            write(
                {
                    ".githooks/post-checkout": f"#!/bin/sh\n{RUN}\n",
                    ".pre-commit-config.yaml": f"repos: [{{repo: local, hooks: [{{entry: {RUN!r}}}]}}]\n",
                    "pyproject.toml": "[project.entry-points.'kaigen.kinds']\nevil = 'evil:KINDS'\n",
                    "conftest.py": f"import os\nos.system({RUN!r})\n",
                    "evil.pth": f"import os; os.system({RUN!r})\n",
                    "setup.py": f"import os\nos.system({RUN!r})\n",
                }
            ),
            spec("24Gi", "25Gi"),
        ),
        shown="25Gi",
    ),
    "a tag of YAML that makes a Python object": Attack(
        write({"specs/evil.yaml": f"!!python/object/apply:os.system [{RUN!r}]\n"}), refused="KG01", render=False
    ),
    "a template that leaves its sandbox": Attack(
        also(configure("kinds: [kinds]\n"), write(TEMPLATE)), refused="KG10", render=False
    ),
    "a bomb of aliases": Attack(
        write(
            {
                "specs/evil.yaml": "a0: &a0 [x, x]\n"
                + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}, *a{i - 1}]\n" for i in range(1, 60))
            }
        ),
        refused="KG01",
        render=False,
    ),
    "a hundred thousand brackets": Attack(
        write({"specs/evil.yaml": "[" * 100_000}), refused="KG01", render=False
    ),
    "bytes that are not text": Attack(
        write({"specs/evil.yaml": "apiVersion: \udcff\udcfe\n"}), refused="KG01", render=False
    ),
    "a spec that is a link to a file of the machine": Attack(
        link("specs/evil.yaml", "/etc/passwd"), refused="KG", render=False
    ),
    "an output folder that is a link": Attack(
        also(spec("24Gi", "25Gi"), link("rendered", "../../../victim")), refused="KG0602", render=False
    ),
    "a link in the output": Attack(
        link(f"{MANIFESTS}/admin.yaml", "../../../../specs/qwen.yaml"), refused="KG0607", render=False
    ),
    "an object in the output": Attack(
        write({f"{MANIFESTS}/admin.yaml": ADMIN}), refused="KG0607", render=False
    ),
    "an object in the output, and in its index": Attack(listed_foreign_file, refused="stale", render=False),
    "a template in a chart": Attack(
        write({f"{CHART}/templates/admin.yaml": ADMIN}), refused="KG0607", render=False
    ),
    "an override of Argo CD": Attack(
        write({f"{MANIFESTS}/.argocd-source.yaml": "kustomize: {images: [evil]}\n"}), refused="KG0607", render=False
    ),
    "a kustomization that Flux would read": Attack(
        write({"rendered/kustomization.yaml": "resources: [https://evil.example/x]\n"}), refused="KG0607", render=False
    ),
    "a .sourceignore at the top, with which Flux leaves objects out": Attack(
        write({"../../.sourceignore": f"{BELOW}/rendered/ml/\n"}), refused="KG0607", render=False
    ),
    "an edited manifest": Attack(
        lambda checkout: checkout.edit(f"{MANIFESTS}/job.yaml", "example.com/tune:1", "evil.example/x:1"),
        refused="stale",
        render=False,
    ),
    "another output folder, and an edit in the old one": Attack(
        also(configure("output: new\n"), write({f"{MANIFESTS}/admin.yaml": ADMIN})), shown="rendered/"
    ),
    "an output folder in .git": Attack(configure("output: ../../.git/hooks\n"), refused="KG", render=False),
    "allowed files in the output": Attack(
        also(configure('allow: {files: ["**"]}\n'), write({f"{MANIFESTS}/admin.yaml": ADMIN})), shown="admin.yaml"
    ),
    "an app in kube-system": Attack(write({"specs/mine.yaml": MINE}), refused="KG0580", render=False),
    "an app in kube-system, with a grant": Attack(
        also(
            configure("allow: {namespaces: [kube-system]}\n"),
            write({"specs/mine.yaml": MINE}),
        ),
        shown="kube-system",
    ),
    "rights on the whole cluster": Attack(
        configure("passthrough: true\n", specs__admin=ADMIN), shown="cluster-admin"
    ),
    "a patch that makes pods privileged": Attack(
        configure(
            "patches: [{target: {app: finetune, kind: Job}, patch: {spec: {template: {spec: {hostPID: true}}}}}]\n"
        ),
        refused="KG0",
        render=False,
    ),
    "text that leaves its block in the comment": Attack(annotated(BREAKOUT), shown=APPROVAL),
    "commands for the runner in a value": Attack(
        annotated("::stop-commands::x\n::add-mask::y\n::set-env name=PATH::/evil\n"), shown="add-mask"
    ),
    "escape sequences of a terminal": Attack(annotated("a\x1b]0;evil\x07\x1b[2Jb"), shown="note"),
    "text from right to left": Attack(annotated("safe \u202egpj.exe"), shown="note"),
    "the name of a file with a command for the runner": Attack(
        write({"specs/x\n::set-output name=changed::false\n.yaml": "kind: [\n"}), refused="error", render=False
    ),
    "the name of a file with HTML": Attack(
        write({f"specs/<!-- kaigen diff --> <b>{APPROVAL}.yaml": "kind: [\n"}), refused="error", render=False
    ),
    "an image with the syntax of a shell": Attack(
        spec("example.com/tune:1", f"example.com/tune:$({RUN})"), refused="KG", render=False
    ),
    "weights from another server, with the team's token": Attack(
        lambda checkout: checkout.edit(
            "specs/qwen.yaml", "    huggingFace:\n", "    huggingFace:\n      endpoint: https://evil.example\n"
        ),
        shown="evil.example",
    ),
    "commands of the older form for the runner in a value": Attack(
        annotated("##[add-mask]y ##[set-output name=changed]false"), shown="add-mask"
    ),
    "commands of the older form in the name of a file": Attack(
        write({"specs/##[set-output name=changed]false.yaml": "kind: [a##[add-mask]b\n"}),
        refused="error",
        render=False,
    ),
    "commands for the runner in kaigen.yaml": Attack(
        configure('output: "##[add-mask]y"\ncatalog: "x\\n::add-mask::y"\n'), refused="KG02", render=False
    ),
    "a manifest that is a link to a file of the runner": Attack(
        also(spec("24Gi", "25Gi"), link(f"{MANIFESTS}/job.yaml", "../../../../../../../temp/env")),
        refused="KG06",
        render=False,
    ),
    "a spec that names files of the runner": Attack(
        also(annotated("$GITHUB_ENV"), spec("command: [tune, run]", 'command: ["sh", "-c", "echo >>$GITHUB_ENV"]')),
        shown="GITHUB_ENV",
    ),
    "a merge with a base that has moved on": Attack(spec("24Gi", "25Gi"), shown="25Gi", merge=True),
    "an edited manifest, in a merge": Attack(
        lambda checkout: checkout.edit(f"{MANIFESTS}/job.yaml", "example.com/tune:1", "evil.example/x:1"),
        refused="stale",
        render=False,
        merge=True,
    ),
    "a submodule in the output": Attack(submodule("rendered/ml/evil/manifests"), refused="KG0607", render=False),
    "a submodule in a chart": Attack(submodule(f"{CHART}/templates/x"), refused="KG0607", render=False),
    "a submodule without an entry in .gitmodules": Attack(
        submodule("rendered/ml/evil", mapped=False), refused="KG0607", render=False
    ),
    "a submodule among the specs": Attack(
        also(submodule("specs/evil"), spec("24Gi", "25Gi")), shown="25Gi"
    ),
    "a huge spec": Attack(huge("specs/evil.yaml"), refused="KG01", render=False),
    "a huge manifest": Attack(huge(f"{MANIFESTS}/job.yaml"), refused="stale", render=False),
    "a huge file in the output": Attack(huge("rendered/evil.yaml"), refused="KG0607", render=False),
    "a huge file of the user's own in the output": Attack(
        also(configure('allow: {files: ["**"]}\n'), huge("rendered/evil.yaml")), shown="evil.yaml"
    ),
    "an index of kaigen in another folder of the output": Attack(
        write(
            {
                "rendered/ml/evil/manifests/admin.yaml": ADMIN,
                "rendered/ml/evil/.kaigen-index": f"{INDEX}manifests/admin.yaml\n",
            }
        ),
        refused="KG0607",
        render=False,
    ),
    "a cache in the checkout": Attack(
        also(
            copied_output,
            write({".cache/kaigen/render/evil.msgpack": "x", "kaigen.lock": "models: {}\nevil: 1\n"}),
        ),
        refused="kaigen.lock",
        render=False,
    ),
}  # fmt: skip


class Hostile(Checkout):
    """A checkout that is reset for each pull request, and a file of somebody else."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, BELOW)
        self.victim = folder / "victim"
        self.victim.mkdir()
        (self.victim / "own.yaml").write_text("mine\n")
        self._base = self.git("rev-parse", "refs/remotes/origin/main")

    def reset(self) -> None:
        """Begin a new branch from the base."""
        self.git("update-ref", "refs/remotes/origin/main", self._base)
        self.git("checkout", "--quiet", "--force", "-B", "change", self._base)
        self.git("clean", "-ffdxq")

    def merge(self) -> None:
        """Check out the merge of the branch with its base, which has another commit by now."""
        self.git("checkout", "--quiet", "--detach", self._base)
        (self.top / "other.txt").write_text("theirs\n")
        self.commit()
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")
        self.git("merge", "--quiet", "--no-ff", "--message=Merge", "change")

    def outside(self) -> dict[str, int]:
        """Return the files that no pull request may touch, with their sizes."""
        folders = (self.victim, self.top.parent / "origin", self.top / ".git" / "hooks")
        return {
            str(path): path.lstat().st_size
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    return Hostile(tmp_path_factory.mktemp("pull-requests"))


@pytest.fixture
def forge() -> Iterator[Forge]:
    with running("github") as server:
        yield server


def at_the_margin(text: str) -> list[str]:
    """Return the lines of Markdown that are in no block of code."""
    lines, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,})", line)
        if mark and (not fence or (mark[1].startswith(fence) and line.strip() == mark[1])):
            fence = "" if fence else mark[1]
        elif not fence:
            lines.append(re.sub(r"(`+).*?\1", "", line))
    return lines


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_pull_request(checkout: Hostile, forge: Forge, name: str) -> None:
    attack = ATTACKS[name]
    checkout.reset()
    job = Job(checkout, forge)
    before = checkout.outside()
    attack.change(checkout)
    if attack.render:
        checkout.kaigen("-q", "render")
    checkout.commit()
    if attack.merge:
        checkout.merge()
    failed = ""
    for step in STEPS:
        if step == "kaigen diff" and "kaigen validate" in failed:
            continue
        done = job.run(step, base=attack.base, sarif="true")
        text = done.stdout + done.stderr
        assert "Traceback" not in text
        assert "root:x:0" not in text
        assert "\x1b" not in done.stdout
        assert done.stderr == ""
        assert all(re.match(r"::(error|warning|notice) ", line) for line in obeyed(done.stdout))
        assert re.fullmatch(r"((changed=(true|false)|file=\S+)\n)*", job.output.read_text())
        if done.returncode:
            failed += f"{step}: {text}\n"
    posted = ""
    if "kaigen diff" not in failed and "kaigen validate" not in failed:
        assert job.run("Comment").returncode == 0
        posted = "\n".join(forge.comments.values())
        assert APPROVAL not in "\n".join(at_the_margin(posted))
        assert "\x1b" not in posted
        assert "\u202e" not in posted
    assert TOKEN not in posted
    assert not (checkout.temp / "ran").exists()
    assert checkout.outside() == before
    if attack.refused is None:
        assert failed == ""
        assert attack.shown is not None
        assert attack.shown in posted
    else:
        assert failed, f"the checks pass: {posted}"
        assert attack.refused in failed
