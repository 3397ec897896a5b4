"""`kaigen lock` for buckets and artifacts: what it writes, and what is rendered and downloaded from it."""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Iterator
from hashlib import md5, sha256
from pathlib import Path

import pytest

from kaigen.lock import buckets
from runtimes.downloader.tests.blobs import ACCOUNT, SAS, Azure, azure
from runtimes.downloader.tests.gcs import Google, Identity
from runtimes.downloader.tests.hub import Hub
from runtimes.downloader.tests.s3 import KEYS, S3, error, moto
from tests.unit.lock.conftest import CONFIG, WEIGHTS, Repository, model_files, safetensors
from tests.unit.lock.registry import Registry
from tests.unit.lock.test_diff import commit
from tests.unit.lock.test_render import TOPOLOGY, cut, download, fetch_arguments, objects, option

__all__ = ["cut"]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with moto() as address:
        yield address


@pytest.fixture
def bucket(server: str, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A bucket with a model below `llm/qwen`, and its keys in the environment of the user."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(repository.root / "no-config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(repository.root / "no-credentials"))
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with S3(server) as found:
        for path, data in model_files().items():
            found.put(f"llm/qwen/{path}", data)
        found.put("llm/qwen/.kaigen/model.json", b"{}")
        found.put("llm/qwen/folder/", b"")
        found.put("llm/qwen-other/model.safetensors", b"another model")
        yield found


@pytest.fixture
def registry() -> Iterator[Registry]:
    """A registry with the model as an artifact, `1`, and as an image, `car`."""
    with Registry() as found:
        found.artifact("1", model_files())
        found.image("car", model_files())
        yield found


def in_bucket(bucket: S3, more: str = "", size: str = "auto", kind: str = "Model") -> str:
    return (
        f"apiVersion: kaigen.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: tuned}}\nspec:\n  source:\n    s3:\n"
        f"      uri: s3://{bucket.bucket}/llm/qwen/\n      endpoint: {bucket.url}\n"
        f"      credentials: {{secret: {{name: keys}}}}\n{more}  store: {{volume: {{size: {size}}}}}\n"
    )


def in_registry(registry: Registry, version: str = ":1", more: str = "", size: str = "auto") -> str:
    return (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: tuned}\nspec:\n  source:\n    oci:\n"
        f"      ref: {registry.host}/acme/weights{version}\n      plainHttp: true\n{more}"
        f"  store: {{volume: {{size: {size}}}}}\n"
    )


def place(bucket: S3) -> str:
    return f"s3://{bucket.bucket}/llm/qwen at {bucket.url.removeprefix('http://')}"


def fetched(repository: Repository, dest: Path, **env: str) -> tuple[int, str]:
    """Run the rendered downloader into a folder."""
    kept = [each for each in fetch_arguments(repository) if not each.startswith(("--facts", "--keep"))]
    return download([f"--dest={dest}" if each.startswith("--dest=") else each for each in kept], **env)


SOURCE_KEYS = {f"SOURCE_{name}": value for name, value in KEYS.items() if name.endswith("KEY_ID") or "SECRET" in name}


