"""kaigen.yaml and an environment may set the same key: which value wins, or how both are combined, key by key."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from kaigen.catalog.images import default_images
from kaigen.config.block_settings import (
    ExternalSecretsSettings,
    ObjectPatch,
)
from kaigen.config.cluster import ClusterVersions
from kaigen.config.external import ExternalEntry
from kaigen.config.file import Environment, SharedFields
from kaigen.config.layers import LAYERS
from kaigen.config.load import load_config
from kaigen.config.network import AddressBlock, CaBundle, EgressBlock, Network, Peer
from kaigen.config.registry import RegistryBlock, Rule
from kaigen.config.settings import Config, Override
from kaigen.kinds.block import Later, document_names

REPLACED = {"network.caBundle", "network.downloadEgress"}
"""Blocks that are one value: an environment replaces all their fields at once."""
PROD = ("environments", "prod")


@dataclass(frozen=True)
class Case:
    """A key with its value in the file and in the environment `prod`.

    Attributes:
        key: dotted, as in kaigen.yaml.
        file: the value in the file.
        environment: the value in the environment.
        read: returns the setting that both are for.
        neither: the setting when neither sets the key.
        only_file: the setting when only the file sets it.
        only_environment: the setting when only the environment sets it.
        both: the setting when both set it.
        note: what is special about the values.
    """

    key: str
    file: Any
    environment: Any
    read: Callable[[Config], object]
    neither: object
    only_file: object
    only_environment: object
    both: object
    note: str = ""


def last(
    key: str, values: tuple[Any, Any], read: Callable[[Config], object], settings: tuple[Any, Any, Any], note: str = ""
) -> Case:
    """A key whose last value wins; `settings` without one, with that of the file, and with that of the environment."""
    neither, file, environment = settings
    return Case(key, *values, read, neither, file, environment, environment, note)


def of_run(field: str) -> Callable[[Config], object]:
    return lambda config: getattr(config, field)


def controller(name: str) -> Callable[[Config], object]:
    return lambda config: config.controllers.get(name)


def image(name: str) -> Callable[[Config], object]:
    return lambda config: config.images.get(name)


def network(field: str) -> Callable[[Config], object]:
    return lambda config: getattr(config.network or Network(), field)


def peer(cidr: str) -> Peer:
    return Peer(ip_block=AddressBlock(cidr=cidr))


def secrets(field: str) -> Callable[[Config], object]:
    return lambda config: getattr(config.external_secrets or ExternalSecretsSettings("none"), field)


def substratus(config: Config) -> object:
    return config.dialects.get("substratus")


def registry(config: Config) -> object:
    """The mirror of all images, and the image of kaigen's downloader."""
    return config.mirror, config.images["downloader"]


def of_secrets(key: str, values: tuple[Any, Any], field: str, settings: tuple[Any, Any, Any]) -> Case:
    """A field of ExternalSecrets, which need a store: its values are set next to a store of the file."""
    return last(f"secrets.externalSecrets.{key}", values, secrets(field), settings)


