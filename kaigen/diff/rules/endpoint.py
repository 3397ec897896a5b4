"""Rules for the table of an Endpoint: who may ask which model, and how often."""

from __future__ import annotations

from collections.abc import Iterator

from kaigen.compile.endpoint.access import ACCESS_FILE, Access, Client, read_access
from kaigen.diff.formatting import listing
from kaigen.diff.objects import Obj, get
from kaigen.diff.rules.case import Case, Finding

CONFIG = frozenset({"ConfigMap"})
_NOTHING = Client(None, ())


def access(case: Case) -> Iterator[Finding]:
    """Clients may ask more or fewer models, more or less often, or another Topology answers."""
    if not (_is_table(case.old) or _is_table(case.new)):
        return
    old, new = _table(case.old), _table(case.new)
    for name in sorted({*old.clients, *new.clients}):
        yield from _client(name, old, new, is_new=case.old is None)
    for model, topology in new.models.items():
        was = old.models.get(model, topology)
        if was != topology:
            yield "notice", f"`{model}` is answered by {topology}, no longer by {was}"


def _client(name: str, old: Access, new: Access, *, is_new: bool) -> Iterator[Finding]:
    was, now = old.clients.get(name, _NOTHING), new.clients.get(name, _NOTHING)
    gained = [f"`{model}`" for model in now.models if model not in was.models]
    lost = [f"`{model}`" for model in was.models if model not in now.models]
    if gained:
        # A reviewer sees a new Endpoint as a whole; a row more in a long table is easily overlooked.
        yield "notice" if is_new else "danger", f"{name} may now ask {listing(gained)}, {now.pace}"
    if name not in new.clients:
        yield "notice", f"{name} may ask nothing any more: its key gets 401"
        return
    if lost:
        yield "notice", f"{name} may no longer ask {listing(lost)}"
    if name in old.clients and was.rate != now.rate and not gained:
        wider = now.rate is None or (was.rate is not None and now.rate > was.rate)
        yield "danger" if wider else "notice", f"{name} may now ask {now.pace}, before {was.pace}"


def _is_table(obj: Obj | None) -> bool:
    return obj is not None and obj.labels.get("app.kubernetes.io/component") == "endpoint" and bool(_text(obj))


def _table(obj: Obj | None) -> Access:
    return read_access(_text(obj)) if obj is not None else Access({}, {})


def _text(obj: Obj) -> str:
    found = get(obj.data, "data", ACCESS_FILE)
    return found if isinstance(found, str) else ""
