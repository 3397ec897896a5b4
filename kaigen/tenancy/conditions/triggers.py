"""Conditions of KEDA's triggers, and of what gives them servers and credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import mapping, text
from kaigen.kubernetes.scaler_triggers import (
    KNOWN_KEYS,
    PARAMETERS,
    SERVER_KEYS,
    SERVER_PARAMETERS,
    TRIGGERS,
    WORD_KEYS,
    WORDS,
)
from kaigen.tenancy import cel
from kaigen.tenancy.condition import Refusal, quoted
from kaigen.tenancy.conditions.servers import Server

_SERVER = Server(plain=True)
_HINT = "remove it, or add the type of the trigger to `triggers` of the tenant in kaigen.yaml"


class KnownTrigger(Struct, frozen=True):
    """A trigger of KEDA whose type and fields are known, and whose servers the tenant may name.

    A trigger of a type that the tenant is granted may have any field.
    """

    grant: str = "triggers"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse the type, or each field."""
        trigger = mapping(value)
        type_ = text(trigger.get("type"))
        if is_granted(type_, tenant.granted(self.grant)):
            return
        if type_ not in TRIGGERS:
            yield Refusal(f"of type `{type_}`", ("type",))
            return
        for key, item in mapping(trigger.get("metadata")).items():
            place, field = f"{type_}/{key}", ("metadata", str(key))
            if not re.fullmatch(KNOWN_KEYS, place):
                yield Refusal(f"with the field `{key}`", field, hint=_HINT)
            elif re.fullmatch(SERVER_KEYS, place):
                for refusal in _SERVER.refusals(item, tenant):
                    hint = f"remove it, or add the host to `tenants.{tenant.name}.servers` in kaigen.yaml"
                    yield Refusal(refusal.shown, field, "the server", hint=hint)
            elif re.fullmatch(WORD_KEYS, place) and not re.fullmatch(WORDS, str(item)):
                yield Refusal(f"with the text `{item}`", field, hint=_HINT)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the type, each key, and the values of servers."""
        type_ = f"{cel.at(value, ('type',))}.orValue('')"
        metadata = f"{cel.at(value, ('metadata',))}.orValue({{}})"
        place = f"({type_} + '/' + key)"
        item = f"{metadata}[key]"
        tests = (
            cel.matches(place, KNOWN_KEYS),
            f"(!{cel.matches(place, SERVER_KEYS)} || {_SERVER.passes(item, tenant)})",
            f"(!{cel.matches(place, WORD_KEYS)} || {cel.matches(item, WORDS)})",
        )
        known = f"({type_} in {cel.texts(TRIGGERS)} && {metadata}.all(key, {' && '.join(tests)}))"
        return f"({cel.matches(type_, glob_pattern(tenant.granted(self.grant)))} || {known})"


class Parameter(Struct, frozen=True):
    """The name of a parameter that gives triggers no server.

    With triggers that the tenant is granted, parameters may have other names, except those of servers.
    """

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse a name that is not known."""
        if tenant.granted("triggers"):
            is_refused = re.fullmatch(SERVER_PARAMETERS, str(value)) is not None
        else:
            is_refused = re.fullmatch(PARAMETERS, str(value)) is None
        return quoted(value) if is_refused else []

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the name."""
        if tenant.granted("triggers"):
            return f"!{cel.matches(value, SERVER_PARAMETERS)}"
        return cel.matches(value, PARAMETERS)


class OwnVaultLogin(Struct, frozen=True):
    """A vault that KEDA logs in to with a token of the tenant, and not with its own token.

    Source: KEDA 2.21, `HashicorpVaultHandler.kubernetesToken`.
    """

    grant: str = ""

    def refusals(self, value: object, tenant: Tenant) -> list[Refusal]:
        """Refuse the login `kubernetes` without a service account of the namespace."""
        credential = mapping(mapping(value).get("credential"))
        is_own = mapping(value).get("authentication") == "token" or text(credential.get("serviceAccountName"))
        return [] if is_own else [Refusal("")]

    def passes(self, value: str, tenant: Tenant) -> str:
        """Compare the kind of login, and look for the service account."""
        account = f"{cel.at(value, ('credential', 'serviceAccountName'))}.orValue('')"
        return f"({cel.at(value, ('authentication',))}.orValue('') == 'token' || {account} != '')"
