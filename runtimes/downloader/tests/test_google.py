"""Buckets of Google with tokens: of the pod's identity and of a service account's key, also when they end early."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from gcs import METADATA, Google, Identity, identity
from hub import Hub
from runs import ID, Done, Runner, content, sha256
from s3 import S3, Handler, error
from test_bucket import BIG, fill, holds

PART = 5 << 20


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch) -> Iterator[Identity]:
    """The identity of a pod."""
    with identity() as made:
        monkeypatch.setenv("GCE_METADATA_HOST", made.url.removeprefix("http://"))
        # It is on the node: a proxy is for everything else.
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", "127.0.0.2")
        yield made


@pytest.fixture
def google(backend: str, pod: Identity, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """The server of an empty bucket."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with S3(backend) as server:
        yield Google(server, pod)


@pytest.fixture
def gcs(google: Google) -> S3:
    """The bucket."""
    bucket: S3 = google.s3
    return bucket


def copy(run: Runner, gcs: S3, dest: Path, *more: str, prefix: str = "src", **env: str) -> Done:
    """Fetch the files of the bucket into a folder."""
    where = ["--uri", f"gs://{gcs.bucket}/{prefix}", "--endpoint", gcs.url, "--dest", str(dest), "--identity", ID]
    return run("fetch", "s3", *where, "--part-size", "64Ki", "--timeout", "5", *more, **env)


def test_a_model_is_stored_with_the_identity_of_the_pod(hub: Hub, gcs: S3, pod: Identity, run: Runner) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    done = fill(run, hub, gcs)
    assert done.code == 0, done.err
    assert holds(gcs, hub)
    assert len(gcs.requests("PUT .*model-00003.*partNumber=")) == 3
    assert gcs.sums("llm/v1/model-00003.safetensors")["sha256"] == sha256(hub.files["model-00003.safetensors"].data)
    assert pod.asked == [METADATA]
    assert "no conditional writes" not in done.err
    assert "already complete" in fill(run, hub, gcs).err


