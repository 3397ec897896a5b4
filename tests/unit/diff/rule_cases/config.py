"""Configuration and secrets."""

from __future__ import annotations

from tests.unit.diff.diff_cases import obj, with_
from tests.unit.diff.rule_cases.objects import Case, config, uses_config

CASES: list[Case] = [
    Case(
        "config-data",
        "no known object uses it",
        config(data={"a": "1"}),
        config(data={"a": "2"}),
        [("info", "pods that mount it get it within minutes, without a restart (the name has no content hash)")],
    ),
    Case(
        "config-data",
        "a Deployment mounts it",
        config(data={"a": "1"}),
        config(data={"a": "2"}),
        [("info", "pods of Deployment web get it within minutes, without a restart (the name has no content hash)")],
        (uses_config("mount"),),
    ),
    *(
        Case(
            "config-data",
            f"a Deployment reads it by {how}",
            config(data={"a": "1"}),
            config(data={"a": "2"}),
            [
                (
                    "notice",
                    "Deployment web keeps the old values until restarted: it is used as an environment variable "
                    "or with subPath",
                )
            ],
            (uses_config(how),),
        )
        for how in ("env", "subPath")
    ),
    *(
        Case(
            "config-data",
            f"only {field} differs",
            with_(config(kind="Secret"), field, {"a": "MQ=="}),
            with_(config(kind="Secret"), field, {"a": "Mg=="}),
            [("info", "pods that mount it get it within minutes, without a restart (the name has no content hash)")],
        )
        for field in ("binaryData", "stringData")
    ),
    Case("config-data", "it is immutable", config(data={"a": "1"}, immutable=True), config(data={"a": "2"}), []),
    Case("config-data", "labels alone", config(), config(metadata={"labels": {"a": "b"}}), []),
    Case(
        "config-replaced",
        "a hashed name",
        config("cfg-1a2b3c4d", data={"a": "1"}),
        config("cfg-5e6f7a8b", data={"a": "2"}),
        [("info", "ConfigMap cfg-5e6f7a8b replaces ConfigMap cfg-1a2b3c4d: pods switch to it when they are updated")],
    ),
    Case(
        "config-removed",
        "still used",
        config(),
        None,
        [("danger", "is deleted, but Deployment web still uses it: new pods will not start")],
        (uses_config("env"),),
    ),
    Case(
        "config-removed",
        "no longer used",
        config(),
        None,
        [("info", "is deleted; other pods that use it will not start again")],
    ),
    Case(
        "secret-source",
        "another key",
        obj("ExternalSecret", "s", "external-secrets.io/v1", spec={"a": 1}),
        obj("ExternalSecret", "s", "external-secrets.io/v1", spec={"a": 2}),
        [("notice", "the Secret's content changes; pods get it if they mount it, or after a restart")],
    ),
    Case(
        "secret-source",
        "gone",
        obj("SealedSecret", "s", "bitnami.com/v1alpha1"),
        None,
        [("notice", "the Secret that it created is deleted with it, unless it is set to be retained")],
    ),
]
