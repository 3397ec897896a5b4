"""What kaigen builds from and ships names other people's work by digest, commit or hash."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from kaigen.catalog.images import default_images

ROOT = Path(__file__).parents[3]
COMMIT = re.compile(r"[\w./-]+@[0-9a-f]{40}")
DIGEST = re.compile(r"\S+@sha256:[0-9a-f]{64}")
VERSION = re.compile(r"v?\d+\.\d+\.\d+")
OWN_ACTION = re.compile(r"kaigen-dev/kaigen/gitops/[\w-]+@(v\d+\.\d+\.\d+|@tag@(@folder@)?)")
"""An action of this repository: a release cannot name its own commit. `docs/supply-chain.md` says to replace it."""
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
    stages = set(re.findall(r"^FROM .* AS (\S+)$", dockerfile, re.MULTILINE | re.IGNORECASE))
    named = re.findall(r"^FROM\s+(?:--\S+\s+)*(\S+)", dockerfile, re.MULTILINE | re.IGNORECASE)
    named += [each for each in re.findall(r"--from=(\S+)", dockerfile) if "/" in each or ":" in each]
    assert named
    return [each for each in named if each not in stages and not DIGEST.fullmatch(each)]


def unpinned_installs(text: str) -> list[str]:
    """Return the commands of a Dockerfile or pipeline that install something without a hash."""
    commands = re.split(r"\n(?!\s*&&)|&&", re.sub(r"\\\n", " ", text))
    # A wrapper such as `set -- pip install --quiet` gets its arguments as "$@".
    installs = [each.strip() for each in commands if re.search(r'\bpip\b.*\b(install|wheel)\b|^\s*"\$@" ', each)]
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


WORKFLOWS = tracked("gitops/*.yml", "gitops/*.yaml", "kaigen/scaffold/files/*.yaml", "docs/*.md", "README.md")
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


def test_every_runtime_locks_what_it_installs() -> None:
    for dockerfile in DOCKERFILES:
        folder = dockerfile.parent if dockerfile.parent.parent.name == "runtimes" else ROOT
        for name in re.findall(r"-r (requirements\S*\.txt)", dockerfile.read_text()):
            locks = list(folder.glob(name.replace("$EXTRA", "*")))
            assert locks, (dockerfile, name)
            assert [each for each in locks if each not in LOCKS] == []


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