def test_a_bucket_is_locked_with_files_and_facts(repository: Repository, bucket: S3) -> None:
    bucket.client.put_bucket_versioning(Bucket=bucket.bucket, VersioningConfiguration={"Status": "Enabled"})
    sums = {path: sha256(data).hexdigest() for path, data in model_files().items()}
    bucket.upload("llm/qwen/README.md", b"# A model\n", Metadata={"sha256": sums["README.md"]})
    bucket.upload("llm/qwen/config.json", model_files()["config.json"], ChecksumAlgorithm="SHA256")
    bucket.asked.clear()
    repository.write(in_bucket(bucket))
    code, printed = repository.run("lock")
    assert code == 0, printed
    found = repository.lock["buckets"][place(bucket)]
    files = found.pop("files")
    assert found == {
        "architecture": "LlamaForCausalLM",
        "parameters": {"BF16": 512 * 512, "F32": 512},
        "weights": 512 * 512 * 2 + 512 * 4,
        "config": CONFIG,
    }
    assert {path: (file["size"], file["etag"]) for path, file in files.items()} == {
        path: (len(data), md5(data).hexdigest()) for path, data in model_files().items()
    }
    assert files["README.md"]["sha256"] == sums["README.md"]
    assert files["config.json"]["sha256"] == sums["config.json"]
    assert "sha256" not in files["model.safetensors"]
    assert files["config.json"]["version"]
    assert "version" not in files["model.safetensors"]
    assert f"{place(bucket)} is 3 files, 514.4 KiB, LlamaForCausalLM" in printed
    # Requests are signed, and only the start of the weights is read.
    assert all("AWS4-HMAC-SHA256" in asked.headers["Authorization"] for asked in bucket.asked)
    (ranged,) = [asked for asked in bucket.asked if re.search("^GET .*model.safetensors", asked.about)]
    assert ranged.headers["Range"] == "bytes=0-65535"


@pytest.fixture
def gcs(server: str, repository: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
    """A bucket of Google with a model below `llm/qwen`; the user has a token for it."""
    who = Identity()
    with S3(server) as found:
        monkeypatch.setattr(buckets, "GOOGLE", found.url)
        monkeypatch.setenv("PATH", str(repository.root))
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", who.issue()["access_token"])
        for path, data in model_files().items():
            found.put(f"llm/qwen/{path}", data)
        yield Google(found, who)


def of_google(gcs: Google) -> str:
    return (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: tuned}\nspec:\n"
        f"  source: {{s3: {{uri: gs://{gcs.s3.bucket}/llm/qwen}}}}\n  store: {{volume: {{size: auto}}}}\n"
    )


def test_a_bucket_of_google_is_locked_with_the_token_of_the_user(repository: Repository, gcs: Google) -> None:
    sums = {path: sha256(data).hexdigest() for path, data in model_files().items()}
    gcs.s3.upload("llm/qwen/README.md", b"# A model\n", Metadata={"sha256": sums["README.md"]})
    repository.write(of_google(gcs))
    code, printed = repository.run("lock")
    assert code == 0, printed
    files = repository.lock["buckets"][f"gs://{gcs.s3.bucket}/llm/qwen"]["files"]
    assert files["README.md"]["sha256"] == sums["README.md"]
    assert {path: file["size"] for path, file in files.items()} == {
        path: len(data) for path, data in model_files().items()
    }


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", "hint: log in with `gcloud auth login`"),
        ("#!/bin/sh\nexit 1\n", "gcloud has no account"),
        ("#!/bin/sh\n[ \"$*\" = 'auth print-access-token' ] && echo TOKEN\n", ""),
    ],
)
def test_without_a_token_gcloud_is_asked(
    repository: Repository, gcs: Google, monkeypatch: pytest.MonkeyPatch, script: str, expected: str
) -> None:
    token = gcs.identity.issue()["access_token"]
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    if script:
        gcloud = repository.root / "gcloud"
        gcloud.write_text(script.replace("TOKEN", token))
        gcloud.chmod(0o755)
    repository.write(of_google(gcs))
    code, printed = repository.run("lock")
    assert code == (2 if expected else 0), printed
    assert expected in printed


def test_a_token_without_permission_is_not_shown_the_bucket(repository: Repository, gcs: Google) -> None:
    gcs.identity.valid.clear()
    repository.write(of_google(gcs))
    code, printed = repository.run("lock")
    assert code == 2
    assert "hint: log in with `gcloud auth login`" in printed
    assert "ya29" not in printed


