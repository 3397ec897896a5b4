"""The options that builders get, from scripts that record their arguments. test_images.py of the cluster runs one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from kaigen.diagnostics.errors import SystemFailure
from kaigen.images.builders import Build, Builder, find_builder

DIGEST = "sha256:" + "a" * 64
SEVERAL = ("linux/amd64", "linux/arm64")
RECORD = """\
#!/bin/sh
printf '%s\\n' "$0 $*" >> "{log}"
while [ $# -gt 1 ]; do
    case $1 in
    --metadata-file) echo '{{"containerimage.digest": "{digest}"}}' > "$2" ;;
    --digestfile) echo '{digest}' > "$2" ;;
    esac
    shift
done
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH but for /bin; return the log of the programs in it."""
    folder, log = tmp_path / "bin", tmp_path / "log"
    folder.mkdir()
    for name in ("docker", "podman"):
        file = folder / name
        file.write_text(RECORD.format(log=log, digest=DIGEST))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return log


def build_of(context: Path) -> Build:
    """Return how an image is built for this machine."""
    return Build(
        reference="registry.example.com/kaigen/reaper:1",
        context=context,
        dockerfile="reaper/Dockerfile",
        arguments={"BASE": "python:1"},
        labels={"a": "b"},
        secrets={},
        platforms=(),
    )


def calls(log: Path) -> list[str]:
    """Return the calls, each with the names of files in place of their paths."""
    return [re.sub(r"(?<=[ =])/[^ ]*/|^/[^ ]*/", "", line) for line in log.read_text().splitlines()]


def test_docker_builds_and_pushes_in_one_call(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://ada:secret@proxy.example.com")
    secret = tmp_path / "pip.conf"
    build = replace(build_of(tmp_path / "context"), secrets={"pip.conf": secret}, platforms=SEVERAL)
    digest = Builder("docker", print, plain_http=False).build(build, push=True)
    assert digest == DIGEST
    (call,) = calls(programs)
    assert call == (
        "docker buildx build --file Dockerfile --build-arg BASE=python:1 --build-arg HTTPS_PROXY --label a=b "
        "--secret id=pip.conf,src=pip.conf --platform linux/amd64,linux/arm64 --provenance=false --sbom=false "
        "--metadata-file facts.json --tag registry.example.com/kaigen/reaper:1 --push context"
    )


def test_docker_loads_what_is_not_pushed(programs: Path, tmp_path: Path) -> None:
    assert Builder("docker", print, plain_http=False).build(build_of(tmp_path), push=False) == ""
    assert " --load " in programs.read_text()


def test_podman_pushes_a_list_of_several_platforms(programs: Path, tmp_path: Path) -> None:
    build = replace(build_of(tmp_path / "context"), platforms=SEVERAL, plain_base=True)
    assert Builder("podman", print, plain_http=True).build(build, push=True) == DIGEST
    name = "registry.example.com/kaigen/reaper:1"
    assert calls(programs) == [
        f"podman manifest rm {name}",
        "podman build --format=oci --tls-verify=false --file Dockerfile --build-arg BASE=python:1 --label a=b "
        f"--platform linux/amd64,linux/arm64 --manifest {name} context",
        f"podman manifest push --all --digestfile digest --tls-verify=false {name} docker://{name}",
    ]


def test_a_base_with_tls_is_verified_although_the_registry_has_none(programs: Path, tmp_path: Path) -> None:
    Builder("podman", print, plain_http=True).build(build_of(tmp_path), push=True)
    first, second = calls(programs)
    assert "--tls-verify" not in first
    assert "--tls-verify=false" in second


def test_a_failure_shows_the_end_of_the_output(programs: Path, tmp_path: Path) -> None:
    file = Path(os.environ["PATH"].split(":")[0], "podman")
    file.write_text("#!/bin/sh\necho http://ada:secret@index.example.com refused; exit 1\n")
    with pytest.raises(SystemFailure) as caught:
        Builder("podman", lambda line: None, plain_http=False).build(build_of(tmp_path), push=True)
    assert str(caught.value).startswith("`podman build` failed\n")
    assert "refused" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_docker_is_used_only_with_its_daemon_and_buildx(programs: Path) -> None:
    folder = Path(os.environ["PATH"].split(":")[0])
    assert find_builder() == "docker"
    (folder / "docker").write_text("#!/bin/sh\nexit 1\n")
    assert find_builder() == "podman"
    with pytest.raises(SystemFailure, match="docker cannot build images here"):
        find_builder("docker")


def test_without_a_builder_the_error_names_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemFailure, match="docker with buildx, podman or buildah is not installed"):
        find_builder()
