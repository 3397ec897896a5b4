"""Containers of Azure: workload identity, account keys and shared access signatures, also when they end early."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from blobs import ACCOUNT, KEY, SAS, Azure, Handler, azure
from hub import REPO, Hub
from runs import ID, Done, Runner, content, files, sha256
from test_bucket import BIG

VARIABLES = ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_AUTHORITY_HOST")


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    """A container, and the identity of a pod."""
    with azure(tmp_path) as (made, variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        yield made


def fill(run: Runner, hub: Hub, pod: Azure, *more: str, identity: str = ID) -> Done:
    """Fetch from the Hub into the container."""
    fixed = ["fetch", "huggingface", "--repo", REPO, "--identity", identity, "--endpoint", hub.url]
    return run(*fixed, *pod.dest(), "--part-size", "5Mi", "--timeout", "5", *more)


def copy(run: Runner, pod: Azure, dest: Path, *more: str, prefix: str = "src", **env: str) -> Done:
    """Fetch the files of the container into a folder."""
    where = ["--uri", f"az://{ACCOUNT}/{pod.bucket}/{prefix}", "--endpoint", f"{pod.url}/{ACCOUNT}"]
    more = ("--dest", str(dest), "--identity", ID, "--part-size", "64Ki", "--timeout", "5", *more)
    return run("fetch", "s3", *where, *more, **env)


def holds(pod: Azure, hub: Hub) -> bool:
    """Whether the container has the Hub's files and the marker, and nothing else of ours."""
    wanted = {f"llm/v1/{path}": stored.data for path, stored in hub.files.items()}
    assert pod.everything() == {*wanted, "llm/v1/.kaigen/model.json"}
    return all(pod.get(key) == data for key, data in wanted.items())


def without_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name)


def test_a_model_is_stored_with_the_identity_of_the_pod(hub: Hub, pod: Azure, run: Runner) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    done = fill(run, hub, pod)
    assert done.code == 0, done.err
    assert holds(pod, hub)
    assert len(pod.requests("PUT .*model-00003.*comp=block&")) == 3
    for path in ("model-00001.safetensors", "model-00003.safetensors", "empty"):
        assert pod.blobs[f"llm/v1/{path}"].metadata["sha256"] == sha256(hub.files[path].data)
    assert pod.issued == ["a.federated.token"]
    assert "eyJ" not in done.err
    assert "no conditional writes" not in done.err
    assert "already complete" in fill(run, hub, pod).err


