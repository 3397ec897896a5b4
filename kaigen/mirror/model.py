"""Images, files of models and charts that an environment pulls."""

from __future__ import annotations

from msgspec import Struct


class ImageItem(Struct, frozen=True):
    """An image of a pod.

    Attributes:
        source: the image by its own name.
        target: the image as pods name it.
        digest: its digest; empty when the name has none.
        apps: the apps that use it, `NAMESPACE/NAME`.
    """

    source: str
    target: str
    digest: str
    apps: tuple[str, ...]


class FileItem(Struct, frozen=True, omit_defaults=True):
    """A file of a source, as the lock has it.

    Attributes:
        path: in the source; the digest of a layer of an image.
        bytes: its size.
        sha256: checksum of its content; empty if the bucket has none.
        version: version of an object of a bucket that keeps versions; empty for none.
    """

    path: str
    bytes: int
    sha256: str
    version: str = ""


class ModelItem(Struct, frozen=True, omit_defaults=True):
    """Files of a model, or of data: a repository of the Hub, a prefix of a bucket, an artifact, or one file.

    Attributes:
        source: repository, `s3://BUCKET/PREFIX`, reference of an artifact, or URL.
        revision: commit, branch or tag; `revision` of a bucket; digest of an artifact; empty for a URL.
        target: URL that pods download from.
        sha256: checksum of a file; empty for all others.
        bytes: size of the chosen files if the lock has them, else about how large the weights are; None if unknown.
        include: globs of the files; empty for all.
        exclude: globs of files that are not needed.
        apps: the apps that use it, `NAMESPACE/NAME`.
        files: the chosen files, if the lock has them.
    """

    source: str
    revision: str
    target: str
    sha256: str
    bytes: int | None
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    apps: tuple[str, ...]
    files: tuple[FileItem, ...] = ()


class ChartItem(Struct, frozen=True):
    """A Helm chart.

    Attributes:
        source: the chart with its repository.
        version: as in the release.
        apps: the apps that install it, `NAMESPACE/NAME`.
    """

    source: str
    version: str
    apps: tuple[str, ...]


class TransferList(Struct, frozen=True):
    """Everything that an environment pulls.

    Attributes:
        environment: its name; empty for none.
        images: by name.
        models: by repository or URL.
        charts: by name.
        unpinned: how many images have no digest, and repositories no commit: they may change before they are copied.
    """

    environment: str
    images: tuple[ImageItem, ...]
    models: tuple[ModelItem, ...]
    charts: tuple[ChartItem, ...]
    unpinned: int