DOWNLOADER = default_images()["downloader"]
_REST = DOWNLOADER.partition("/")[2]
CASES = [
    last("kubernetes", ("1.34", "1.35"), of_run("kubernetes"), ("1.36", "1.34", "1.35")),
    last("profile", ("eks", "gke"), of_run("profile"), ("generic", "eks", "gke")),
    last("region", ("north", "south"), of_run("region"), ("", "north", "south")),
    *(
        last(f"cluster.{name}", ("0.18.0", "0.19.2"), controller(name), (None, "0.18.0", "0.19.2"))
        for name in ClusterVersions.__struct_fields__
    ),
    last(
        "namespace",
        ("one", "two"),
        lambda config: (config.namespace, config.implied_namespace),
        (("default", True), ("one", False), ("two", False)),
    ),
    last("format", ("chart", "both"), of_run("format"), ("manifests", "chart", "both")),
    last("format", ("chart", "manifests"), of_run("format"), ("manifests", "chart", "manifests"), "default"),
    last("kustomizations", (True, False), of_run("kustomizations"), (False, True, False)),
    last(
        "registry",
        ("one.example", "two.example"),
        registry,
        ((None, DOWNLOADER), (None, f"one.example/{_REST}"), (None, f"two.example/{_REST}")),
        "texts",
    ),
    last(
        "registry",
        ({"mirror": "one.example", "rules": [{"from": "quay.io", "to": "q"}]}, {"mirror": "two.example"}),
        registry,
        (
            (None, DOWNLOADER),
            (RegistryBlock(mirror="one.example", rules=[Rule(from_="quay.io", to="q")]), DOWNLOADER),
            (RegistryBlock(mirror="two.example"), DOWNLOADER),
        ),
        "blocks",
    ),
    last("kustomizations", (True, False), of_run("kustomizations"), (False, True, False)),
    last(
        "registry",
        ("one.example", {"rules": [{"from": "quay.io", "to": "q"}]}),
        registry,
        (
            (None, DOWNLOADER),
            (None, f"one.example/{_REST}"),
            (RegistryBlock(rules=[Rule(from_="quay.io", to="q")]), DOWNLOADER),
        ),
        "text, then block",
    ),
    last(
        "registry",
        ({"mirror": "one.example"}, "two.example"),
        registry,
        ((None, DOWNLOADER), (RegistryBlock(mirror="one.example"), DOWNLOADER), (None, f"two.example/{_REST}")),
        "block, then text",
    ),
    last("kustomizations", (True, False), of_run("kustomizations"), (False, True, False)),
    last(
        "registry",
        ("one.example", {}),
        registry,
        ((None, DOWNLOADER), (None, f"one.example/{_REST}"), (RegistryBlock(), DOWNLOADER)),
        "empty block",
    ),
    Case(
        "storageClasses",
        {"a": "one", "b": "one"},
        {"b": "two", "c": "two"},
        lambda config: {name: kind for name, kind in config.storage_classes.items() if kind},
        {},
        {"a": "one", "b": "one"},
        {"b": "two", "c": "two"},
        {"a": "one", "b": "two", "c": "two"},
    ),
    last(
        "builds.registry",
        ("one.example/a", "two.example/b"),
        of_run("build_registry"),
        ("", "one.example/a", "two.example/b"),
    ),
    *(
        last(
            f"network.{key}",
            ("http://one.example", "http://two.example"),
            network(field),
            (None, "http://one.example", "http://two.example"),
        )
        for key, field in (
            ("hubEndpoint", "hub_endpoint"),
            ("httpProxy", "http_proxy"),
            ("httpsProxy", "https_proxy"),
            ("packageIndex", "package_index"),
        )
    ),
    last("network.noProxy", (["a", "b"], ["c"]), network("no_proxy"), (None, ["a", "b"], ["c"])),
    last("network.noProxy", (["a"], []), network("no_proxy"), (None, ["a"], []), "empty"),
    last(
        "network.caBundle",
        ({"configMap": "one", "key": "one.pem"}, {"configMap": "two"}),
        network("ca_bundle"),
        (None, CaBundle(config_map="one", key="one.pem"), CaBundle(config_map="two")),
    ),
    last(
        "network.downloadEgress",
        (
            {"apiServer": [{"ipBlock": {"cidr": "10.0.0.1/32"}}], "ports": [9000], "jobs": True},
            {"apiServer": [{"ipBlock": {"cidr": "10.0.0.2/32"}}]},
        ),
        network("download_egress"),
        (
            None,
            EgressBlock(api_server=[peer("10.0.0.1/32")], ports=[9000], jobs=True),
            EgressBlock(api_server=[peer("10.0.0.2/32")]),
        ),
    ),
    of_secrets("store.name", ("one", "two"), "store", ("none", "one", "two")),
    of_secrets(
        "store.kind",
        ("SecretStore", "ClusterSecretStore"),
        "store_kind",
        ("ClusterSecretStore", "SecretStore", "ClusterSecretStore"),
    ),
    of_secrets("refreshInterval", ("1m", "2m"), "refresh_interval", ("1h", "1m", "2m")),
    of_secrets(
        "keyTemplate", ("{name}", "{env}/{name}"), "key_template", ("{namespace}/{name}", "{name}", "{env}/{name}")
    ),
    last(
        "secrets.provider",
        ("references", "externalSecrets"),
        lambda config: config.external_secrets is not None,
        (True, False, True),
    ),
    last(
        "secrets.provider",
        ("externalSecrets", "references"),
        lambda config: config.external_secrets is not None,
        (True, True, False),
        "off",
    ),
    *(
        last(f"images.{name}", ("one:1", "two:2"), image(name), (default_images().get(name), "one:1", "two:2"))
        for name in (*default_images(), "distributedLlama")
    ),
    *(
        Case(f"dialects.substratus.{key}", one, two, substratus, None, {key: one}, {key: two}, {key: two})
        for key, one, two in (
            ("clusterName", "one", "two"),
            ("artifacts", "gs://one", "gs://two"),
            ("registry", "one.example/a", "two.example/b"),
            ("pushSecret", "one", "two"),
            ("pullSecret", "one", "two"),
            ("storageClassName", "one", "two"),
        )
    ),
    *(
        Case(
            key,
            {"file": "1", "shared": "1"},
            {"prod": "2", "shared": "2"},
            of_run(key),
            {},
            {"file": "1", "shared": "1"},
            {"prod": "2", "shared": "2"},
            {"file": "1", "shared": "2", "prod": "2"},
        )
        for key in ("labels", "annotations")
    ),
    Case(
        "values",
        {"a": {"x": 1}},
        {"a": {"x": 2}},
        of_run("values"),
        (),
        ({"a": {"x": 1}},),
        ({"a": {"x": 2}},),
        ({"a": {"x": 1}}, {"a": {"x": 2}}),
    ),
    Case(
        "overrides",
        [{"spec": {"x": 1}}],
        [{"spec": {"x": 2}}],
        of_run("overrides"),
        (),
        (first := (Override((), (), {}, {"spec": {"x": 1}}, ("overrides", 0)),)),
        (second := (Override((), (), {}, {"spec": {"x": 2}}, (*PROD, "overrides", 0)),)),
        first + second,
    ),
    Case(
        "tenants",
        {"team": {"folders": ["specs/team"], "namespaces": ["team"], "gpus": 1, "hosts": ["a.example"]}},
        {"team": {"folders": ["specs/team"], "namespaces": ["team-prod"], "gpus": 8}},
        lambda config: [(each.namespaces, each.gpus, each.granted("hosts")) for each in config.tenants],
        [],
        [(("team",), 1, ("a.example",))],
        [(("team-prod",), 8, ())],
        [(("team-prod",), 8, ("a.example",))],
    ),
    Case(
        "patches",
        [{"target": {"app": "a"}, "patch": {"x": 1}}],
        [{"target": {"app": "a"}, "patch": {"x": 2}}],
        of_run("patches"),
        (),
        (one := (ObjectPatch("a", None, None, {"x": 1}, ("patches", 0)),)),
        (two := (ObjectPatch("a", None, None, {"x": 2}, (*PROD, "patches", 0)),)),
        one + two,
    ),
    Case(
        "external",
        [{"kind": "Secret", "name": "a"}],
        [{"kind": "Secret", "name": "b", "namespace": "n"}],
        of_run("external"),
        (),
        (a := (ExternalEntry(kind="Secret", name="a"),)),
        (b := (ExternalEntry(kind="Secret", name="b", namespace="n"),)),
        a + b,
    ),
]


