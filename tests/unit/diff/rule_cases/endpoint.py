"""The table of an Endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from kaigen.compile.endpoint.access import ACCESS_FILE, Access, Client
from tests.unit.diff.diff_cases import Obj as Object
from tests.unit.diff.diff_cases import with_
from tests.unit.diff.rule_cases.objects import Case, config

_MODELS = {"chat": "chat", "legal": "chat", "phi-4": "phi-4"}


def table(name: str, models: Mapping[str, str] | None = None, **clients: tuple[int | None, tuple[str, ...]]) -> Object:
    """The ConfigMap of an Endpoint."""
    access = Access({key: Client(*given) for key, given in clients.items()}, models or _MODELS)
    metadata = {"name": f"models-{name}", "labels": {"app.kubernetes.io/component": "endpoint"}}
    return with_(config(f"models-{name}", data={ACCESS_FILE: access.text()}), "metadata", metadata)


CASES: list[Case] = [
    Case(
        "endpoint-access",
        "a client may ask one model more",
        table("1", a=(60, ("chat",))),
        table("2", a=(60, ("chat", "phi-4"))),
        [("danger", "a may now ask `phi-4`, 60 times a minute")],
    ),
    Case(
        "endpoint-access",
        "a new client",
        table("1", a=(60, ("chat",))),
        table("2", a=(60, ("chat",)), b=(None, ("chat", "legal"))),
        [("danger", "b may now ask `chat` and `legal`, any number of times")],
    ),
    Case(
        "endpoint-access",
        "less and nothing",
        table("1", a=(60, ("chat", "legal")), b=(1, ("chat",))),
        table("2", a=(60, ("chat",))),
        [("notice", "a may no longer ask `legal`"), ("notice", "b may ask nothing any more: its key gets 401")],
    ),
    Case(
        "endpoint-access",
        "a higher limit",
        table("1", a=(1, ("chat",))),
        table("2", a=(2, ("chat",))),
        [("danger", "a may now ask 2 times a minute, before 1 time a minute")],
    ),
    Case(
        "endpoint-access",
        "no limit",
        table("1", a=(60, ("chat",))),
        table("2", a=(None, ("chat",))),
        [("danger", "a may now ask any number of times, before 60 times a minute")],
    ),
    Case(
        "endpoint-access",
        "a lower limit, and the first one",
        table("1", a=(60, ("chat",)), b=(None, ("chat",))),
        table("2", a=(30, ("chat",)), b=(5, ("chat",))),
        [
            ("notice", "a may now ask 30 times a minute, before 60 times a minute"),
            ("notice", "b may now ask 5 times a minute, before any number of times"),
        ],
    ),
    Case(
        "endpoint-access",
        "another Topology",
        table("1", a=(60, ("chat",))),
        table("2", {**_MODELS, "chat": "chat-2"}, a=(60, ("chat",))),
        [("notice", "`chat` is answered by chat-2, no longer by chat")],
    ),
    Case(
        "endpoint-access",
        "a new Endpoint",
        None,
        table("1", a=(60, ("chat",))),
        [("notice", "a may now ask `chat`, 60 times a minute")],
    ),
    Case(
        "endpoint-access",
        "a removed Endpoint",
        table("1", a=(60, ("chat",))),
        None,
        [("notice", "a may ask nothing any more: its key gets 401")],
    ),
    Case("endpoint-access", "the same", table("1", a=(60, ("chat",))), table("2", a=(60, ("chat",))), []),
    Case("endpoint-access", "another ConfigMap", config(data={ACCESS_FILE: "client a 1"}), config(data={}), []),
]
