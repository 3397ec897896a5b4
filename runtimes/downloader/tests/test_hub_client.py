"""The listing of a repository, compared with that of huggingface_hub."""

from __future__ import annotations

import string
import threading
from collections.abc import Callable

import pytest
from hub import COMMIT, Handler, Hub
from huggingface_hub import HfApi, RepoFile, hf_hub_url
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kaigen_downloader.errors import BadInput, Failure, Unavailable
from kaigen_downloader.hub import Repository, check_repository
from kaigen_downloader.net import Net
from kaigen_downloader.remote import RemoteFile, Snapshot
from kaigen_downloader.retry import Patience, Retry

NAMES = st.text(st.sampled_from("aZ09._-/é é"), max_size=9) | st.sampled_from(
    ["a" * 96, "a" * 97, "b/" + "a" * 96, "b/" + "a" * 97, "o/n.git", "o/n", "a\n"]
)
PATHS = st.lists(
    st.text(st.sampled_from(string.ascii_letters + string.digits + " ._-+%#?&=é"), min_size=1, max_size=12).filter(
        lambda name: name.strip(".") != ""
    ),
    min_size=1,
    max_size=3,
).map("/".join)


def listing(hub: Hub, revision: str = "main", attempts: int = 1) -> Snapshot:
    stop = threading.Event()
    source = Repository(hub.url, hub.repo, revision, duplicates=True)
    net = Net(source.endpoint, None, timeout=5, stop=stop)
    try:
        return source.snapshot(net, Retry(Patience(attempts=attempts, base=0.01), stop), token=False)
    finally:
        net.close()


def theirs(hub: Hub) -> list[RemoteFile]:
    kind = "dataset" if hub.repo.startswith("datasets/") else "model"
    repo = hub.repo.removeprefix("datasets/")
    found = []
    api = HfApi(endpoint=hub.url, token=False)
    for entry in api.list_repo_tree(repo, repo_type=kind, recursive=True, revision=COMMIT):
        if not isinstance(entry, RepoFile):
            continue
        url = hf_hub_url(repo, entry.path, repo_type=kind, revision=COMMIT, endpoint=hub.url)
        size, sha256 = (entry.lfs.size, entry.lfs.sha256) if entry.lfs else (entry.size, None)
        found.append(RemoteFile(entry.path, size, sha256, None if entry.lfs else entry.blob_id, url))
    return sorted(found, key=lambda file: file.path)


@given(NAMES)
@example("owner/name")
@example("datasets/owner/name")
def test_names_are_those_that_huggingface_hub_allows(name: str) -> None:
    try:
        validate_repo_id(name)
    except HFValidationError:
        with pytest.raises(BadInput, match="not a repository name"):
            check_repository(name)
    else:
        if name.isascii():  # Its pattern lets letters of all languages pass, which the Hub does not allow.
            check_repository(name)


@pytest.mark.parametrize("repo", ["owner/name", "gpt2", "datasets/owner/name"])
@settings(deadline=None)  # It starts a server.
@given(paths=st.lists(PATHS, min_size=1, max_size=12, unique_by=str.casefold), page=st.integers(1, 5))
def test_a_listing_is_that_of_huggingface_hub(repo: str, paths: list[str], page: int) -> None:
    with Hub(repo=repo, page=page) as hub:
        for number, path in enumerate(paths):
            hub.add(path, bytes(number), lfs=number % 2 == 0)
        try:
            found = listing(hub)
        except BadInput:
            return  # Such as a file and a folder of one name, which is tested elsewhere.
        assert found.commit == COMMIT
        assert list(found.files) == theirs(hub)


@pytest.mark.parametrize("revision", ["main", "refs/pr/1", "a b?c#d"])
def test_a_revision_may_have_any_name(revision: str) -> None:
    with Hub(revisions={revision: COMMIT, COMMIT: COMMIT}) as hub:
        hub.add("config.json", b"{}")
        assert listing(hub, revision).commit == COMMIT


def answer(document: object, **headers: str) -> Callable[[Handler], None]:
    return lambda handler: handler.json(document, headers)


ENTRY = {"type": "file", "path": "a", "size": 1, "oid": "0" * 40}


@pytest.mark.parametrize(
    "page",
    [
        None,
        3,
        {},
        [None],
        [[]],
        [{}],
        [ENTRY | {"size": "1"}],
        [ENTRY | {"size": float("inf")}],
        [ENTRY | {"path": 3}],
        [ENTRY | {"oid": None}],
        [ENTRY | {"lfs": 1}],
        [ENTRY | {"lfs": {"size": 1}}],
    ],
)
def test_a_malformed_page_is_reported(page: object) -> None:
    with Hub() as hub:
        hub.fail(1, "hub", answer(page), "/tree/")
        with pytest.raises(Unavailable, match="does not respond like a Hub"):
            listing(hub)


@pytest.mark.parametrize("sha", [None, 3, "", "main", ["0" * 40], "../../x"])
def test_an_answer_without_a_commit_is_reported(sha: object) -> None:
    with Hub() as hub:
        hub.fail(1, "hub", answer({"sha": sha}), "/revision/")
        with pytest.raises(Unavailable, match="returns no commit"):
            listing(hub)


def test_a_page_may_name_the_next_one_without_its_host_and_among_other_links() -> None:
    link = '</a>; rel="prev", </api/models/owner/name/tree/' + COMMIT + '?cursor=1>; title="x"; rel=next'
    with Hub() as hub:
        hub.add("config.json", b"{}")
        hub.fail(1, "hub", answer([ENTRY], Link=link), "/tree/")
        assert [file.path for file in listing(hub).files] == ["a", "config.json"]


def test_a_listing_without_end_ends() -> None:
    with Hub() as hub:
        link = f'<{hub.url}/api/models/owner/name/tree/{COMMIT}>; rel="next"'
        hub.fail(10**6, "hub", answer([], Link=link), "/tree/")
        with pytest.raises(Unavailable, match="endless listing"):
            listing(hub)
        assert len(hub.requests("hub", "/tree/")) <= 2001


def test_a_renamed_repository_is_found() -> None:
    with Hub() as hub:
        hub.add("config.json", b"{}")
        to = "/api/models/owner/name/revision/main"
        hub.fail(1, "hub", lambda handler: handler.reply(307, b"", {"Location": to}), "/revision/")
        assert listing(hub).commit == COMMIT


def test_redirects_without_end_are_refused() -> None:
    with Hub() as hub:
        loop = f"{hub.url}/api/models/owner/name/revision/main"
        hub.fail(100, "hub", lambda handler: handler.reply(307, b"", {"Location": loop}), "/revision/")
        with pytest.raises(Failure, match="too many redirects"):
            listing(hub, attempts=3)
        assert len(hub.requests("hub")) == 8