def test_a_key_of_a_service_account_is_exchanged_for_tokens(
    hub: Hub, gcs: S3, pod: Identity, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", pod.key_file())
    done = fill(run, hub, gcs)
    assert done.code == 0, done.err
    assert pod.asked == ["/token"]
    assert "PRIVATE KEY" not in done.err
    assert "ya29" not in done.err


def test_files_are_read_and_proven_by_what_google_knows_of_them(gcs: S3, run: Runner, dest: Path) -> None:
    parts = content(BIG, 1)
    gcs.put("src/a.json", b"{}")
    upload = gcs.client.create_multipart_upload(Bucket=gcs.bucket, Key="src/b.bin")["UploadId"]
    sent = [parts[:PART], parts[PART:]]
    tags = [
        gcs.client.upload_part(Bucket=gcs.bucket, Key="src/b.bin", UploadId=upload, PartNumber=n, Body=part)["ETag"]
        for n, part in enumerate(sent, 1)
    ]
    listed = {"Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]}
    gcs.client.complete_multipart_upload(Bucket=gcs.bucket, Key="src/b.bin", UploadId=upload, MultipartUpload=listed)
    done = copy(run, gcs, dest)
    assert done.code == 0, done.err
    assert (dest / "b.bin").read_bytes() == parts
    assert "every checksum right" in done.err
    marker = json.loads((dest / ".kaigen" / "model.json").read_text())
    assert marker["source"]["uri"] == f"gs://{gcs.bucket}/src"
    assert len(gcs.requests("^GET .*b.bin")) > 1


@pytest.mark.parametrize("has_md5", [True, False])
def test_damaged_bytes_are_detected(google: Google, gcs: S3, run: Runner, dest: Path, has_md5: bool) -> None:
    google.has_md5 = has_md5
    gcs.put("src/a.bin", content(1000))

    def change(handler: Handler) -> bool:
        if re.search("^GET .*a.bin", handler.about):
            reply = handler.reply
            handler.reply = lambda code, data, headers=None: reply(code, b"x" + data[1:], headers)  # type: ignore[method-assign]
        return False

    gcs.faults.insert(0, change)
    done = copy(run, gcs, dest)
    assert done.code == 11
    assert "a.bin" in done.err


def test_a_body_that_changes_on_its_way_is_refused_and_sent_again(hub: Hub, gcs: S3, run: Runner) -> None:
    left = [1]

    def change(handler: Handler) -> bool:
        if re.search("^PUT .*model-00001", handler.about) and left[0]:
            left[0] -= 1
            data = handler.body()
            handler.body = lambda: bytes([data[0] ^ 1]) + data[1:]  # type: ignore[method-assign]
        return False

    gcs.faults.insert(0, change)
    done = fill(run, hub, gcs)
    assert done.code == 0, done.err
    assert holds(gcs, hub)
    assert len(gcs.requests("^PUT .*model-00001")) == 2


def test_a_token_that_ends_in_the_middle_of_a_file_is_replaced(gcs: S3, pod: Identity, run: Runner, dest: Path) -> None:
    data = content(20 * 65536)
    gcs.put("src/a.bin", data)
    seen: list[str] = []

    def end(handler: Handler) -> bool:
        if re.search("^GET .*a.bin", handler.about):
            seen.append(handler.headers["Authorization"])
            if len(seen) in (3, 9):
                pod.valid.clear()
        return False

    gcs.faults.insert(0, end)
    done = copy(run, gcs, dest, "--connections", "2")
    assert done.code == 0, done.err
    assert (dest / "a.bin").read_bytes() == data
    assert len(pod.asked) == 3
    assert len(set(seen)) == 3


def test_a_token_that_ends_between_the_parts_of_an_upload_is_replaced(
    hub: Hub, gcs: S3, pod: Identity, run: Runner
) -> None:
    hub.add("model-00003.safetensors", content(BIG, 3))
    left = [1]

    def end(handler: Handler) -> bool:
        if "partNumber=2" in handler.about and left[0]:
            left[0] -= 1
            pod.valid.clear()
        return False

    gcs.faults.insert(0, end)
    done = fill(run, hub, gcs)
    assert done.code == 0, done.err
    assert holds(gcs, hub)
    assert len(pod.asked) == 2


def test_a_token_is_replaced_before_its_time_is_over(gcs: S3, pod: Identity, run: Runner, dest: Path) -> None:
    pod.seconds = 0.0
    gcs.put("src/a.bin", b"a")
    assert copy(run, gcs, dest).code == 0
    assert len(pod.asked) == len(gcs.asked)


def test_a_token_server_that_is_not_ready_is_asked_again(gcs: S3, pod: Identity, run: Runner, dest: Path) -> None:
    gcs.put("src/a.bin", b"a")
    pod.statuses += [503, 429]
    done = copy(run, gcs, dest)
    assert done.code == 0, done.err
    assert "answers 503" in done.err


def test_a_pod_without_an_identity_fails_at_once(gcs: S3, pod: Identity, run: Runner, dest: Path) -> None:
    pod.statuses += [404]
    done = copy(run, gcs, dest)
    assert done.code == 10
    assert "no credentials: the metadata server" in done.err
    assert len(pod.asked) == 1


def test_a_token_that_is_never_accepted_ends_the_run(gcs: S3, pod: Identity, run: Runner, dest: Path) -> None:
    gcs.put("src/a.bin", b"a")
    gcs.fail(99, "^GET .*a.bin", error(401, "AuthenticationRequired"))
    gcs.faults.reverse()
    done = copy(run, gcs, dest)
    print(done)
    assert done.code == 20
    assert "a.bin" in done.err


def test_a_missing_permission_is_named_as_google_calls_it(gcs: S3, run: Runner, dest: Path) -> None:
    gcs.fail(1, "^GET .*list-type=2", error(403, "AccessDenied"))
    gcs.faults.reverse()
    done = copy(run, gcs, dest)
    assert done.code == 10
    assert f"the credentials lack storage.objects.list on gs://{gcs.bucket}/src" in done.err


@pytest.mark.parametrize("before", [b"", b'{"run": "an ended one"}'])
def test_of_two_runs_that_begin_together_one_ends(hub: Hub, gcs: S3, run: Runner, before: bytes) -> None:
    if before:
        gcs.put("llm/v1/.kaigen/owned.json", before)

    def overtake(handler: Handler) -> bool:
        if re.search("^PUT .*owned.json", handler.about):
            gcs.put("llm/v1/.kaigen/owned.json", b'{"run": "another"}')
        return False

    gcs.faults.insert(0, overtake)
    done = fill(run, hub, gcs)
    assert done.code == 20
    assert "another run has begun to write" in done.err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not the JSON key file"),
        ("[]", "is not the JSON key file"),
        (json.dumps({"type": "service_account", "client_email": "a"}), "is not the JSON key file"),
    ],
)
def test_what_is_no_key_is_refused(gcs: S3, run: Runner, dest: Path, text: str, reason: str) -> None:
    done = copy(run, gcs, dest, SOURCE_GOOGLE_SERVICE_ACCOUNT_KEY=text)
    assert done.code == 13
    assert reason in done.err


@pytest.mark.parametrize(
    ("other", "reason"),
    [({"token_uri": "http://tokens.test"}, "not an https URL"), ({"type": "user"}, "but of type 'user'")],
)
def test_a_key_of_another_kind_is_refused(
    gcs: S3, pod: Identity, run: Runner, dest: Path, other: dict[str, str], reason: str
) -> None:
    done = copy(run, gcs, dest, SOURCE_GOOGLE_SERVICE_ACCOUNT_KEY=pod.key_file(**other))
    assert done.code == 13
    assert reason in done.err
    assert not pod.asked


def test_a_token_is_sent_to_no_server_without_tls(run: Runner, dest: Path) -> None:
    where = ["--uri", "gs://models/a", "--endpoint", "http://storage.test", "--dest", str(dest), "--identity", ID]
    done = run("fetch", "s3", *where)
    assert done.code == 13
    assert "has no TLS" in done.err
