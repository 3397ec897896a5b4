"""What `kaigen lock` does where a registry or the Hub does not answer."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from runtimes.downloader.tests.hub import Hub
from tests.unit.lock.conftest import Repository, model
from tests.unit.oci.web import Web
from tests.unit.pin.conftest import DIGEST


@dataclass
class Silent:
    """A server that accepts connections and says nothing."""

    host: str
    accepted: list[socket.socket] = field(default_factory=list)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Silent]:
    """A server that says nothing, to clients that wait a fifth of a second."""
    for module in ("kaigen.lock.registries", "kaigen.hub.client"):
        monkeypatch.setattr(f"{module}._TIMEOUT_S", 0.2)
    listener = socket.create_server(("127.0.0.1", 0))
    found = Silent(f"127.0.0.1:{listener.getsockname()[1]}")

    def accept() -> None:
        while True:
            try:
                found.accepted.append(listener.accept()[0])
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield found
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(5)
    for each in found.accepted:
        each.close()


def job(name: str, image: str) -> str:
    return (
        f"apiVersion: kaigen.dev/v1alpha1\nkind: Job\nmetadata: {{name: {name}}}\n"
        f"spec: {{image: '{image}', command: ['true'], resources: {{cpu: 100m, memory: 64Mi}}}}\n"
    )


def test_a_silent_registry_is_asked_about_one_image_only_and_the_hint_is_followed(
    repository: Repository, silent: Silent, hub: Hub
) -> None:
    jobs = [job(name, f"{silent.host}/acme/{name}:1") for name in ("a", "b")]
    repository.write("---\n".join([*jobs, model(hub)]))
    code, printed = repository.run("lock")
    assert code == 3
    assert printed.count(f"cannot reach the registry {silent.host}: timed out") == 2
    assert "(of ml/a)" in printed
    assert "or leave images out with --no-images" in printed
    assert len(silent.accepted) == 3
    assert not (repository.root / "kaigen.lock").exists()

    code, printed = repository.run("lock", "--no-images")
    assert code == 0, printed
    assert len(repository.lock["models"]) == 1
    assert repository.lock["images"] == {}
    assert len(silent.accepted) == 3


def test_digests_of_a_registry_that_is_not_reached_are_those_of_the_mirror(
    repository: Repository, silent: Silent, images: Web
) -> None:
    repository.write(job("a", f"{silent.host}/acme/tune:1"))
    repository.configure(f"registry: {{rules: [{{from: '{silent.host}/acme', to: '{images.host}/acme'}}]}}\n")
    code, printed = repository.run("lock")
    assert code == 0, printed
    assert repository.lock["images"][f"{silent.host}/acme/tune:1"] == DIGEST


def test_images_of_the_lock_stay_without_images(repository: Repository, images: Web) -> None:
    name = f"{images.host}/acme/tune:1"
    repository.write(job("a", name))
    assert repository.run("lock")[0] == 0
    before = repository.lock
    asked = len(images.asked)
    code, printed = repository.run("lock", "--upgrade", "--no-images", "-o", "json")
    assert (code, json.loads(printed)["changes"]) == (0, {})
    assert repository.lock == before
    assert len(images.asked) == asked
    assert repository.run("lock", "--no-images", "--built")[0] == 2


def test_a_silent_hub_is_named_with_what_to_do(repository: Repository, silent: Silent, hub: Hub) -> None:
    repository.write(model(hub).replace(hub.url, f"http://{silent.host}"))
    code, printed = repository.run("lock")
    assert code == 3
    assert f"cannot reach the Hub {silent.host}: timed out" in printed
    assert "behind a proxy, set HTTPS_PROXY" in printed
