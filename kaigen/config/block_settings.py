"""The settings of the blocks `patches`, `secrets`, `external` and `publish` of kaigen.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct

from kaigen.config.globs import is_granted
from kaigen.core.json_types import FieldPath, Json


class VolumeGrant(Struct, frozen=True):
    """Volumes that specs may mount; globs, all of which must match.

    Attributes:
        namespaces: of the specs.
        uris: of buckets.
        drivers: names of CSI drivers besides those of kaigen.
        secrets: Secrets of other namespaces, `NAMESPACE/NAME`.
        attributes: keys of volume attributes.
        options: mount options.
    """

    namespaces: tuple[str, ...] = ("*",)
    uris: tuple[str, ...] = ("*",)
    drivers: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Allowed(Struct, frozen=True):
    """What specs may reach outside their own namespaces, and files that are not of kaigen.

    Attributes:
        files: globs of files in the output folder that are the user's own.
        namespaces: globs of system namespaces that specs may use.
        servers: globs of hosts that URLs of specs may name although they are the pod's, the node's or the cloud's own.
        volumes: volumes that specs may mount.
        secrets: Secrets of Flux that specs may use.
    """

    files: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    volumes: tuple[VolumeGrant, ...] = (VolumeGrant(secrets=("kube-system/csi-s3-secret",)),)
    secrets: tuple[str, ...] = ()


def matches_glob(text: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs matches the whole text; `*` also matches slashes."""
    return any(fnmatchcase(text, glob) for glob in globs)


class ObjectPatch(Struct, frozen=True):
    """A change of the objects of apps.

    Attributes:
        app: name or glob of the apps, `NAME` or `NAMESPACE/NAME`.
        kind: kind of the objects; None for any.
        name: name or glob of the objects, or of their files; None for any.
        patch: the operations (RFC 6902), the mapping to merge (RFC 7396), or the file that contains one of them.
        at: the entry's path in kaigen.yaml.
    """

    app: str
    kind: str | None
    name: str | None
    patch: str | Sequence[Mapping[str, Json]] | Mapping[str, Json]
    at: FieldPath

    @property
    def file(self) -> str | None:
        """The file that contains the patch; None for a patch in kaigen.yaml."""
        return self.patch if isinstance(self.patch, str) else None


Verdict: TypeAlias = Literal["allow", "deny", "ask"]
STRICTNESS: Sequence[Verdict] = ("allow", "ask", "deny")
"""Verdicts about a licence, the mildest first."""
_SPDX_OPERATORS = re.compile(r"\b(?:AND|OR)\b|[()]")
"""What separates licences in an SPDX expression; `WITH` names an exception of one licence."""