def test_everything_of_a_bucket_is_rendered_with_the_network_cut(
    repository: Repository, bucket: S3, cut: Callable[[], None]
) -> None:
    large = {**CONFIG, "num_hidden_layers": 40}
    for path, data in model_files(large, safetensors({"w": ("BF16", [4096, 4096])}, 100_000)).items():
        bucket.put(f"llm/qwen/{path}", data)
    repository.write(in_bucket(bucket) + TOPOLOGY)
    code, printed = repository.run("render")
    assert code == 2
    assert "run `kaigen lock`, set `facts`, or set a size" in printed
    assert repository.run("lock")[0] == 0
    assert repository.lock["buckets"][place(bucket)]["parameters"] == {"BF16": 4096 * 4096}
    cut()
    code, printed = repository.run("render")
    assert code == 0, printed
    assert "KG0310" not in printed
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"
    assert re.fullmatch("3:[0-9]+:[0-9a-f]{64}", option(fetch_arguments(repository), "locked"))
    for arguments in (["validate"], ["lock", "--check"], ["graph"]):
        code, printed = repository.run(*arguments)
        assert code == 0, printed
    code, printed = repository.run("plan", "specs")
    assert code == 0, printed
    assert "32768" in printed
    code, printed = repository.run("plan", "--model", place(bucket), "--instance-type", "g6.xlarge")
    assert code == 0, printed


def test_the_downloader_accepts_a_locked_bucket_and_refuses_other_files(
    repository: Repository, bucket: S3, tmp_path: Path
) -> None:
    repository.write(in_bucket(bucket, '      exclude: ["*.md"]\n'))
    assert repository.run("lock")[0] == 0
    assert repository.run("render")[0] == 0
    code, printed = fetched(repository, tmp_path / "one", **SOURCE_KEYS)
    assert code == 0, printed
    assert (tmp_path / "one/model.safetensors").read_bytes() == WEIGHTS
    assert not (tmp_path / "one/README.md").exists()
    # The revision in the spec is the same download as the one of the lock.
    locked = option(fetch_arguments(repository), "locked")
    identity = option(fetch_arguments(repository), "identity")
    repository.write(in_bucket(bucket, f'      exclude: ["*.md"]\n      revision: {locked}\n'))
    assert repository.run("lock", "--check")[0] == 0
    assert repository.run("render")[0] == 0
    assert option(fetch_arguments(repository), "identity") == identity

    bucket.put("llm/qwen/model.safetensors", WEIGHTS[:-1] + b"x")
    code, printed = fetched(repository, tmp_path / "two", **SOURCE_KEYS)
    assert code == 10
    assert "are not those of the revision" in printed
    assert not (tmp_path / "two/.kaigen/model.json").exists()
    code, printed = repository.run("lock", "--upgrade")
    assert code == 2
    assert "specs/a.yaml:11:" in printed
    assert "does not have the files of `revision`" in printed


def test_the_transfer_list_has_the_files_of_a_locked_bucket_and_artifact(
    repository: Repository, bucket: S3, registry: Registry
) -> None:
    repository.write(in_bucket(bucket, '      exclude: ["*.md"]\n', size="5Gi"))
    repository.write(in_registry(registry, size="5Gi").replace("tuned", "car"), "specs/b.yaml")
    code, printed = repository.run("mirror", "--list")
    assert code == 0, printed
    assert f"model\ts3://{bucket.bucket}/llm/qwen/\t-\t{bucket.url}/{bucket.bucket}/llm/qwen\t-\t-" in printed
    repository.run("lock")
    code, printed = repository.run("-q", "mirror", "--list", "-o", "json")
    assert code == 0, printed
    artifact, found = json.loads(printed)[0]["models"]
    assert {each["path"] for each in found["files"]} == {"config.json", "model.safetensors"}
    assert found["bytes"] == len(WEIGHTS) + len(model_files()["config.json"])
    assert artifact["revision"] == registry.artifact("1", model_files())
    assert artifact["target"] == f"http://{registry.host}/acme/weights"
    assert {each["path"]: each["sha256"] for each in artifact["files"]} == {
        path: sha256(data).hexdigest() for path, data in model_files().items()
    }
    assert "may change" not in repository.run("mirror", "--list")[1]