@pytest.mark.parametrize("variables", [{"AZURE_STORAGE_KEY": KEY}, {"AZURE_STORAGE_SAS_TOKEN": f"?{SAS}"}])
def test_keys_and_signatures_need_no_identity(
    hub: Hub, pod: Azure, run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    without_identity(monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    hub.add("model-00003.safetensors", content(BIG, 3))
    hub.add("a name/with+signs ~(1)%2f.txt", b"x")
    done = fill(run, hub, pod)
    assert done.code == 0, done.err
    assert holds(pod, hub)
    for name in variables:
        monkeypatch.delenv(name)
    done = copy(run, pod, dest, prefix="llm/v1", **{f"SOURCE_{name}": value for name, value in variables.items()})
    assert done.code == 0, done.err
    assert all((dest / path).read_bytes() == stored.data for path, stored in hub.files.items())
    assert KEY not in done.err
    assert dict(parse_qsl(SAS))["sig"] not in done.err
    assert not pod.issued


def test_files_are_read_over_several_pages_and_proven_by_their_md5(pod: Azure, run: Runner, dest: Path) -> None:
    pod.page = 2
    for number in range(5):
        pod.put(f"src/{number}.bin", content(100, number))
    pod.put("srcs/other.bin", b"not below the prefix")
    pod.put("src/blocks.bin", content(BIG, 9), has_md5=False)
    done = copy(run, pod, dest)
    assert done.code == 0, done.err
    assert files(dest) == {*(f"{number}.bin" for number in range(5)), "blocks.bin"}
    assert (dest / "blocks.bin").read_bytes() == content(BIG, 9)
    assert len(pod.requests("comp=list")) == 3
    marker = json.loads((dest / ".kaigen" / "model.json").read_text())
    assert marker["source"]["uri"] == f"az://{ACCOUNT}/{pod.bucket}/src"


def test_damaged_bytes_are_detected(pod: Azure, run: Runner, dest: Path) -> None:
    pod.put("src/a.bin", content(1000))

    def change(handler: Handler) -> bool:
        if re.search("^GET .*a.bin", handler.about):
            data = pod.blobs["src/a.bin"].data
            handler.reply(200, b"x" + data[1:], {"ETag": pod.blobs["src/a.bin"].etag})
            return True
        return False

    pod.faults.append(change)
    done = copy(run, pod, dest)
    assert done.code == 11
    assert "a.bin" in done.err


def test_a_blob_that_changes_while_it_is_fetched_is_detected(pod: Azure, run: Runner, dest: Path) -> None:
    pod.put("src/a.bin", content(20 * 65536), has_md5=False)
    left = [4]

    def change(handler: Handler) -> bool:
        if re.search("^GET .*a.bin", handler.about):
            left[0] -= 1
            if not left[0]:
                pod.put("src/a.bin", content(20 * 65536, 7), has_md5=False)
        return False

    pod.faults.append(change)
    done = copy(run, pod, dest, "--connections", "1")
    assert done.code == 11
    assert "changed while it was fetched" in done.err


def test_a_body_that_changes_on_its_way_is_refused_and_sent_again(hub: Hub, pod: Azure, run: Runner) -> None:
    left = [1]

    def change(handler: Handler) -> bool:
        if re.search("^PUT .*model-00001", handler.about) and left[0]:
            left[0] -= 1
            handler.body = b"?" + handler.body[1:]
        return False

    pod.faults.append(change)
    done = fill(run, hub, pod)
    assert done.code == 0, done.err
    assert holds(pod, hub)
    assert len(pod.requests("^PUT .*model-00001")) == 2


@pytest.mark.parametrize(("status", "code"), [(401, "InvalidAuthenticationInfo"), (403, "AuthenticationFailed")])
def test_a_token_that_ends_in_the_middle_of_a_file_is_replaced(
    pod: Azure, run: Runner, dest: Path, tmp_path: Path, status: int, code: str
) -> None:
    data = content(20 * 65536)
    pod.put("src/a.bin", data, has_md5=False)
    seen: list[str] = []

    def end(handler: Handler) -> bool:
        if re.search("^GET .*a.bin", handler.about):
            seen.append(handler.headers["Authorization"])
            if len(seen) in (3, 9):
                pod.valid.clear()
                (tmp_path / "azure-identity-token").write_text(f"federated-{len(seen)}")
            if handler.headers["Authorization"].removeprefix("Bearer ") not in pod.valid:
                handler.refuse(status, code)
                return True
        return False

    pod.faults.append(end)
    done = copy(run, pod, dest, "--connections", "2")
    assert done.code == 0, done.err
    assert (dest / "a.bin").read_bytes() == data
    assert pod.issued == ["a.federated.token", "federated-3", "federated-9"]
    assert len(set(seen)) == 3


def test_a_token_that_ends_between_the_blocks_of_an_upload_is_replaced(hub: Hub, pod: Azure, run: Runner) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    left = [1]

    def end(handler: Handler) -> bool:
        if "comp=block&" in handler.about and left[0]:
            left[0] -= 1
            pod.valid.clear()
        return False

    pod.faults.append(end)
    done = fill(run, hub, pod)
    assert done.code == 0, done.err
    assert holds(pod, hub)
    assert len(pod.issued) == 2


def test_a_lost_answer_to_a_commit_is_repeated(hub: Hub, pod: Azure, run: Runner) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    pod.fail(1, "comp=blocklist", 503, "ServerBusy")
    done = fill(run, hub, pod)
    assert done.code == 0, done.err
    assert holds(pod, hub)
    assert len(pod.requests("comp=blocklist")) == 2


@pytest.mark.parametrize("before", [b"", b'{"run": "an ended one"}'])
def test_of_two_runs_that_begin_together_one_ends(hub: Hub, pod: Azure, run: Runner, before: bytes) -> None:
    if before:
        pod.put("llm/v1/.kaigen/owned.json", before)

    def overtake(handler: Handler) -> bool:
        if re.search("^PUT .*owned.json", handler.about):
            pod.put("llm/v1/.kaigen/owned.json", b'{"run": "another"}')
        return False

    pod.faults.append(overtake)
    done = fill(run, hub, pod)
    assert done.code == 20
    assert "another run has begun to write" in done.err


def test_a_new_identity_replaces_files(hub: Hub, pod: Azure, run: Runner) -> None:
    assert fill(run, hub, pod).code == 0
    del hub.files["empty"]
    hub.add("config.json", b'{"other": 1}')
    done = fill(run, hub, pod, identity="2e" * 16)
    assert done.code == 0, done.err
    assert holds(pod, hub)


@pytest.mark.parametrize(
    ("status", "code", "exit_code", "reason"),
    [
        (403, "AuthorizationPermissionMismatch", 10, "lack the role 'Storage Blob Data Reader' on az://acmemodels/mod"),
        (403, "AuthenticationFailed", 10, "rejects the credentials: AuthenticationFailed"),
        (404, "ContainerNotFound", 10, "container models does not exist"),
        (503, "ServerBusy", 20, "answers 503 ServerBusy"),
    ],
)
def test_a_refusal_is_explained(
    pod: Azure, run: Runner, dest: Path, status: int, code: str, exit_code: int, reason: str
) -> None:
    pod.fail(99, "comp=list", status, code)
    done = copy(run, pod, dest, KAIGEN_ATTEMPTS="2")
    assert (done.code, reason in done.err) == (exit_code, True), done.err


def test_a_pod_without_an_identity_fails_at_once(
    pod: Azure, run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_identity(monkeypatch)
    done = copy(run, pod, dest)
    assert done.code == 10
    assert "AZURE_CLIENT_ID, AZURE_TENANT_ID, AZURE_FEDERATED_TOKEN_FILE not set" in done.err
    assert not pod.asked


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"AZURE_STORAGE_KEY": "no base64"}, "is not an account key"),
        ({"AZURE_STORAGE_SAS_TOKEN": "sv=1"}, "is not a shared access signature"),
        ({"AZURE_STORAGE_KEY": KEY, "AZURE_STORAGE_SAS_TOKEN": SAS}, "not both"),
    ],
)
def test_what_is_no_credential_is_refused(
    pod: Azure, run: Runner, dest: Path, variables: dict[str, str], reason: str
) -> None:
    done = copy(run, pod, dest, **{f"SOURCE_{name}": value for name, value in variables.items()})
    assert (done.code, reason in done.err) == (13, True), done.err
    assert "no base64" not in done.err


