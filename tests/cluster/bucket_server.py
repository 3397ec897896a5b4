"""A real S3 server that checks signatures and checksums, and runs of the downloader with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from tests.cluster.processes import Command, Processes, free_ports, listening
from tests.cluster.tools.parts import locate_part

KEYS = ("reader", "correct-horse-battery")
"""Name and secret of the administrator."""
PACKAGE = Path(__file__).parents[2] / "runtimes" / "downloader"
PART = 5 << 20
"""Bytes of the smallest part that S3 allows before the last."""


@contextmanager
def bucket_server(folder: Path) -> Iterator[str]:
    """Run versitygw with the empty bucket `models`; yield its address.

    Args:
        folder: an empty one, for its data.
    """
    for name in ("data", "iam"):
        (folder / name).mkdir()
    (port,) = free_ports(1)
    host = f"127.0.0.1:{port}"
    argv = [str(locate_part("versitygw")), "--port", host, "--quiet", "--iam-dir", str(folder / "iam")]
    keys = {"ROOT_ACCESS_KEY": KEYS[0], "ROOT_SECRET_KEY": KEYS[1]}
    processes = Processes(folder, folder / "scratch")
    try:
        processes.start(Command("versitygw", [*argv, "posix", str(folder / "data")], keys))
        processes.wait_until(partial(listening, port, "127.0.0.1"), "the gateway listens")
        client(host).create_bucket(Bucket="models")
        yield host
    finally:
        processes.close()


def client(host: str) -> Any:
    """Return a client of the S3 server."""
    return boto3.client(
        "s3",
        endpoint_url=f"http://{host}",
        region_name="us-east-1",
        aws_access_key_id=KEYS[0],
        aws_secret_access_key=KEYS[1],
    )


def account(gateway: str, name: str, *, exists: bool) -> None:
    """Make an account that may use the bucket, or delete it."""
    argv = [str(locate_part("versitygw")), "admin", "--access", KEYS[0], "--secret", KEYS[1]]
    argv += ["--endpoint-url", f"http://{gateway}", "create-user" if exists else "delete-user", "--access", name]
    subprocess.run([*argv, *(["--secret", KEYS[1], "--role", "user"] if exists else [])], check=True)
    if exists:
        resources = ["arn:aws:s3:::models", "arn:aws:s3:::models/*"]
        allowed = {"Effect": "Allow", "Principal": {"AWS": [name]}, "Action": "s3:*", "Resource": resources}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        client(gateway).put_bucket_policy(Bucket="models", Policy=policy)


def call(arguments: list[str], **env: str) -> subprocess.Popen[str]:
    """Start the downloader."""
    plain = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PACKAGE), "HOME": "/nonexistent"}
    fast = {"KAIGEN_BACKOFF": "0.02", "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.Popen(
        [sys.executable, "-m", "kaigen_downloader", *arguments],
        env=plain | fast | env,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(arguments: list[str], **env: str) -> tuple[int, str]:
    """Return the exit code of the downloader and what it printed."""
    process = call(arguments, **env)
    _, printed = process.communicate(timeout=120)
    return process.returncode, printed