def test_a_bucket_that_changed_is_explained_in_words(repository: Repository, bucket: S3) -> None:
    repository.write(in_bucket(bucket, size="5Gi"))
    repository.run("lock")
    repository.run("render")
    commit(repository)
    bucket.put("llm/qwen/config.json", json.dumps({**CONFIG, "max_position_embeddings": 65536}).encode())
    bucket.put("llm/qwen/LICENSE", b"...")
    assert repository.run("lock", "--check")[0] == 0
    code, printed = repository.run("lock", "--check", "--upgrade", "tuned")
    assert code == 1
    assert "1 file added (LICENSE), 1 file changed (config.json)" in printed
    assert "config.json changes max_position_embeddings" in printed
    assert repository.run("lock", "--upgrade", f"s3://{bucket.bucket}/llm/qwen")[0] == 0
    code, printed = repository.run("diff")
    assert code == 0, printed
    said = " ".join(printed.split())
    assert f"{place(bucket)} 1 file added (LICENSE), 1 file changed (config.json)" in said
    assert "config.json changes max_position_embeddings" in said


def test_a_dataset_of_a_bucket_has_no_facts(repository: Repository, bucket: S3) -> None:
    bucket.put("llm/qwen/config.json", b"[]")
    repository.write(in_bucket(bucket, kind="Dataset"))
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert repository.lock["buckets"][place(bucket)]["config"] == {}
    assert repository.run("render")[0] == 0
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"
    # A Model of the same files needs their facts.
    repository.write(in_bucket(bucket).replace("tuned", "other"), "specs/b.yaml")
    code, printed = repository.run("lock", "--upgrade")
    assert code == 3
    assert "config.json is not a mapping" in printed


@pytest.mark.parametrize(
    ("status", "code", "expected", "exit_code"),
    [
        (403, "AccessDenied", "does not show", 2),
        (404, "NoSuchBucket", "the server has no s3://", 2),
        (400, "BadDigest", "answered HTTP 400 (BadDigest)", 3),
    ],
)
def test_a_refusal_of_a_server_is_reported_at_the_source(
    repository: Repository, bucket: S3, status: int, code: str, expected: str, exit_code: int
) -> None:
    repository.write(in_bucket(bucket))
    bucket.fail(9, "list-type=2", error(status, code))
    found, printed = repository.run("lock")
    assert found == exit_code, printed
    assert "specs/a.yaml:7:" in printed
    assert expected in printed
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in printed


@pytest.mark.parametrize("key", ["llm/qwen-other/model", "other", "/llm/qwen/model", "LLM/qwen/model", "llm/qwe"])
def test_a_server_that_lists_a_key_outside_the_prefix_is_refused(repository: Repository, bucket: S3, key: str) -> None:
    listing = (
        f"<ListBucketResult><Name>x</Name><Contents><Key>{key}</Key><Size>1</Size><ETag>x</ETag></Contents>"
        "<IsTruncated>false</IsTruncated></ListBucketResult>"
    )
    bucket.fail(9, "list-type=2", lambda handler: handler.reply(200, listing.encode()))
    repository.write(in_bucket(bucket))
    code, printed = repository.run("lock")
    assert (code, f"lists '{key}', which is not below the prefix" in printed) == (3, True), printed
    assert not (repository.root / "kaigen.lock").exists()


