"""Admission webhooks of controllers that run outside of the cluster."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.cluster.client import Object
from tests.cluster.pki import general_name, key_usage

_LIFETIME = timedelta(days=400)
"""Kueue replaces certificates with less than 90 days left."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """One admission webhook of a controller.

    Attributes:
        verb: `mutate` or `validate`.
        group: API group; empty for the core group.
        version: version of the group.
        kind: the kind.
        resource: its plural.
        operations: what it is called for.
        selector: labels that an object must have, as in `objectSelector`.
    """

    verb: Literal["mutate", "validate"]
    group: str
    version: str
    kind: str
    resource: str
    operations: Sequence[str] = ("CREATE", "UPDATE")
    selector: Mapping[str, Any] | None = None

    @property
    def path(self) -> str:
        """The path that controller-runtime serves it on."""
        return f"/{self.verb}-{self.group.replace('.', '-')}-{self.version}-{self.kind.lower()}"

    def entry(self, url: str, authority: bytes) -> Object:
        """Return its entry in a webhook configuration.

        Args:
            url: where the controller serves, without a path.
            authority: PEM of the authority that signed its certificate.
        """
        rule = {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "resources": [self.resource],
            "operations": list(self.operations),
        }
        system = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
        return {
            "name": f"{self.verb[0]}{self.kind.lower()}.kb.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"{url}{self.path}", "caBundle": base64.b64encode(authority).decode()},
            "rules": [rule],
            "namespaceSelector": {"matchExpressions": [system]},
            **({"objectSelector": dict(self.selector)} if self.selector else {}),
        }


def configurations(name: str, webhooks: Sequence[Webhook], url: str, authority: bytes) -> list[Object]:
    """Return the configurations of a controller's webhooks: `NAME-mutating-` and `NAME-validating-…`.

    Args:
        name: beginning of their names.
        webhooks: the webhooks.
        url: where the controller serves, without a path.
        authority: PEM of the authority that signed its certificate.
    """
    found = []
    for kind, verb in (("Mutating", "mutate"), ("Validating", "validate")):
        found.append(
            {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{kind}WebhookConfiguration",
                "metadata": {"name": f"{name}-{kind.lower()}-webhook-configuration"},
                "webhooks": [each.entry(url, authority) for each in webhooks if each.verb == verb],
            }
        )
    return found


def make_certificates(folder: Path, hosts: Sequence[str]) -> Mapping[str, bytes]:
    """Write an authority and a serving certificate in the form that cert-controller accepts.

    Args:
        folder: where `tls.crt`, `tls.key`, `ca.crt` and `ca.key` go.
        hosts: names of the server in addition to 127.0.0.1 and localhost.

    Returns:
        The files by name.
    """
    folder.mkdir(parents=True)
    authority_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    authority = _certificate("kueue-ca", authority_key, "kueue-ca", authority_key, ["kueue-ca"], signs=True)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    serving = _certificate("webhooks", key, "kueue-ca", authority_key, ["127.0.0.1", "localhost", *hosts], signs=False)
    files = {
        "ca.crt": authority.public_bytes(serialization.Encoding.PEM),
        "ca.key": _pem(authority_key),
        "tls.crt": serving.public_bytes(serialization.Encoding.PEM),
        "tls.key": _pem(key),
    }
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return files


def _pem(key: rsa.RSAPrivateKey) -> bytes:
    # PKCS #1, the only form that cert-controller reads.
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _certificate(
    name: str, key: rsa.RSAPrivateKey, issuer: str, issuer_key: rsa.RSAPrivateKey, hosts: Sequence[str], *, signs: bool
) -> x509.Certificate:
    now = datetime.now(UTC)
    names = [general_name(host) for host in hosts]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(key_usage(signs=signs), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
