"""What scalers of KEDA reach, and the conditions of their triggers, and of what gives them servers and credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from kaigen.config.globs import glob_pattern, is_granted
from kaigen.config.tenant_settings import Tenant
from kaigen.kubernetes.manifest import ALL, VALUES, mapping, text
from kaigen.kubernetes.scaler_triggers import (
    AGGREGATED,
    FILE_KEYS,
    FREE_KEYS,
    FREE_TRIGGERS,
    HOST_KEYS,
    NAME_KEYS,
    NAMES,
    PARAMETERS,
    SERVER_KEYS,
    SERVER_PARAMETERS,
    WORD_KEYS,
    WORDS,
)
from kaigen.tenancy import cel
from kaigen.tenancy.conditions.references import OwnIdentity
from kaigen.tenancy.conditions.values import Granted, Matching, Missing, Server
from kaigen.tenancy.reach import Reach, Refusal, refuse_value

_SERVERS = ((SERVER_KEYS, Server(plain=True)), (HOST_KEYS, Server(plain=True, is_url=False)))
"""Fields with servers, and what they must be."""

_TEXTS = ((WORD_KEYS, WORDS), (NAME_KEYS, NAMES))
"""Fields that are joined with a server to one text, and what they must match."""

_HINT = "remove it, or add the type of the trigger to `triggers` of the tenant in kaigen.yaml"

_TEXT_HINT = "use only letters, digits and `_`, `-`, in names of users and databases also `.`, `@`, `$`, `+` and `~`"


class KnownTrigger(Struct, frozen=True):
    """A trigger of KEDA whose type and fields are known, and whose servers the tenant may name.

    A trigger of a type that the tenant is granted may have other fields, too.
    """

    grant: str = "triggers"

    def refusals(self, value: object, tenant: Tenant) -> Iterator[Refusal]:
        """Refuse the type, or each field."""
        trigger = mapping(value)
        type_ = text(trigger.get("type"))
        granted = is_granted(type_, tenant.granted(self.grant))
        if not granted and type_ not in FREE_TRIGGERS:
            yield Refusal(f"of type `{type_}`", ("type",))
            return
        for key, item in mapping(trigger.get("metadata")).items():
            place, field = f"{type_}/{key}", ("metadata", str(key))
            if re.fullmatch(FILE_KEYS, str(key)):
                yield Refusal(f"`{key}`", field, "a file of KEDA's own pod by", False)
            elif not granted and not re.fullmatch(FREE_KEYS, place):
                yield Refusal(f"with the field `{key}`", field, hint=_HINT)
            else:
                yield from _item_refusals(place, item, field, tenant)
        metadata = mapping(trigger.get("metadata"))
        if not granted and AGGREGATED in metadata and not re.fullmatch(_service(tenant), str(metadata.get("url"))):
            hint = f"write `http://NAME.{tenant.namespaces[0]}.svc`, with a port and a path where it needs them"
            yield Refusal(f"`{metadata.get('url')}`", ("metadata", "url"), "the Service", hint=hint)

    def passes(self, value: str, tenant: Tenant) -> str:
        """Match the type, each key, and the values of servers and of what is joined with them."""
        type_ = f"{cel.at(value, ('type',))}.orValue('')"
        metadata = f"{cel.at(value, ('metadata',))}.orValue({{}})"
        place = f"({type_} + '/' + key)"
        item = f"{metadata}[key]"
        tests = (
            f"!{cel.matches('key', FILE_KEYS)}",
            *(f"(!{cel.matches(place, keys)} || {server.passes(item, tenant)})" for keys, server in _SERVERS),
            *(f"(!{cel.matches(place, keys)} || {cel.matches(item, pattern)})" for keys, pattern in _TEXTS),
        )
        granted = cel.matches(type_, glob_pattern(tenant.granted(self.grant)))
        url = f"{cel.at(value, ('metadata', 'url'))}.orValue('')"
        service = f"(!('{AGGREGATED}' in {metadata}) || {cel.matches(url, _service(tenant))})"
        keys = f"{metadata}.all(key, {cel.matches(place, FREE_KEYS)})"
        known = f"({type_} in {cel.texts(FREE_TRIGGERS)} && {keys} && {service})"
        return f"(({granted} || {known}) && {metadata}.all(key, {' && '.join(tests)}))"


def _service(tenant: Tenant) -> str:
    """Return a pattern of RE2 and Python for URLs whose whole host is `NAME.NAMESPACE.svc` of the tenant."""
    places = "|".join(re.escape(place) for place in tenant.namespaces)
    return rf"https?://[a-z0-9-]+\.({places})\.svc(\.cluster\.local)?(:[0-9]+)?(/[^\n]*)?"


def _item_refusals(place: str, item: object, field: tuple[str, ...], tenant: Tenant) -> Iterator[Refusal]:
    """Refuse another server in the field `TYPE/KEY`, and a text that could name one."""
    for keys, server in _SERVERS:
        if re.fullmatch(keys, place):
            for refusal in server.refusals(item, tenant):
                yield Refusal(refusal.shown, field, "the server", hint=refusal.hint)
    for keys, pattern in _TEXTS:
        if re.fullmatch(keys, place) and not re.fullmatch(pattern, str(item)):
            yield Refusal(f"with the text `{item}`", field, hint=_TEXT_HINT)


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
        return refuse_value(value) if is_refused else []

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


_SCALERS = ("ScaledObject.keda.sh", "ScaledJob.keda.sh")
_AUTHENTICATION = ("TriggerAuthentication.keda.sh",)
_TRIGGERS = ("spec", "triggers", ALL)
_TRIGGER = (*_TRIGGERS, "metadata")
_SOURCES = (
    ("env",),
    ("secretTargetRef",),
    ("configMapTargetRef",),
    ("boundServiceAccountToken",),
    ("hashiCorpVault", "secrets"),
    ("azureKeyVault", "secrets"),
    ("awsSecretManager", "secrets"),
)
"""Where a TriggerAuthentication names the parameters that it gives to triggers (source: the CRD of KEDA 2.21)."""

SCALING_REACHES: tuple[Reach, ...] = (
    Reach("trigger", "a trigger", _SCALERS, (_TRIGGERS,), KnownTrigger()),
    Reach("scaler-server", "the server", _SCALERS, ((*_TRIGGER, VALUES),), Server()),
    Reach("scaler-identity", "the identity of", _SCALERS, ((*_TRIGGER, "identityOwner"),), Granted(always=("pod",))),
    Reach(
        "scaler",
        "authentication of kind",
        _SCALERS,
        ((*_TRIGGERS, "authenticationRef", "kind"),),
        Granted(always=("TriggerAuthentication",)),
    ),
    Reach(
        "authentication-parameter",
        "the parameter of triggers",
        _AUTHENTICATION,
        tuple(("spec", *place, ALL, "parameter") for place in _SOURCES),
        Parameter(),
    ),
    Reach(
        "authentication-identity",
        "the identity of KEDA by the provider",
        _AUTHENTICATION,
        tuple(
            ("spec", *place, "podIdentity")
            for place in ((), ("awsSecretManager",), ("azureKeyVault",), ("gcpSecretManager",))
        ),
        OwnIdentity(),
    ),
    Reach(
        "authentication-server",
        "the server",
        _AUTHENTICATION,
        (
            ("spec", "hashiCorpVault", "address"),
            ("spec", "azureKeyVault", "vaultUri"),
            ("spec", "azureKeyVault", "cloud", "activeDirectoryEndpoint"),
            ("spec", "azureKeyVault", "cloud", "keyVaultResourceURL"),
            ("spec", "azureServicePrincipal", "activeDirectoryEndpoint"),
            ("spec", "oauth2", "tokenUrl"),
        ),
        Server(plain=True),
    ),
    Reach(
        "authentication-vault",
        "the token of KEDA for a vault",
        _AUTHENTICATION,
        (("spec", "hashiCorpVault"),),
        OwnVaultLogin(),
    ),
    Reach(
        "authentication-region",
        "the region",
        _AUTHENTICATION,
        (("spec", "awsSecretManager", "region"),),
        Matching("[a-z0-9-]*"),
    ),
    # The file of a Google credential names a server for tokens, and files that KEDA sends to it.
    Reach(
        "authentication-file",
        "files of KEDA, or credentials that name servers,",
        _AUTHENTICATION,
        (("spec", "filePath"), ("spec", "gcpSecretManager")),
        Missing(),
    ),
)