def block(key: str, value: object) -> dict[str, Any]:
    """Return the block that sets a dotted key."""
    for part in reversed(key.split(".")):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def merged(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Return both blocks in one."""
    return {
        key: merged(one[key], two[key]) if isinstance(one.get(key), dict) and key in two else (one | two)[key]
        for key in one | two
    }


def test_every_key_that_an_environment_may_set_has_a_rule_for_its_layers() -> None:
    # The file defines clusters, and an environment lists them. Only an environment chooses apps, and what it follows.
    assert {*document_names(Environment)} - {"clusters", "apps", "follows"} == LAYERS.keys()


def test_every_key_that_an_environment_may_set_has_a_case() -> None:
    assert {case.key for case in CASES} == {*keys(inspect.type_info(SharedFields), ""), "tenants"}


def keys(found: inspect.Type, path: str) -> Iterator[str]:
    """Return the keys of a block; those of a block in it, unless it is replaced as a whole."""
    while isinstance(found, inspect.Metadata):
        found = found.type
    if isinstance(found, inspect.UnionType):
        given = [each for each in found.types if not isinstance(each, inspect.NoneType)]
        found = given[0] if len(given) == 1 else found
    if isinstance(found, inspect.CustomType) and isinstance(found.cls, Later):
        found = inspect.type_info(found.cls.block())
    if not isinstance(found, inspect.StructType) or path in REPLACED:
        yield path
        return
    for field in found.fields:
        yield from keys(field.type, f"{path}.{field.encode_name}".removeprefix("."))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.key} {case.note}".strip())
def test_the_value_of_an_environment_is_combined_with_that_of_the_file(case: Case, tmp_path: Path) -> None:
    def setting(environment: str, *, file: bool, prod: bool) -> object:
        # ExternalSecrets need a store, which a case of its own replaces.
        needed = {"secrets": {"externalSecrets": {"store": {"name": "none"}}}} if "secrets" in case.key else {}
        top = merged(needed, block(case.key, case.file) if file else {})
        of_prod = block(case.key, case.environment) if prod else {}
        text = json.dumps({**top, "environments": {"prod": of_prod, "dev": {}}})
        (tmp_path / "kaigen.yaml").write_text(text, encoding="utf-8")
        return case.read(load_config(tmp_path, environment))

    assert setting("prod", file=False, prod=False) == case.neither
    assert setting("prod", file=True, prod=False) == case.only_file
    assert setting("prod", file=False, prod=True) == case.only_environment
    assert setting("prod", file=True, prod=True) == case.both
    assert setting("dev", file=True, prod=True) == case.only_file
    assert setting("", file=True, prod=True) == case.only_file
