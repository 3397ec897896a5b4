"""Authentications of KEDA: their parameters, vaults, logins and identities."""

from __future__ import annotations

from tests.tenancy.objects import object_of
from tests.tenancy.tenants import Body


def _authentication(**spec: object) -> Body:
    return object_of("keda.sh/v1alpha1", "TriggerAuthentication", spec=spec)


def _parameter(source: str, name: str) -> Body:
    """Return a TriggerAuthentication with a parameter of a Secret, a ConfigMap, a variable or a token."""
    items: Body = {
        "secretTargetRef": {"name": "x", "key": "k"},
        "configMapTargetRef": {"name": "x", "key": "k"},
        "env": {"name": "X"},
        "boundServiceAccountToken": {"serviceAccountName": "x"},
    }
    return _authentication(**{source: [{**items[source], "parameter": name}]})


def _vault(**more: object) -> Body:
    known: Body = {
        "address": "http://vault.team-a.svc:8200",
        "authentication": "token",
        "credential": {"token": "x"},
        "secrets": [{"key": "k", "parameter": "password", "path": "s"}],
    }
    return _authentication(hashiCorpVault={**known, **more})


_AZURE_KEY: Body = {"valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}

_AZURE: Body = {
    "vaultUri": "https://vault.metrics.example.com",
    "credentials": {"clientId": "x", "tenantId": "x", "clientSecret": _AZURE_KEY},
    "secrets": [{"name": "x", "parameter": "password"}],
}

_AWS: Body = {
    "region": "eu-central-1",
    "credentials": {"accessKey": _AZURE_KEY, "accessSecretKey": _AZURE_KEY},
    "secrets": [{"name": "x", "parameter": "password"}],
}

_OAUTH: Body = {"type": "clientCredentials", "clientId": "x", "clientSecret": _AZURE_KEY}

DENIED: dict[str, tuple[Body, str]] = {
    **{
        f"parameter {name} of {source}": (_parameter(source, name), f"the parameter of triggers `{name}`")
        for source in ("secretTargetRef", "configMapTargetRef", "env", "boundServiceAccountToken")
        for name in ("host", "address", "connection", "oauthTokenURI", "bootstrapServers", "port", "dbName")
    },
    "parameter of a vault": (
        _vault(secrets=[{"key": "k", "parameter": "host", "path": "s"}]),
        "the parameter of triggers `host`",
    ),
    "parameter of a vault of Azure": (
        _authentication(azureKeyVault={**_AZURE, "secrets": [{"name": "x", "parameter": "url"}]}),
        "the parameter of triggers `url`",
    ),
    "parameter of a vault of Amazon": (
        _authentication(awsSecretManager={**_AWS, "secrets": [{"name": "x", "parameter": "hosts"}]}),
        "the parameter of triggers `hosts`",
    ),
    "vault without a scheme": (_vault(address="vault.team-b.svc:8200"), "the server `vault.team-b.svc:8200`"),
    "vault with KEDA's token": (
        _vault(authentication="kubernetes", mount="k", role="r", credential={"serviceAccount": "/var/x"}),
        "the token of KEDA for a vault",
    ),
    "vault with KEDA's token by default": (
        _vault(authentication="kubernetes", mount="k", role="r", credential={}),
        "the token of KEDA for a vault",
    ),
    "vault of Azure": (
        _authentication(azureKeyVault={**_AZURE, "vaultUri": "vault.team-b.svc"}),
        "the server `vault.team-b.svc`",
    ),
    **{
        f"{field} of Azure": (
            _authentication(azureKeyVault={**_AZURE, "cloud": {"type": "Private", field: "x.team-b.svc"}}),
            "the server `x.team-b.svc`",
        )
        for field in ("activeDirectoryEndpoint", "keyVaultResourceURL")
    },
    "login of Azure": (
        _authentication(
            azureServicePrincipal={
                "clientId": "x",
                "tenantId": "x",
                "clientSecret": _AZURE_KEY,
                "cloud": "Private",
                "activeDirectoryEndpoint": "https://x.team-b.svc",
            }
        ),
        "the server `https://x.team-b.svc`",
    ),
    "login by OAuth": (
        _authentication(oauth2={**_OAUTH, "tokenUrl": "http://x.team-b.svc/token"}),
        "the server `http://x.team-b.svc/token`",
    ),
    "region with a server": (
        _authentication(awsSecretManager={**_AWS, "region": "x.team-b.svc/#"}),
        "the region `x.team-b.svc/#`",
    ),
    "file of KEDA": (_authentication(filePath="x"), "files of KEDA"),
    "credentials of Google": (
        _authentication(
            gcpSecretManager={
                "credentials": {"clientSecret": _AZURE_KEY},
                "secrets": [{"id": "x", "parameter": "password"}],
            }
        ),
        "files of KEDA",
    ),
    "identity of KEDA": (
        _authentication(podIdentity={"provider": "gcp"}),
        "the identity of KEDA by the provider `gcp`",
    ),
    "identity of KEDA by its owner": (
        _authentication(podIdentity={"provider": "aws", "identityOwner": "keda"}),
        "the identity of KEDA by the provider `aws`",
    ),
    "server of an authentication": (
        _authentication(
            hashiCorpVault={
                "address": "http://vault.team-b.svc",
                "authentication": "token",
                "secrets": [{"key": "k", "parameter": "p", "path": "s"}],
            }
        ),
        "the server `http://vault.team-b.svc`",
    ),
}
"""Objects with what the finding names, by what is wrong with them."""

ALLOWED: dict[str, Body] = {
    "parameters": _parameter("secretTargetRef", "password"),
    "vault": _vault(),
    "vault with a service account": _vault(
        authentication="kubernetes", mount="k", role="r", credential={"serviceAccountName": "x"}
    ),
    "vault of Azure": _authentication(azureKeyVault=_AZURE),
    "vault of Amazon": _authentication(awsSecretManager=_AWS),
    "login by OAuth": _authentication(oauth2={**_OAUTH, "tokenUrl": "https://x.metrics.example.com/token"}),
    "authentication": _authentication(podIdentity={"provider": "aws", "identityOwner": "workload"}),
}
"""Objects that the tenant may have."""
