"""What kaigen builds from and ships names other people's work by digest, commit or hash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kaigen.catalog.images import default_images
from kaigen.images.recipes import find_recipes

ROOT = Path(__file__).parents[3]
COMMIT = re.compile(r"[\w./-]+@[0-9a-f]{40}")
DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
VERSION = re.compile(r"v?\d+\.\d+\.\d+")
OWN_ACTION = re.compile(r"kaigen-dev/kaigen/gitops/[\w-]+@(v\d+\.\d+\.\d+|@tag@(@folder@)?)")
"""An action of this repository: a release cannot name its own commit. `docs/supply-chain.md` says to replace it."""
OWN_BASE = "kaigen-torch"
"""The image that those with PyTorch start from: that of `runtimes/shared/torch.Dockerfile`."""
UNPINNED_LOCKS = {
    "tests/cluster/vllm/overrides.txt": "constraints from which a lock is made",
    "runtimes/ringproxy/tests/key.txt": "no list of packages",
}
FETCHES = re.compile(r"\b((apt|apt-get|apk|npm|go) (install|get|add)|git clone|(curl|wget|ADD) .*https?:)")


def tracked(*patterns: str) -> list[Path]:
    """Return files of the repository, as Git lists them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--", *patterns]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = [ROOT / name for name in done.stdout.split("\0") if name]
    assert found, patterns
    return found


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def unpinned_actions(text: str) -> list[str]:
    """Return the actions of a workflow that are named by branch or tag."""
    used = re.findall(r"^\s*(?:- )?uses:\s*(\S+)", text, re.MULTILINE)
    return [each for each in used if not (COMMIT.fullmatch(each) or OWN_ACTION.fullmatch(each))]


def unpinned_images(dockerfile: str) -> list[str]:
    """Return the base images of a Dockerfile without a digest."""
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.MULTILINE))
    stages = set(re.findall(r"^FROM .* AS (\S+)$", dockerfile, re.MULTILINE | re.IGNORECASE))
    named = re.findall(r"^FROM\s+(?:--\S+\s+)*(\S+)", dockerfile, re.MULTILINE | re.IGNORECASE)
    named += [each for each in re.findall(r"--from=(\S+)", dockerfile) if "/" in each or ":" in each]
    assert named
    named = [re.sub(r"\$\{(\w+)\}", lambda found: defaults.get(found[1], found[0]), each) for each in named]
    return [each for each in named if each not in {*stages, OWN_BASE} and not DIGEST.fullmatch(each)]


def unpinned_installs(text: str) -> list[str]:
    """Return the commands of a Dockerfile or pipeline that install something without a hash."""
    commands = re.split(r"\n(?!\s*&&)|&&", re.sub(r"\\\n", " ", text))
    # A wrapper such as `set -- pip install --quiet` gets its arguments as "$@".
    install = re.compile(r'\bpip\b.*\b(install|wheel)\b(?!\.sh)|^\s*"\$@" ')
    installs = [each.strip() for each in commands if install.search(each)]
    safe = ("--require-hashes", "--no-deps --no-index", "--no-deps --no-build-isolation")
    return [
        each for each in installs if not any(option in each for option in safe) and not each.startswith(("set --", "#"))
    ] + [each.strip() for each in commands if FETCHES.search(each)]


def unhashed(lock: str) -> list[str]:
    """Return the lines of a lock file that pin no version, or have no hash."""
    entries = re.split(r"^(?=[^\s#])", lock, flags=re.MULTILINE)[1:]
    return [
        each.split("\n")[0]
        for each in entries
        if not re.match(r"[\w.\[\],-]+==\S+", each) or "--hash=sha256:" not in each
    ]


WORKFLOWS = tracked(
    ".github/*.yml", "gitops/*.yml", "gitops/*.yaml", "kaigen/scaffold/files/*.yaml", "docs/*.md", "README.md"
)
DOCKERFILES = tracked("*Dockerfile", "*Containerfile*")
LOCKS = [
    each
    for each in tracked("requirements/*.txt", "runtimes/*.txt", "benchmarks/*.txt", "tests/cluster/*.txt")
    if name_of(each) not in UNPINNED_LOCKS
]


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_actions_are_named_by_commit(path: Path) -> None:
    assert unpinned_actions(path.read_text()) == []


@pytest.mark.parametrize("path", DOCKERFILES, ids=name_of)
def test_images_are_built_from_digests_and_locked_packages(path: Path) -> None:
    text = path.read_text()
    assert unpinned_images(text) == []
    assert unpinned_installs(text) == []


