"""A document with any number of problems takes linear time, and a run reports the first thousand."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest

from kaigen.diagnostics.diagnostic import Severity
from kaigen.diagnostics.problem import MOST, Problem, first_problems
from tests.unit.extend.repository import KIND, SCHEMA, SPEC
from tests.unit.security.hostile import CONFIG, Repository

TENANT = """\
passthrough: true
tenants:
  team-a: {folders: [specs], namespaces: [team-a], images: ["registry.example.com/team-a/*"]}
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: team-a}\nspec:\n"
CONTAINER = POD + "  containers:\n  - name: c\n    image: registry.example.com/team-a/x\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n  namespace: team-a\n"


def lines(line: str, count: int) -> str:
    return "".join(line.format(n=n) for n in range(count))


CASES: dict[str, tuple[int, Callable[[int], str]]] = {
    "unknown fields": (25_000, lambda n: POD + lines("  f{n}: 1\n", n)),
    "fields that are similar to known ones": (20_000, lambda n: POD + lines("  container{n}: 1\n", n)),
    "annotations": (20_000, lambda n: CONFIG_MAP + "  annotations:\n" + lines("    nginx.org/a{n}: b\n", n)),
    "invalid annotations": (20_000, lambda n: CONFIG_MAP + "  annotations:\n" + lines("    a b{n}: b\n", n)),
    "invalid labels": (20_000, lambda n: CONFIG_MAP + "  labels:\n" + lines("    a{n}: b c\n", n)),
    "errors in one line": (30_000, lambda n: CONFIG_MAP + "data: {" + lines("k{n}: [1], ", n) + "}\n"),
    "errors behind a merge key": (30_000, lambda n: CONFIG_MAP + "data:\n  <<: {" + lines("k{n}: [1], ", n) + "}\n"),
    "containers": (
        6_000,
        lambda n: (
            POD + "  containers:\n" + lines("  - {{name: c{n}, image: x, securityContext: {{privileged: true}}}}\n", n)
        ),
    ),
    "tolerations": (20_000, lambda n: CONTAINER + "  tolerations:\n" + lines("  - {{operator: Exists}}\n", n)),
    "mounts of unknown volumes": (
        6_000,
        lambda n: (
            CONTAINER
            + "    volumeMounts:\n"
            + lines("    - {{name: v{n}, mountPath: /a{n}}}\n", n)
            + "  volumes:\n"
            + lines("  - {{name: w{n}, emptyDir: {{}}}}\n", n)
        ),
    ),
    "equal names": (10_000, lambda n: POD + "  containers:\n" + lines("  - {{name: c, image: evil/x}}\n", n)),
    "unknown fields of many items": (
        30_000,
        lambda n: (
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: x, namespace: team-a}\nrules:\n"
            + lines("- {{apiGroups: [''], resources: [pods], verb{n}: [get]}}\n", n)
        ),
    ),
    "documents": (
        2_000,
        lambda n: lines("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: x{n}}}\nspec: {{a: 1}}\n", n),
    ),
}

SECONDS = 12
"""Of processor time. Each case takes one or two, and took more than twenty when each problem searched all others."""

EXPECTED = {"documents": (4_000, False)}
"""Number of errors, and whether there are more, where they are not the first thousand of one document."""


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_problems_takes_seconds(repository: Repository, name: str) -> None:
    count, make = CASES[name]
    repository.write({"kaigen.yaml": CONFIG + TENANT, "specs/x.yaml": make(count)})
    begin = time.process_time()
    done = repository.kaigen("validate")
    assert time.process_time() - begin < SECONDS
    counted = len(re.findall(r"^specs/x.yaml:.* error\[KG", done.err, re.MULTILINE))
    says = f"more problems than the {MOST:,} that are shown" in done.err
    assert (done.code, counted, says) == (2, *EXPECTED.get(name, (MOST + 1, True)))


@pytest.mark.parametrize("name", ["mounts of unknown volumes", "unknown fields", "errors in one line"])
def test_check_reports_the_first_thousand_too(repository: Repository, name: str) -> None:
    count, make = CASES[name]
    repository.write({"manifests/x.yaml": make(count)})
    begin = time.process_time()
    done = repository.kaigen("check", "manifests")
    assert time.process_time() - begin < SECONDS
    assert (done.code, done.err.count("error[KG") + done.out.count("error[KG")) == (1, MOST + 1)


def test_objects_of_templates_report_the_first_thousand_too(repository: Repository) -> None:
    template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ release }}'}\ndata:\n"
    template += "{% for n in range(3000) %}  k{{ n }}: [1]\n{% endfor %}"
    repository.write(
        {
            "kaigen.yaml": CONFIG + "kinds: [kinds]\n",
            "kinds/thing/kind.yaml": KIND,
            "kinds/thing/schema.yaml": SCHEMA,
            "kinds/thing/templates/object.yaml.jinja": template,
            "specs/one.yaml": SPEC,
        }
    )
    begin = time.process_time()
    done = repository.kaigen("validate")
    assert time.process_time() - begin < SECONDS
    says = "2,000 more problems than the 1,000 that are shown" in done.err
    assert (done.code, says) == (2, True)


def test_an_error_is_not_hidden_behind_warnings() -> None:
    warnings = [Problem("KG0560", f"warning {n}", ("a", n), severity=Severity.WARNING) for n in range(3 * MOST)]
    error = Problem("KG0504", "error", ("b",))
    shown = first_problems([*warnings, error])
    assert len(shown) == MOST + 1
    assert error in shown
    assert shown[-1].severity is Severity.WARNING
    assert "2,001 more problems" in shown[-1].message


def test_errors_that_are_not_shown_are_errors() -> None:
    shown = first_problems([Problem("KG0504", f"error {n}", ("a", n)) for n in range(MOST + 5)])
    assert [item.severity for item in shown[-1:]] == [Severity.ERROR]
    assert first_problems(shown[:MOST]) == shown[:MOST]
