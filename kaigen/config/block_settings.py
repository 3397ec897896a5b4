"""The settings of blocks of kaigen.yaml that a run needs in another form: `allow`, `patches`, `secrets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

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


class ChosenApps(Struct, frozen=True):
    """The apps of an environment, as globs of `NAME` or `NAMESPACE/NAME`.

    Attributes:
        include: what it has; everything when empty.
        exclude: what it does not have of these.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def has(self, namespace: str, name: str) -> bool:
        """Return whether the environment has an app."""
        forms = (name, f"{namespace}/{name}")
        included = not self.include or any(matches_glob(form, self.include) for form in forms)
        return included and not any(matches_glob(form, self.exclude) for form in forms)


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
