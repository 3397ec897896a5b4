"""Configuration and secrets."""

from __future__ import annotations

from tests.unit.diff.diff_cases import obj
from tests.unit.diff.rule_cases.objects import Case, config, uses_config

CASES: list[Case] = [
    Case(
        "config-data",
        "nobody known uses it",
        config(data={"a": "1"}),
        config(data={"a": "2"}),
        [("info", "pods that mount it see it within minutes without restart (its name is not hashed)")],
    ),
    Case(
        "config-data",
        "a Deployment mounts it",
        config(data={"a": "1"}),
        config(data={"a": "2"}),
        [
            (
                "info",
                "pods of Deployment web see it within minutes without restart (its name is not hashed)",
            )
        ],
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
                    "Deployment web keeps the old values until restarted: read as environment or by subPath",
                )
            ],
            (uses_config(how),),
        )
        for how in ("env", "subPath")
    ),
    Case("config-data", "labels alone", config(), config(metadata={"labels": {"a": "b"}}), []),
    Case(
        "config-replaced",
        "a hashed name",
        config("cfg-1a2b3c4d", data={"a": "1"}),
        config("cfg-5e6f7a8b", data={"a": "2"}),
        [
            (
                "info",
                "ConfigMap cfg-5e6f7a8b takes the place of ConfigMap cfg-1a2b3c4d: what uses it takes it "
                "up as it "
                "changes itself",
            )
        ],
    ),
    Case(
        "config-removed",
        "still used",
        config(),
        None,
        [("danger", "is deleted, yet Deployment web still uses it: new pods will not start")],
        (uses_config("env"),),
    ),
    Case(
        "config-removed",
        "no longer used",
        config(),
        None,
        [("info", "is deleted; pods that still use it from elsewhere would not start again")],
    ),
    Case(
        "secret-source",
        "another key",
        obj("ExternalSecret", "s", "external-secrets.io/v1", spec={"a": 1}),
        obj("ExternalSecret", "s", "external-secrets.io/v1", spec={"a": 2}),
        [("notice", "the Secret's content follows; pods see it when it is mounted, or after a restart")],
    ),
    Case(
        "secret-source",
        "gone",
        obj("SealedSecret", "s", "bitnami.com/v1alpha1"),
        None,
        [("notice", "the Secret that it made is deleted with it, unless told to stay")],
    ),
]
