"""Which client of an Endpoint may use which model: the table, its file for Envoy's scripts, and its answers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

ACCESS_FILE = "access"
"""Name of the file."""

NOBODY, NOT_ALLOWED, NOT_FOUND = 401, 403, 404
"""Statuses of requests without a key, for a model that is not the client's, and for one that is not served."""


class Client(Struct, frozen=True):
    """A client.

    Attributes:
        rate: requests a minute; None for any number.
        models: names of the models that it may use, sorted.
    """

    rate: int | None
    models: tuple[str, ...]

    @property
    def pace(self) -> str:
        """How often it may ask, in words."""
        if self.rate is None:
            return "any number of times"
        return f"{self.rate} {'time' if self.rate == 1 else 'times'} a minute"


class Access(Struct, frozen=True):
    """Who may use what.

    Attributes:
        clients: the clients by name.
        models: the Topology that serves a model, by the name of the model.
        guarded: the Topologies that require a key of their own.
    """

    clients: Mapping[str, Client]
    models: Mapping[str, str]
    guarded: frozenset[str] = frozenset()

    def answer(self, client: str | None, model: str) -> str | int:
        """Return the Topology that a request reaches, or the status of the answer.

        Args:
            client: the client whose key the request has; None for none.
            model: the model that its body names.
        """
        if client is None or client not in self.clients:
            return NOBODY
        if model not in self.models:
            return NOT_FOUND
        return self.models[model] if model in self.clients[client].models else NOT_ALLOWED

    def text(self) -> str:
        """Return the file: a word, then names, none of which has a blank."""
        lines = [f"model {name} {topology}" for name, topology in sorted(self.models.items())]
        lines += [f"guarded {topology}" for topology in sorted(self.guarded)]
        for name, client in sorted(self.clients.items()):
            lines.append(f"client {name} {client.rate or '-'}")
            lines += [f"may {name} {model}" for model in client.models]
        return "\n".join(lines) + "\n"


def read_access(text: str) -> Access:
    """Return the table of a file; lines that are not of it are left out."""
    clients: dict[str, tuple[int | None, list[str]]] = {}
    models: dict[str, str] = {}
    guarded = set()
    for line in text.splitlines():
        match line.split():
            case ["model", name, topology]:
                models[name] = topology
            case ["guarded", topology]:
                guarded.add(topology)
            case ["client", name, rate]:
                clients[name] = (int(rate) if rate.isdecimal() else None, [])
            case ["may", name, model] if name in clients:
                clients[name][1].append(model)
    found = {name: Client(rate, tuple(allowed)) for name, (rate, allowed) in clients.items()}
    return Access(found, models, frozenset(guarded))