@pytest.mark.parametrize("path", tracked("gitops/*.yml", "gitops/*.sh"), ids=name_of)
def test_pipelines_install_locked_packages(path: Path) -> None:
    text = re.sub(r'echo ".*"', "", path.read_text())
    assert unpinned_installs(text) == []


@pytest.mark.parametrize("path", LOCKS, ids=name_of)
def test_locks_have_a_hash_for_each_package(path: Path) -> None:
    text = path.read_text()
    assert unhashed(text) == []
    assert "://" not in text


def test_images_install_only_what_a_lock_has() -> None:
    script = (ROOT / "runtimes/shared/install.sh").read_text()
    calls = re.findall(r"^ *(?:if .*; then )?(install_into .*|/opt/build/bin/pip .*)$", script, re.MULTILINE)
    assert len(calls) == 7
    (function,) = [each for each in calls if each.endswith('install "$@"')]
    calls.remove(function)
    safe = ("--require-hashes", "--no-deps --no-index", "--no-deps --no-build-isolation")
    assert [each for each in calls if not any(option in each for option in safe)] == []


def test_every_image_copies_the_locks_that_it_installs() -> None:
    recipes = find_recipes()
    assert {path.parent for path in DOCKERFILES} == {
        (each.context / each.dockerfile).parent for each in recipes.values()
    }
    for recipe in recipes.values():
        text = (recipe.context / recipe.dockerfile).read_text()
        copied = {name for line in re.findall("^COPY (.*) [^ ]+$", text, re.MULTILINE) for name in line.split()}
        found = {path for name in copied if name.endswith(".txt") for path in recipe.context.glob(name)}
        assert set(recipe.locks) <= {path.relative_to(recipe.context).as_posix() for path in found}, recipe.name
        assert [each for each in found if each not in LOCKS] == []


def test_packages_of_the_image_with_pytorch_are_those_of_the_images_that_start_from_it() -> None:
    recipes = find_recipes()

    def versions(path: Path) -> dict[str, str]:
        return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^\s;\\]+)", path.read_text(), re.MULTILINE))

    base = versions(recipes["torch"].context / recipes["torch"].locks[0])
    with_torch = [each.context / each.locks[0] for each in recipes.values() if each.base == "torch"]
    with_torch.append(ROOT / "runtimes/notebook/requirements-torch.txt")
    assert len(with_torch) == 4
    for lock in with_torch:
        own = versions(lock)
        assert {name: own.get(name) for name in base} == base, lock


def test_images_of_the_catalogue_have_a_version_that_kaigen_lock_turns_into_a_digest() -> None:
    for name, image in default_images().items():
        _, colon, tag = image.rpartition(":")
        assert colon, name
        assert VERSION.match(tag) or DIGEST.fullmatch(image), name


def test_the_chart_of_the_reaper_runs_the_image_of_its_version() -> None:
    chart = ROOT / "charts" / "kaigen-reaper"
    assert yaml.safe_load((chart / "values.yaml").read_text())["image"] == ""
    assert VERSION.fullmatch(str(yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]))


@pytest.mark.parametrize(
    "text",
    [
        "    - uses: actions/checkout@v4\n",
        "      uses: actions/checkout@main\n",
        "    - uses: kaigen-dev/kaigen/gitops/x@main\n",
    ],
)
def test_a_tag_or_branch_of_an_action_is_found(text: str) -> None:
    assert len(unpinned_actions(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "FROM python:3.13\n",
        "FROM --platform=linux/amd64 python:latest AS build\nFROM build\n",
        f"FROM python@sha256:{'0' * 64} AS build\nCOPY --from=docker.io/library/busybox:1 /bin /bin\n",
    ],
)
def test_an_image_without_a_digest_is_found(text: str) -> None:
    assert len(unpinned_images(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "RUN pip install requests\n",
        "RUN true \\\n    && pip install -r requirements.txt\n",
        "RUN apt-get install -y git\n",
        "RUN curl https://example.com/x.sh\n",
        "ADD https://example.com/x.tar /\n",
    ],
)
def test_an_installation_without_hashes_is_found(text: str) -> None:
    assert len(unpinned_installs(text)) == 1


def test_a_package_without_a_hash_or_version_is_found() -> None:
    assert unhashed("# made by hand\na==1 \\\n    --hash=sha256:00\nb==2\nc>=3 --hash=sha256:00\n") == [
        "b==2",
        "c>=3 --hash=sha256:00",
    ]