def test_a_bucket_without_credentials_or_files_is_reported(
    repository: Repository, bucket: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(in_bucket(bucket).replace("llm/qwen/", "nothing"))
    code, printed = repository.run("lock")
    assert (code, "has no files" in printed) == (2, True), printed
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    code, printed = repository.run("lock")
    assert (code, "there are no credentials for" in printed) == (2, True), printed


def test_without_boto3_the_message_names_the_extra(
    repository: Repository, bucket: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.write(in_bucket(bucket))
    monkeypatch.setitem(sys.modules, "botocore", None)
    code, printed = repository.run("lock")
    assert code == 3
    assert 'pip install "kaigen[lock]"' in printed


def test_an_artifact_is_locked_with_layers_and_facts(
    repository: Repository, registry: Registry, tmp_path: Path
) -> None:
    registry.login = "ada:correct-horse"
    repository.write(in_registry(registry))
    code, printed = repository.run("lock")
    assert code == 3
    assert "requires credentials" in printed
    auth = base64.b64encode(registry.login.encode()).decode()
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker/config.json").write_text(json.dumps({"auths": {registry.host: {"auth": auth}}}))
    code, printed = repository.run("lock")
    assert code == 0, printed
    name = f"{registry.host}/acme/weights:1"
    assert repository.lock["artifacts"][name] == {
        "digest": registry.artifact("1", model_files()),
        "licence": "",
        "isImage": False,
        "architecture": "LlamaForCausalLM",
        "parameters": {"BF16": 512 * 512, "F32": 512},
        "weights": 512 * 512 * 2 + 512 * 4,
        "config": CONFIG,
        "files": {
            path: {"size": len(data), "sha256": sha256(data).hexdigest()} for path, data in model_files().items()
        },
    }
    weights = f"/v2/acme/weights/blobs/sha256:{sha256(WEIGHTS).hexdigest()}"
    assert ("GET", weights, "bytes=0-65535") in registry.asked


def test_the_downloader_fetches_the_locked_artifact(repository: Repository, registry: Registry, tmp_path: Path) -> None:
    repository.write(in_registry(registry))
    assert repository.run("lock")[0] == 0
    code, printed = repository.run("render")
    assert code == 0, printed
    assert "KG0310" not in printed
    digest = registry.artifact("1", model_files())
    assert option(fetch_arguments(repository), "ref") == f"{registry.host}/acme/weights:1@{digest}"
    (claim,) = objects(repository, "PersistentVolumeClaim")
    assert claim["spec"]["resources"]["requests"]["storage"] == "4Gi"
    # The tag moves; the lock does not.
    moved = registry.artifact("1", model_files() | {"README.md": b"moved"})
    code, printed = fetched(repository, tmp_path / "one")
    assert code == 0, printed
    assert (tmp_path / "one/README.md").read_bytes() == b"# A model\n"
    code, printed = repository.run("lock", "--upgrade", "acme/weights")
    assert f"moves from {digest[:19]} to {moved[:19]}; 1 file changed (README.md)" in printed


def test_a_pinned_artifact_is_locked_by_its_digest(repository: Repository, registry: Registry) -> None:
    repository.write(in_registry(registry))
    assert repository.run("lock")[0] == 0
    assert repository.run("render")[0] == 0
    identity = option(fetch_arguments(repository), "identity")
    code, printed = repository.run("pin")
    assert code == 0, printed
    assert "@sha256:" in (repository.root / "specs/a.yaml").read_text()
    assert repository.run("lock", "--check")[0] == 1
    assert repository.run("lock")[0] == 0
    assert repository.run("render")[0] == 0
    assert option(fetch_arguments(repository), "identity") == identity


def test_an_image_has_room_for_its_layers_and_files(repository: Repository, registry: Registry) -> None:
    registry.image("car", {"model.safetensors": bytes(300)})
    repository.write(in_registry(registry, ":car"))
    code, printed = repository.run("lock")
    assert code == 0, printed
    (found,) = repository.lock["artifacts"].values()
    assert found["isImage"] is True
    assert found["config"] == {}
    ((layer, file),) = found["files"].items()
    assert layer == f"sha256:{file['sha256']}"
    assert "1 layer" in printed
    text = json.loads((repository.root / "kaigen.lock").read_text())
    text["artifacts"][f"{registry.host}/acme/weights:car"]["files"][layer]["size"] = 1 << 30
    (repository.root / "kaigen.lock").write_text(json.dumps(text))
    assert repository.run("render")[0] == 0
    (claim,) = objects(repository, "PersistentVolumeClaim")
    # Layers and files have 3 GiB. With a tenth and 2 GiB more, that is 6 GiB for each of two revisions.
    assert claim["spec"]["resources"]["requests"]["storage"] == "12Gi"


def test_an_artifact_that_does_not_exist_is_reported(repository: Repository, registry: Registry) -> None:
    repository.write(in_registry(registry, ":nope"))
    code, printed = repository.run("lock")
    assert code == 2
    assert "specs/a.yaml:7:" in printed
    assert f"has no {registry.host}/acme/weights:nope" in printed


def test_a_dataset_of_the_hub_is_locked(repository: Repository) -> None:
    with Hub(repo="datasets/owner/name", card={"license": "mit"}) as hub:
        hub.commit({"config.json": b"[]", "train.parquet": b"rows"})
        repository.write(
            "apiVersion: kaigen.dev/v1alpha1\nkind: Dataset\nmetadata: {name: rows}\nspec:\n  source:\n"
            f"    huggingFace: {{repo: owner/name, endpoint: '{hub.url}'}}\n"
            "  store: {volume: {size: auto}}\n"
        )
        code, printed = repository.run("lock")
        assert code == 0, printed
        (found,) = repository.lock["models"].values()
        assert found["licence"] == "mit"
        assert list(repository.lock["models"]) == [f"{hub.url}/datasets/owner/name@main"]
        assert repository.run("render")[0] == 0
        assert option(fetch_arguments(repository), "revision") == hub.revisions["main"]
        assert option(fetch_arguments(repository), "locked").startswith("2:")


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Azure]:
    """A container with a model below `llm/qwen`; the user has a shared access signature for it."""
    with azure(tmp_path) as (found, _):
        found.page = 2
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", SAS)
        monkeypatch.setenv("PATH", str(tmp_path))
        for path, data in model_files().items():
            found.put(f"llm/qwen/{path}", data)
        found.put("llm/qwen-other/model.safetensors", b"another model")
        yield found


def of_azure(pod: Azure, endpoint: str = "") -> str:
    return (
        "apiVersion: kaigen.dev/v1alpha1\nkind: Model\nmetadata: {name: tuned}\nspec:\n"
        f"  source: {{s3: {{uri: az://{ACCOUNT}/models/llm/qwen, endpoint: '{endpoint or f'{pod.url}/{ACCOUNT}'}', "
        "credentials: {secret: {name: keys}}}}\n  store: {volume: {size: auto}}\n"
    )


def test_a_container_of_azure_is_locked_with_a_signature_of_the_user(repository: Repository, pod: Azure) -> None:
    sums = {path: sha256(data).hexdigest() for path, data in model_files().items()}
    pod.blobs["llm/qwen/README.md"].metadata["sha256"] = sums["README.md"]
    repository.write(of_azure(pod))
    code, printed = repository.run("lock")
    assert code == 0, printed
    (entry,) = repository.lock["buckets"].values()
    assert entry["files"]["README.md"]["sha256"] == sums["README.md"]
    assert {path: file["size"] for path, file in entry["files"].items()} == {
        path: len(data) for path, data in model_files().items()
    }
    assert len(pod.requests("comp=list")) > 1


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (403, "AuthenticationFailed", "does not show az://acmemodels/models/llm/qwen"),
        (404, "ContainerNotFound", "the server has no az://"),
    ],
)
def test_a_container_that_is_not_shown_is_an_error(
    repository: Repository, pod: Azure, status: int, code: str, expected: str
) -> None:
    pod.fail(9, "comp=list", status, code)
    repository.write(of_azure(pod))
    exit_code, printed = repository.run("lock")
    assert (exit_code != 0, expected in printed) == (True, True), printed


def test_credentials_of_azure_are_sent_to_the_account_only(repository: Repository, pod: Azure) -> None:
    repository.write(of_azure(pod, "https://acmemodels.blob.core.windows.net.example.com"))
    code, printed = repository.run("lock")
    assert (code != 0, "are not sent to https://acmemodels.blob" in printed) == (True, True), printed


def test_a_container_needs_a_login_or_a_signature(
    repository: Repository, pod: Azure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_SAS_TOKEN")
    repository.write(of_azure(pod))
    code, printed = repository.run("lock")
    assert (code != 0, "log in with `az login`" in printed) == (True, True), printed
    assert not pod.asked
