"""What scalers of KEDA reach."""

from __future__ import annotations

from kaigen.kubernetes.manifest import ALL, VALUES
from kaigen.tenancy.conditions.references import OwnIdentity
from kaigen.tenancy.conditions.servers import Server
from kaigen.tenancy.conditions.texts import Granted, Matching, Missing
from kaigen.tenancy.conditions.triggers import KnownTrigger, OwnVaultLogin, Parameter
from kaigen.tenancy.reach import Reach

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