@pytest.mark.parametrize(
    ("uri", "more", "reason"),
    [
        ("az://models", [], "is az://ACCOUNT/CONTAINER"),
        ("az://Acme/models/a", [], "is az://ACCOUNT/CONTAINER"),
        ("az://acme/m", [], "is not a valid bucket name"),
        ("az://acme/models/a", ["--endpoint", "http://blobs.test"], "has no TLS"),
    ],
)
def test_a_wrong_place_is_refused(pod: Azure, run: Runner, dest: Path, uri: str, more: list[str], reason: str) -> None:
    done = run("fetch", "s3", "--uri", uri, *more, "--dest", str(dest), "--identity", ID)
    assert (done.code, reason in done.err) == (13, True), done.err


def test_a_federated_token_is_sent_to_no_server_without_tls(
    pod: Azure, run: Runner, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", "http://login.test/")
    done = copy(run, pod, dest)
    assert (done.code, "has no TLS" in done.err) == (13, True), done.err


@pytest.mark.parametrize("page", [b"<html></html>", b"<a", b"<EnumerationResults/>" * 2])
def test_a_page_that_is_no_listing_is_a_failure_of_the_server(pod: Azure, run: Runner, dest: Path, page: bytes) -> None:
    def answer(handler: Handler) -> bool:
        handler.reply(200, page)
        return True

    pod.faults.append(answer)
    done = copy(run, pod, dest)
    assert (done.code, "does not respond like" in done.err) == (20, True), done.err


def test_folders_of_hierarchical_accounts_are_no_files(pod: Azure, run: Runner, dest: Path) -> None:
    pod.put("src/sub/a.bin", b"a")
    page = (
        "<EnumerationResults><Blobs><Blob><Name>src/sub</Name><Properties><ResourceType>directory</ResourceType>"
        "</Properties></Blob><Blob><Name>src/old</Name><Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
        f"<Blob><Name Encoded='true'>src%2Fsub%2Fa.bin</Name><Properties><Etag>{pod.blobs['src/sub/a.bin'].etag}</Etag>"
        "<Content-Length>1</Content-Length></Properties></Blob></Blobs></EnumerationResults>"
    )

    def answer(handler: Handler) -> bool:
        if "comp=list" not in handler.about:
            return False
        handler.reply(200, page.encode())
        return True

    pod.faults.append(answer)
    done = copy(run, pod, dest)
    assert done.code == 0, done.err
    assert files(dest) == {"sub/a.bin"}
