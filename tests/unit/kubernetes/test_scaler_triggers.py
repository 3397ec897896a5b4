"""The fields of KEDA's triggers that name servers are known as such."""

from __future__ import annotations

import re

import pytest

from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.scaler_triggers import (
    AGGREGATED,
    ANY_KEY,
    FREE_KEYS,
    HOST_KEYS,
    SERVER_KEYS,
    SERVER_PARAMETERS,
    TRIGGERS,
)
from kaigen.tenancy.rows.scaling import KnownTrigger, Parameter

_SERVER = re.compile("(?i).*(address|addresses|host|hosts|servers?|endpoints?|url|uri|connection)(FromEnv)?")
_NO_SERVER = ("tlsServerName", AGGREGATED)
"""A name that is only compared with a certificate, and a switch."""


@pytest.mark.parametrize("type_", TRIGGERS)
def test_a_field_that_is_named_like_a_server_is_one(type_: str) -> None:
    row = TRIGGERS[type_]
    others = [name for name in (*row.words, *row.names, *row.others) if name != ANY_KEY and name not in _NO_SERVER]
    assert [name for name in others if _SERVER.fullmatch(name)] == []
    for name in (*row.servers, *row.hosts):
        assert re.fullmatch(f"{SERVER_KEYS}|{HOST_KEYS}", f"{type_}/{name}")
        assert bool(re.fullmatch(FREE_KEYS, f"{type_}/{name}")) is row.is_free
        assert re.fullmatch(SERVER_PARAMETERS, name), f"{name} may come from a TriggerAuthentication"


@pytest.mark.parametrize("type_", TRIGGERS)
def test_a_parameter_that_is_joined_with_a_host_names_a_user_or_a_mode(type_: str) -> None:
    joined = (*TRIGGERS[type_].hosts, *TRIGGERS[type_].words, *TRIGGERS[type_].names)
    free = {name for name in joined if not re.fullmatch(SERVER_PARAMETERS, name)}
    assert free <= {"username", "userName"}


def tenant(*triggers: str) -> Tenant:
    return Tenant("a", (), ("team-a",), {"triggers": triggers})


@pytest.mark.parametrize(
    ("name", "known", "granted"),
    [
        ("password", True, True),
        ("apiKey", True, True),
        ("keytab", False, True),
        ("awsAccessKeyID", False, True),
        ("newServer", False, True),
        ("host", False, False),
        ("connectionString", False, False),
        ("kerberosConfig", False, False),
        ("", False, True),
    ],
)
def test_other_parameters_need_a_granted_trigger(name: str, known: bool, granted: bool) -> None:
    for grants, expected in (((), known), (("aws-sqs-queue",), granted)):
        condition, owner = Parameter(), tenant(*grants)
        assert (list(condition.refusals(name, owner)) == []) == expected


def test_a_granted_type_may_have_any_field() -> None:
    trigger = {"type": "azure-queue", "metadata": {"connectionFromEnv": "X"}}
    assert [*KnownTrigger().refusals(trigger, tenant())]
    assert [*KnownTrigger().refusals(trigger, tenant("azure-*"))] == []