class LicensePolicy(Struct, frozen=True):
    """The licences of models that may be used, by name or glob.

    Attributes:
        allow: those that may be used; all if it is empty.
        deny: those that may not, which takes precedence.
        ask: those that a person must accept.
        known: globs of sources that name no licence, each with its licence.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    known: tuple[tuple[str, str], ...] = ()

    def verdict(self, licence: str) -> Verdict:
        """Return what the policy says about a licence; of several in an SPDX expression, the strictest."""
        names = [name.strip() for name in _SPDX_OPERATORS.split(licence)]
        return max((self._verdict(name) for name in names if name), key=STRICTNESS.index, default="deny")

    def _verdict(self, licence: str) -> Verdict:
        def is_in(globs: Sequence[str]) -> bool:
            return any(fnmatchcase(licence.lower(), glob.lower()) for glob in globs)

        if is_in(self.deny):
            return "deny"
        if is_in(self.ask):
            return "ask"
        return "allow" if not self.allow or is_in(self.allow) else "deny"

    def licence_of(self, source: str) -> str:
        """Return the licence of a source that names none; empty if it is not known."""
        return next((licence for glob, licence in self.known if is_granted(source, [glob])), "")


class ExternalObject(Struct, frozen=True):
    """An object, or several, that clusters have although no app makes it.

    Attributes:
        kind: its kind.
        name: its name, or a glob.
        namespace: its namespace; empty for any.
    """

    kind: str
    name: str
    namespace: str = ""

    def is_named(self, kind: str, namespace: str, name: str) -> bool:
        """Return whether it is the object of a name; an object without a namespace may be in any."""
        return (
            kind == self.kind
            and (not self.namespace or not namespace or namespace == self.namespace)
            and fnmatchcase(name, self.name)
        )


class ExternalSecretsSettings(Struct, frozen=True):
    """How ExternalSecrets are written.

    Attributes:
        store: name of the SecretStore or ClusterSecretStore.
        store_kind: its kind.
        refresh_interval: how often the operator reads the store.
        key_template: key of a Secret's values in the store, with `{env}`, `{namespace}`, `{name}` and `{key}`.
    """

    store: str
    store_kind: Literal["ClusterSecretStore", "SecretStore"] = "ClusterSecretStore"
    refresh_interval: str = "1h"
    key_template: str = "{namespace}/{name}"


class DownloadEgress(Struct, frozen=True):
    """What pods that download may connect to.

    Attributes:
        api_server: peers of the API server.
        to: peers that files may be downloaded from; None for any address.
        ports: ports besides those of the sources.
        dns: peers of the DNS; empty for that of Kubernetes.
        jobs: whether Jobs that download are restricted as well.
    """

    api_server: tuple[Mapping[str, Json], ...]
    to: tuple[Mapping[str, Json], ...] | None = None
    ports: tuple[int, ...] = ()
    dns: tuple[Mapping[str, Json], ...] = ()
    jobs: bool = False


class NetworkSettings(Struct, frozen=True):
    """How pods reach servers outside the cluster; empty values where nothing is configured.

    Attributes:
        hub_endpoint: URL of the Hugging Face Hub.
        http_proxy: proxy for http URLs.
        https_proxy: proxy for https URLs.
        no_proxy: hosts, domains and address ranges without a proxy, besides those of the cluster.
        ca_config_map: ConfigMap with the certificates of authorities.
        ca_key: its key.
        package_index: index of Python packages.
        download_egress: what pods that download may connect to; None for everything.
    """

    hub_endpoint: str = ""
    http_proxy: str = ""
    https_proxy: str = ""
    no_proxy: tuple[str, ...] = ()
    ca_config_map: str = ""
    ca_key: str = ""
    package_index: str = ""
    download_egress: DownloadEgress | None = None


class ImageRule(Struct, frozen=True):
    """Where images with a prefix are pulled from.

    Attributes:
        prefix: start of the image's name with its registry, as in `docker.io/vllm/`.
        to: what replaces it.
    """

    prefix: str
    to: str


class ImageMirror(Struct, frozen=True):
    """Where all images are pulled from.

    Attributes:
        mirror: start of their names, with `{host}` for the registry; empty for images that only rules move.
        rules: exceptions, by the longest prefix.
    """

    mirror: str = ""
    rules: tuple[ImageRule, ...] = ()


class PublishSettings(Struct, frozen=True):
    """The defaults of `kaigen publish`.

    Attributes:
        remote: name or URL of the Git remote.
        branch: deploy branch, with `{env}`; None for none.
        path: folder in the deploy branch, with `{env}`; None for the output folder's path in the repository.
        pull_request: push to a branch of its own.
        sign: sign commits; None for Git's own setting.
        charts: OCI repository for charts, with `{env}` and `{namespace}`; None for none.
        version_suffix: append a digest of its content to each chart's version.
        manifests: OCI repository for manifests, with `{env}`; None for none.
    """

    remote: str = "origin"
    branch: str | None = None
    path: str | None = None
    pull_request: bool = False
    sign: bool | None = None
    charts: str | None = None
    version_suffix: bool = False
    manifests: str | None = None
