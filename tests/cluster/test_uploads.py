"""Uploads of the downloader into a real S3 server that checks signatures and checksums, under faults and kills."""

from __future__ import annotations

import collections
import hashlib
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.bucket_server import KEYS, PART, account, bucket_server, call, client, run
from tests.cluster.upload_faults import UploadFaults

pytestmark = pytest.mark.engine

RANDOM = random.Random(4)
BIG = "model-1.safetensors"
FILES = {
    BIG: RANDOM.randbytes(2 * PART + 7),
    "model-2.safetensors": RANDOM.randbytes(PART + 1),
    "model-3.safetensors": RANDOM.randbytes(2 * PART),
    "config.json": b"{}",
    "sub dir/x+y": b"hello",
}
PARTS = {
    (path, number + 1): hashlib.sha256(data[number * PART : (number + 1) * PART]).hexdigest()
    for path, data in FILES.items()
    if len(data) > PART
    for number in range(-(-len(data) // PART))
}
SUMS = {path: hashlib.sha256(data).hexdigest() for path, data in FILES.items()}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server with the bucket `models` and files below `a/`."""
    with bucket_server(tmp_path_factory.mktemp("gateway")) as host:
        s3 = client(host)
        for path, data in FILES.items():
            # The checksum that kaigen stores with what it uploads.
            s3.put_object(Bucket="models", Key=f"a/{path}", Body=data, Metadata={"sha256": SUMS[path]})
        yield host


@pytest.fixture(params=["put", "fetch"])
def upload(request: pytest.FixtureRequest, gateway: str, tmp_path: Path) -> Upload:
    """An upload of a folder, or of the files of a bucket."""
    return made(request.param, gateway, tmp_path)


class Upload:
    """An upload below a prefix of the bucket.

    Attributes:
        gateway: address of the S3 server.
        prefix: below which the files are stored.
    """

    def __init__(self, gateway: str, prefix: str, what: list[str]) -> None:
        """Initialize with the arguments that name the source."""
        self.gateway, self.prefix, self._what = gateway, prefix, what
        self.s3 = client(gateway)

    def arguments(self, faults: UploadFaults, *more: str) -> list[str]:
        """Return the arguments of the downloader."""
        where = ["--dest", f"s3://models/{self.prefix}", "--s3-endpoint", f"http://{faults.host}"]
        return [*self._what, *where, "--identity", "id", "--part-size", str(PART), "--timeout", "5", *more]

    def keys(self, user: str = KEYS[0]) -> dict[str, str]:
        """Return the environment with the keys of a user."""
        found = {"AWS_ACCESS_KEY_ID": user, "AWS_SECRET_ACCESS_KEY": KEYS[1], "AWS_REGION": "us-east-1"}
        return found | {"SOURCE_AWS_ACCESS_KEY_ID": KEYS[0], "SOURCE_AWS_SECRET_ACCESS_KEY": KEYS[1]}

    def stored(self) -> dict[str, bytes]:
        """Return the files that the bucket has."""
        listed = self.s3.list_objects_v2(Bucket="models", Prefix=f"{self.prefix}/").get("Contents") or []
        keys = [item["Key"] for item in listed if "/.kaigen/" not in item["Key"]]
        return {
            key.removeprefix(f"{self.prefix}/"): self.s3.get_object(Bucket="models", Key=key)["Body"].read()
            for key in keys
        }

    def is_marked(self) -> bool:
        """Return whether the marker of a complete upload exists."""
        listed = self.s3.list_objects_v2(Bucket="models", Prefix=f"{self.prefix}/.kaigen/model.json")
        return bool(listed.get("KeyCount"))

    def unfinished(self) -> list[dict[str, Any]]:
        """Return the multipart uploads that are neither complete nor aborted."""
        listed = self.s3.list_multipart_uploads(Bucket="models").get("Uploads") or []
        return [each for each in listed if each["Key"].startswith(f"{self.prefix}/")]

    def accepted(self, faults: UploadFaults) -> collections.Counter[tuple[str, int]]:
        """Return how often the server accepted each part or object, after a check of the bytes."""
        found: collections.Counter[tuple[str, int]] = collections.Counter()
        for each in faults.sent:
            if each.status < 300:
                path = each.key.removeprefix(f"{self.prefix}/")
                right = PARTS[path, each.number] if each.number else SUMS[path]
                assert each.sha256 == right, each
                found[path, each.number] += 1
        return found


EVERY = {*PARTS, *((path, 0) for path, data in FILES.items() if len(data) <= PART)}


def made(command: str, gateway: str, folder: Path) -> Upload:
    """Return an upload of a folder, `put`, or of the files of a bucket, `fetch`."""
    if command == "put":
        for path, data in FILES.items():
            (folder / "made" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "made" / path).write_bytes(data)
        what = ["put", str(folder / "made")]
    else:
        what = ["fetch", "s3", "--uri", "s3://models/a", "--endpoint", f"http://{gateway}"]
        what += ["--region", "us-east-1"]
    return Upload(gateway, f"{command}-{folder.name}", what)


FAULTS = {
    "503 to two parts": ("503", "part", 2),
    "503 to an object": ("503", "object", 1),
    "503 to the begin of an upload": ("503", "begin", 1),
    "503 to the end of an upload": ("503", "complete", 1),
    "two parts cut": ("cut", "part", 2),
    "an object cut": ("cut", "object", 1),
    "a bit of two parts changed": ("corrupt", "part", 2),
    "a bit of an object changed": ("corrupt", "object", 1),
    "answer to a part lost": ("lost", "part", 1),
    "answer to an object lost": ("lost", "object", 1),
    "answer to the begin of an upload lost": ("lost", "begin", 1),
    "answer to the end of an upload lost": ("lost", "complete", 1),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_on_the_way_leave_the_right_bytes_and_send_nothing_else_again(upload: Upload, name: str) -> None:
    fault, operation, times = FAULTS[name]
    with UploadFaults(upload.gateway) as faults:
        faults.order(fault, operation, times)
        code, printed = run(upload.arguments(faults), **upload.keys())
        assert code == 0, printed
        assert faults.met == times
        assert upload.stored() == FILES
        assert upload.unfinished() == []
        # The server accepts each part once; one whose answer is lost is sent again.
        again = times if fault == "lost" and operation in ("part", "object") else 0
        accepted = upload.accepted(faults)
        assert set(accepted) == EVERY
        assert accepted.total() == len(EVERY) + again
        refused = [each.status for each in faults.sent if each.status >= 300]
        assert refused == ([400] * times if fault == "corrupt" else [])
        faults.sent.clear()
        code, printed = run(upload.arguments(faults), **upload.keys())
        assert (code, "already complete" in printed, faults.sent) == (0, True, []), printed


def test_a_slow_connection_is_used_to_the_end(upload: Upload) -> None:
    with UploadFaults(upload.gateway, speed=4e6) as faults:
        started = time.monotonic()
        code, printed = run(upload.arguments(faults, "--connections", "2"), **upload.keys())
        assert code == 0, printed
        assert time.monotonic() - started > sum(map(len, FILES.values())) / 4e6 / 2
        assert upload.stored() == FILES
        assert upload.accepted(faults) == dict.fromkeys(EVERY, 1)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("503", "answers 503 SlowDown"),
        ("cut", "the connection was cut"),
        ("corrupt", "answers 400 XAmzContentSHA256Mismatch"),
    ],
)
def test_a_fault_that_stays_ends_the_run_without_marker_and_unfinished_uploads(
    upload: Upload, fault: str, reason: str
) -> None:
    with UploadFaults(upload.gateway) as faults:
        faults.order(fault, "part", 10_000, after=4)
        arguments = upload.arguments(faults, "--connections", "1")
        code, printed = run(arguments, **upload.keys(), KAIGEN_ATTEMPTS="3")
        assert code == 20, printed
        (line,) = [each for each in printed.splitlines() if each.startswith("error: ")]
        assert reason in line
        assert "gave up after 3 attempts" in line
        assert not upload.is_marked()
        assert upload.unfinished() == []
        complete = upload.stored()
        assert BIG in complete
        assert complete.items() < FILES.items()
        upload.accepted(faults)

        faults.order("", "")
        faults.sent.clear()
        code, printed = run(arguments, **upload.keys())
        assert code == 0, printed
        assert upload.stored() == FILES
        assert upload.unfinished() == []
        # Files that were whole are not sent again.
        assert upload.accepted(faults) == {each: 1 for each in EVERY if each[0] not in complete}


def test_access_denied_from_the_middle_on_ends_the_run_and_the_next_finishes_it(upload: Upload) -> None:
    with UploadFaults(upload.gateway) as faults:
        # From the fifth part on nothing is allowed, so the run cannot abort its upload either.
        faults.order("403", "part", 10_000, after=4, then="any")
        arguments = upload.arguments(faults, "--connections", "1")
        code, printed = run(arguments, **upload.keys())
        assert code == 10, printed
        (line,) = [each for each in printed.splitlines() if each.startswith("error: ")]
        assert "access denied: the credentials lack s3:PutObject" in line
        complete = upload.stored()
        assert BIG in complete
        assert complete.items() < FILES.items()
        assert not upload.is_marked()
        assert len(upload.unfinished()) == 1
        upload.accepted(faults)

        faults.order("", "")
        faults.sent.clear()
        code, printed = run(arguments, **upload.keys())
        assert code == 0, printed
        assert "aborted 1 unfinished upload of an earlier run" in printed
        assert upload.stored() == FILES
        assert upload.unfinished() == []
        assert upload.accepted(faults) == {each: 1 for each in EVERY if each[0] not in complete}


def test_an_upload_whose_keys_are_revoked_ends_and_new_ones_finish_it(upload: Upload) -> None:
    """Revoked keys cannot abort the upload, so the next run does."""
    user = f"fired-{upload.prefix}"
    account(upload.gateway, user, exists=True)
    with UploadFaults(upload.gateway, speed=5e6) as faults:
        arguments = upload.arguments(faults, "--connections", "1")
        process = call(arguments, **upload.keys(user))
        assert faults.wait_for_bytes(PART + (PART >> 1)), process.communicate()
        account(upload.gateway, user, exists=False)
        _, printed = process.communicate(timeout=60)
        assert process.returncode == 10, printed
        (line,) = [each for each in printed.splitlines() if each.startswith("error: ")]
        assert line == f"error: {faults.host} rejects the credentials: InvalidAccessKeyId"
        assert "Traceback" not in printed
        assert len(upload.unfinished()) == 1
        assert not upload.is_marked()
        assert upload.stored().keys() <= {"config.json", "sub dir/x+y"}

        account(upload.gateway, user, exists=True)
        faults.speed = 1e12
        code, printed = run(arguments, **upload.keys(user))
        assert code == 0, printed
        assert "aborted 1 unfinished upload of an earlier run" in printed
        assert upload.stored() == FILES
        assert upload.unfinished() == []
    account(upload.gateway, user, exists=False)


def part_sizes() -> list[tuple[str, int]]:
    """Return path and bytes of each part in the order in which one connection sends them."""
    return [(path, min(PART, len(FILES[path]) - (number - 1) * PART)) for path, number in sorted(PARTS)]


def test_runs_that_are_killed_in_the_middle_of_a_part_send_no_whole_file_again(gateway: str, tmp_path: Path) -> None:
    upload, chance = made("put", gateway, tmp_path), random.Random(8)
    with UploadFaults(gateway) as faults:
        arguments = upload.arguments(faults, "--connections", "1")
        for _ in range(12):
            complete = set(upload.stored())
            sizes = [size for path, size in part_sizes() if path not in complete]
            begun = chance.choice([n for n, size in enumerate(sizes) if size == PART][:3])
            faults.sent.clear()
            process = call(arguments, **upload.keys())
            with faults.held(sum(sizes[:begun]) + chance.randrange(1 << 16, PART // 2)):
                process.kill()
                process.communicate()
            assert process.returncode == -signal.SIGKILL
            assert len(upload.unfinished()) == 1
            assert not upload.is_marked()
            assert upload.stored().items() <= FILES.items()
            assert {path for path, _ in upload.accepted(faults)} & complete == set()
        complete = set(upload.stored())
        assert BIG in complete
        faults.sent.clear()
        code, printed = run(arguments, **upload.keys())
        assert code == 0, printed
        assert upload.stored() == FILES
        assert upload.unfinished() == []
        assert upload.accepted(faults) == {each: 1 for each in EVERY if each[0] not in complete}


def test_two_runs_into_one_prefix_leave_one_complete_marker(gateway: str, tmp_path: Path) -> None:
    upload = made("put", gateway, tmp_path)
    with UploadFaults(gateway) as faults:
        pair = [call(upload.arguments(faults), **upload.keys()) for _ in range(2)]
        codes = sorted((process.communicate(timeout=120), process.returncode)[1] for process in pair)
        assert codes in ([0, 0], [0, 20])
        assert upload.is_marked()
        assert upload.stored() == FILES
        assert upload.unfinished() == []
        upload.accepted(faults)
