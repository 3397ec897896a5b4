"""`kaigen.yaml` as people write it: its fields, its problems, and how environments lie over the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, JsonValue

from kaigen.catalog.profiles import profile_names
from kaigen.config import FILE_NAME, Config, Format, default_images
from kaigen.kinds.base import API_VERSION, NO_BLANKS, RELATIVE_PATH, AppName, Block, LabelName
from kaigen.kinds.registry import KindEntry
from kaigen.load.diagnostics import Diagnostic, Diagnostics, InputError, Mark

if TYPE_CHECKING:
    from kaigen.overrides import Overrides

Image = Annotated[str, Field(min_length=1, max_length=512, pattern=NO_BLANKS)]
Version = Annotated[str, Field(pattern=r"^1\.[0-9]+$")]
RelativePath = Annotated[str, Field(min_length=1, pattern=RELATIVE_PATH)]


class Images(Block):
    """Images that kaigen puts into pods itself."""

    downloader: Image | None = Field(None, description="Fetches weights, waits for them, verifies them.")
    kubectl: Image | None = Field(None, description="Watches a Job in `helm test`.")


class Surroundings(Block):
    """What the output is for; every field may be set for all, and again by an environment."""

    kubernetes: Version | None = Field(
        None, description="Kubernetes version that objects are checked against.", examples=["1.36"]
    )
    profile: str | None = Field(None, description="Kind of cluster.", examples=["generic", "eks"])
    namespace: LabelName | None = Field(None, description="Namespace of specs that name none.")
    registry: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.:/_-]*[a-z0-9]$")] | None = Field(
        None, description="Mirror that kaigen's own images are pulled from instead of their registries."
    )
    images: Images = Field(
        default_factory=dict, validate_default=True, description="Images that kaigen puts into pods itself."
    )
    values: dict[str, dict[str, JsonValue]] = Field(
        {},
        description="Settings to override, by app (`NAME` or `NAMESPACE/NAME`), as in the chart's `values.yaml`.",
    )


class ConfigFile(Surroundings):
    """The whole file."""

    api_version: Literal["kaigen.dev/v1alpha1"] = Field(API_VERSION, description="Version of kaigen's kinds.")
    kind: Literal["Config"] = Field("Config", description="The kind.")
    specs: Annotated[list[RelativePath], Field(min_length=1)] = Field(
        ["specs"], description="Files and folders that hold the specs."
    )
    output: RelativePath = Field(
        "rendered", description="Folder that is rendered into; it must hold nothing else."
    )
    format: Format = Field("manifests", description="What is written: `manifests`, `chart` or `both`.")
    passthrough: bool = Field(
        False, description="Let plain Kubernetes objects among the specs through, untouched."
    )
    environments: dict[AppName, Surroundings] = Field({}, description="Overrides by environment.")


CONFIG_ENTRY = KindEntry(
    API_VERSION, "Config", "kaigen.config_file", "ConfigFile", "settings of a repository"
)


def _mirrored(ref: str, registry: str) -> str:
    host, _, rest = ref.partition("/")
    return (
        f"{registry}/{rest}"
        if rest and ("." in host or ":" in host or host == "localhost")
        else f"{registry}/{ref}"
    )


def read_config_file(root: Path, environment: str) -> Config:
    """The settings of a run, from the file of a folder.

    Raises:
        InputError: when the file is wrong, or has no such environment.
    """
    path = root / FILE_NAME
    found = Diagnostics()
    file, document = _read(path, found) if path.is_file() else (ConfigFile(), None)
    found.raise_errors()
    assert file is not None
    layers: list[tuple[Surroundings, tuple[str, ...]]] = [(file, ())]
    if environment:
        if environment not in file.environments:
            from kaigen.load.suggest import did_you_mean

            known = sorted(file.environments)
            hint = did_you_mean(environment, known) or (
                f"known: {', '.join(known)}" if known else "kaigen.yaml names none"
            )
            raise InputError.of("KG0702", f"no environment `{environment}` in {FILE_NAME}", hint=hint)
        layers.append((file.environments[environment], ("environments", environment)))
    return _merge(root, environment, file, layers, document)


def value_layers(config: Config) -> list[Overrides]:
    """The overrides of kaigen.yaml, which find their places there when they are asked."""
    from kaigen.overrides import Layer

    return [Layer(values, _ValuePlaces(config, values)) for values in config.values]


class _ValuePlaces:
    """Where the overrides of kaigen.yaml stand; the file is read again when that is asked."""

    def __init__(self, config: Config, values: Overrides) -> None:
        self._config = config
        self._values = values

    def __call__(self, path: tuple[str | int, ...], *, key: bool) -> Mark | None:
        """The place of a path in these overrides; None when the file is another by now."""
        _, document = _read(self._config.root / FILE_NAME, Diagnostics())
        for start in ((), ("environments", self._config.environment)):
            node: Any = document.data if document else None
            for step in (*start, "values"):
                node = node.get(step) if isinstance(node, dict) else None
            if node == self._values:
                mark: Mark = document.mark((*start, "values", *path), key=key)
                return mark
        return None


def _read(path: Path, found: Diagnostics) -> tuple[ConfigFile | None, Any]:
    from kaigen.kinds.validate import validate_document
    from kaigen.load.sources import read_sources
    from kaigen.load.yaml import parse

    sources, problems = read_sources([str(path)], root=path.parent)
    found.extend(problems)
    documents = [document for source in sources for document in parse(source, found)]
    if found.has_errors:
        return None, None
    if not documents:
        return ConfigFile(), None
    document = documents[0]
    if len(documents) > 1:
        found.add(Diagnostic("KG0701", f"{FILE_NAME} holds more than one document", documents[1].mark(())))
    if not isinstance(document.data, dict):
        found.add(Diagnostic("KG0701", f"{FILE_NAME} must hold a mapping", document.mark(())))
        return None, None
    model, diagnostics = validate_document(document, CONFIG_ENTRY)
    found.extend(diagnostics)
    return (model if isinstance(model, ConfigFile) else None), document


def _merge(
    root: Path,
    environment: str,
    file: ConfigFile,
    layers: list[tuple[Surroundings, tuple[str, ...]]],
    document: Any,
) -> Config:
    from kaigen.check import supported_targets
    from kaigen.load.suggest import did_you_mean

    found = Diagnostics()
    base = Config()
    kubernetes, profile, namespace, registry = base.kubernetes, base.profile, base.namespace, ""
    named: dict[str, str] = {}
    for layer, place in layers:
        for name, value, known in (
            ("kubernetes", layer.kubernetes, supported_targets()),
            ("profile", layer.profile, profile_names()),
        ):
            if value is not None and value not in known:
                mark = document.mark((*place, name))
                hint = did_you_mean(value, known) or "known: " + ", ".join(known)
                found.add(
                    Diagnostic(
                        "KG0703", f"unknown `{name}` `{value}`", mark, hint, path=".".join((*place, name))
                    )
                )
        kubernetes = layer.kubernetes or kubernetes
        profile = layer.profile or profile
        namespace = layer.namespace or namespace
        registry = layer.registry or registry
        named |= layer.images.model_dump(by_alias=True, exclude_none=True)
    found.raise_errors()
    images = default_images()
    if registry:
        images = {name: _mirrored(ref, registry) for name, ref in images.items()}
    return Config(
        root=root,
        environment=environment,
        kubernetes=kubernetes,
        profile=profile,
        namespace=namespace,
        images={**images, **named},
        values=tuple(layer.values for layer, _ in layers if layer.values),
        specs=tuple(file.specs),
        output=f"{file.output}/{environment}" if environment else file.output,
        format=file.format,
        passthrough=file.passthrough,
    )
