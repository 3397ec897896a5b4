"""Asks the Hub, Git servers and registries which commit or digest a name stands for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, urlsplit

from kaigen.diagnostics.errors import SystemFailure
from kaigen.git.failures import mask
from kaigen.git.refs import remote_commit
from kaigen.kubernetes.image_names import ImageName
from kaigen.oci.http import Opener, user_agent
from kaigen.oci.registry import LATEST, registry_of
from kaigen.pin.names import COMMIT, Name

HUB = "https://huggingface.co"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Resolver:
    """Answers of the Hub, Git servers and registries, each asked once."""

    def __init__(
        self, hub: str = "", *, plain_http: bool = False, pause: Callable[[float], object] | None = None
    ) -> None:
        """Ask nothing yet.

        Args:
            hub: URL of the Hub where a spec names none; empty for the environment variable or the public Hub.
            plain_http: connect to remote registries without TLS.
            pause: waits some seconds after a failed attempt; None for `sleep`.
        """
        self._hub = hub or os.environ.get("HF_ENDPOINT") or HUB
        self._plain_http = plain_http
        self._pause = pause
        self._answers: dict[tuple[str, str, str], str | SystemFailure] = {}

    def resolve(self, name: Name) -> str:
        """Return the commit or digest that a name stands for.

        Raises:
            SystemFailure: the server cannot be reached, does not know the name, or gives no valid answer.
        """
        image = name.image
        key = (
            (image.registry, image.repository, image.tag)
            if image
            else (name.git or name.endpoint, name.repo, name.moving)
        )
        if key not in self._answers:
            try:
                self._answers[key] = self.digest(image) if image else self._commit(name)
            except SystemFailure as error:
                self._answers[key] = error
        answer = self._answers[key]
        if isinstance(answer, SystemFailure):
            raise answer
        return answer

    def digest(self, image: ImageName) -> str:
        """Return the digest of an image or index.

        Raises:
            SystemFailure: the registry cannot be reached, or does not have the image.
        """
        digest = self.find_digest(image)
        if digest is None:
            tag = image.tag or LATEST
            raise SystemFailure(f"the registry {image.registry} has no {image.repository}:{tag}")
        return digest

    def find_digest(self, image: ImageName) -> str | None:
        """Return the digest of an image or index; None if the registry does not have it.

        Raises:
            SystemFailure: the registry cannot be reached, or rejects the request.
        """
        registry = registry_of(image, plain_http=self._plain_http)
        return registry.digest(image.tag or LATEST)

    def git_commit(self, url: str, name: str) -> str:
        """Return the commit of a branch or a tag of a Git repository.

        Raises:
            SystemFailure: the server cannot be reached, or does not have the branch or tag.
        """
        commit = remote_commit(url, name)
        if commit is None or not COMMIT.fullmatch(commit):
            hint = "set all 40 digits if it is a commit"
            raise SystemFailure(f"{mask(url)} has no branch or tag `{name}`", hint=hint)
        return commit

    def _commit(self, name: Name) -> str:
        if name.git:
            return self.git_commit(name.git, name.moving)
        endpoint = (name.endpoint or self._hub).rstrip("/")
        host = urlsplit(endpoint).netloc.rpartition("@")[2]
        headers = {"Accept": "application/json", "User-Agent": user_agent()}
        token = _hub_token()
        if token and is_trusted(endpoint):
            headers["Authorization"] = f"Bearer {token}"
        url = f"{endpoint}/api/models/{quote(name.repo)}/revision/{quote(name.moving, safe='')}"
        response = Opener(self._pause, "the Hub").send("GET", url, headers)
        if response.status == 404:
            raise SystemFailure(f"the Hub {host} has no `{name.moving}` of {name.repo}")
        if response.status in {401, 403}:
            hint = "set HF_TOKEN to a token that may read it" if not token else "use a token that may read it"
            raise SystemFailure(f"the Hub {host} does not show {name.repo}, or it does not exist", hint=hint)
        if response.status != 200:
            raise SystemFailure(f"the Hub {host} answered HTTP {response.status} for {name.repo}")
        try:
            commit = json.loads(response.body)["sha"]
        except (ValueError, KeyError, TypeError):
            commit = None
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
            raise SystemFailure(f"the Hub {host} named no commit for `{name.moving}` of {name.repo}")
        return commit


def is_trusted(endpoint: str) -> bool:
    """Return whether a token may be sent to a server: one with TLS, or this machine."""
    parts = urlsplit(endpoint)
    return parts.scheme == "https" or parts.hostname in _LOOPBACK


def _hub_token() -> str:
    """Return the token of the user, as `hf auth login` stores it; empty without one."""
    own = os.environ.get("HF_TOKEN", "").strip()
    if own:
        return own
    home = os.environ.get("HF_HOME") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    try:
        return Path(os.environ.get("HF_TOKEN_PATH") or os.path.join(home, "token")).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
