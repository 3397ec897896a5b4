"""The settings of the blocks `patches`, `secrets`, `external` and `publish` of kaigen.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

from kaigen.config.json_types import FieldPath, Json


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
