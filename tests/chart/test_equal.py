"""One app, two forms: Helm renders each chart to the objects of the plain manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kaigen.compile.app import Rendered
from kaigen.compile.expressions import Release, Scope, resolve
from kaigen.compile.field_expressions import spec_digest
from kaigen.compile.name_expressions import full_name
from kaigen.dialects.registry import own_kinds
from kaigen.emit.manifests import NAME_REFERENCES, manifest_files
from kaigen.emit.values import check_values
from kaigen.kubernetes.pods import pod_templates
from kaigen.pipeline.result import Compiled
from kaigen.yaml.dump import dump
from tests import helm, plain_yaml
from tests.cases import AppCase, app_cases, write_chart
from tests.chart.synthesis import emptied, filled
from tests.differences import assert_same

every_app = pytest.mark.parametrize("app_case", app_cases(), ids=lambda case: case.name, indirect=True)
both_ways = pytest.mark.parametrize("synthesised", [filled, emptied], ids=["filled", "emptied"])

ONE_OF_EACH_KIND = list({case.compiled.app.kind: case for case in app_cases()}.values())

Synthesis = Callable[..., dict[str, Any]]
Objects = list[dict[str, Any]]


class Overridden(NamedTuple):
    """An app with other settings.

    Attributes:
        values: the settings as the user writes them.
        effective: all settings.
        objects: the objects of the manifests.
    """

    values: dict[str, Any]
    effective: dict[str, Any]
    objects: Objects


def written(rendered: list[Rendered]) -> Objects:
    """Return the objects as read back from written manifests."""
    return ordered([plain_yaml.load(dump(item.body)) for item in rendered])


def ordered(objects: Objects) -> Objects:
    return sorted(objects, key=lambda o: (o["apiVersion"], o["kind"], o["metadata"]["name"]))


def without_tests(objects: Objects) -> Objects:
    return ordered([o for o in objects if "helm.sh/hook" not in o["metadata"].get("annotations", {})])


def by_helm(
    chart: Path, item: Compiled, values: Mapping[str, Any] | None = None, *, release: str = "", fast: bool = True
) -> Objects:
    """Return the chart's objects without hooks."""
    found = helm.template(chart, release or item.app.name, item.app.namespace, values, fast=fast)
    return without_tests(found)


@pytest.fixture(scope="module")
def app_case(request: pytest.FixtureRequest) -> AppCase:
    """An app. The tests of one app run after each other, and share its chart and what Helm renders."""
    case: AppCase = request.param
    return case


@pytest.fixture(scope="module")
def item(app_case: AppCase) -> Compiled:
    return app_case.compiled


@pytest.fixture(scope="module")
def chart(item: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_chart(tmp_path_factory.mktemp("chart"), item)


@pytest.fixture(scope="module")
def release(chart: Path, item: Compiled) -> Objects:
    """What Helm renders for a release with the app's name."""
    return helm.template(chart, item.app.name, item.app.namespace, fast=True)


@pytest.fixture(scope="module")
def copy(chart: Path, item: Compiled) -> Objects:
    """What Helm renders for a release with another name."""
    return helm.template(chart, "a-copy", item.app.namespace, fast=True)


@pytest.fixture(scope="module")
def overridden(app_case: AppCase, item: Compiled) -> Callable[[Synthesis], Overridden]:
    """Gives the app with every setting overridden in one way."""

    @cache
    def get(synthesised: Synthesis) -> Overridden:
        values = synthesised(item.app)
        effective = app_case.effective(values)
        return Overridden(values, effective, written(item.app.render(effective)))

    return get


@every_app
def test_helm_renders_the_objects_of_the_manifests(item: Compiled, release: Objects) -> None:
    rendered = without_tests(release)
    assert_same(rendered, written(item.objects))
    assert rendered


@every_app
def test_manifest_files_contain_the_objects(item: Compiled) -> None:
    files = manifest_files(item.app, rendered=item.objects)
    texts = [text for path, text in files.items() if not path.endswith(("/kustomization.yaml", NAME_REFERENCES))]
    found = [plain_yaml.load(text) for text in texts]
    assert_same(ordered(found), ordered([i.body for i in item.objects]))


# The library renders each chart, and the program one of each kind: see `test_helm_oracle.py`. With the most that can be
# set, the program renders all charts as dependencies: see `test_values.py`.
@every_app
@both_ways
def test_both_forms_agree_with_every_setting_overridden(
    app_case: AppCase,
    chart: Path,
    item: Compiled,
    synthesised: Synthesis,
    overridden: Callable[[Synthesis], Overridden],
) -> None:
    other = overridden(synthesised)
    assert check_values(item.app, other.effective) == []
    assert other.effective != item.values or not any(setting.default for setting in item.app.settings)
    assert_same(by_helm(chart, item, other.values, fast=app_case not in ONE_OF_EACH_KIND), other.objects)


@every_app
@both_ways
def test_overrides_written_as_default_values_give_the_same_objects(
    item: Compiled, synthesised: Synthesis, overridden: Callable[[Synthesis], Overridden], tmp_path: Path
) -> None:
    other = overridden(synthesised)
    assert_same(by_helm(write_chart(tmp_path, item, other.effective), item), other.objects)


@every_app
def test_every_setting_changes_something(app_case: AppCase, item: Compiled) -> None:
    """No setting is without effect, alone or with all others, and the tests above cover each of them."""
    values = filled(item.app)
    before, after = (_everything(item, each) for each in (item.values, app_case.effective(values)))
    for setting in item.app.settings:
        part: Any = values
        for key in setting.keys:
            part = part[key]
        for key in reversed(setting.keys):
            part = {key: part}
        if _everything(item, app_case.effective(part)) == before:
            others = deepcopy(values)
            here = others
            *parents, last = setting.keys
            for key in parents:
                here = here[key]
            del here[last]
            assert _everything(item, app_case.effective(others)) != after, setting.path


def _everything(item: Compiled, values: Mapping[str, Any]) -> Any:
    """Return all objects, including those of `helm test`."""
    app = item.app
    scope = Scope(app.name, app.namespace, values)
    return [resolve(o.body, scope) for o in app.objects if o.when is None or o.when.value(scope)]


@every_app
def test_another_release_is_an_independent_copy(item: Compiled, release: Objects, copy: Objects) -> None:
    _check_copy(item, without_tests(release), without_tests(copy))
    assert _names(_tests_of(item, release)).isdisjoint(_names(_tests_of(item, copy)))


def _check_copy(item: Compiled, first: Objects, second: Objects) -> None:
    assert_same(second, written(item.app.render(item.values, release="a-copy")))
    assert _names(first).isdisjoint(_names(second))
    assert len(_names(first)) == len(first)
    for own, other in ((first, second), (second, first)):
        own_pods, other_pods = list(_pod_labels(own)), list(_pod_labels(other))
        for selector in _selectors(own):
            # The Service of an alias selects the pods of another app, and so does that of a canary with every request.
            is_foreign = selector.get("app.kubernetes.io/name", item.app.name) != item.app.name
            is_own = item.app.kind != "Alias" and ("app.kubernetes.io/instance" in selector or not is_foreign)
            assert any(_selects(selector, pod) for pod in own_pods) == is_own
            assert not any(_selects(selector, pod) for pod in other_pods)
        assert {name for _, name in _names(other)}.isdisjoint(_used_names(own))


def _tests_of(item: Compiled, objects: Objects) -> Objects:
    """Return the objects of `helm test`, which watch objects of their own release."""
    plain = without_tests(objects)
    hooks = [found for found in objects if found not in plain]
    assert hooks or _is_of_a_user(item) or not any(map(pod_templates, plain))
    assert _watched_names(hooks) <= {name for _, name in _names(plain)}
    return hooks


@every_app
def test_a_jobs_name_ends_in_the_hash_of_its_spec(item: Compiled, release: Objects, copy: Objects) -> None:
    hashed = [o.hashed for o in item.app.objects if o.hashed]
    own = _jobs(release)
    for name, jobs in ((item.app.name, own), ("a-copy", _jobs(copy))):
        assert len(jobs) == sum(o.kind in {"Job", "JobSet"} for o in item.app.objects)
        full = full_name(name, item.app.name, item.app.name_max)
        plain = {
            f"{o.name.prefix}{full}{o.name.suffix}"
            for o in item.app.objects
            if o.kind == "Job" and isinstance(o.name, Release)
        }
        for job, same in zip(jobs, own, strict=True):
            digest = spec_digest(same["spec"])
            wanted = {f"{full}{name.suffix}-{digest}" for name in hashed} | plain
            assert job["metadata"]["name"] in wanted


def _jobs(objects: Objects) -> Objects:
    return [found for found in without_tests(objects) if found["kind"] in {"Job", "JobSet"}]


def _is_of_a_user(item: Compiled) -> bool:
    return item.spec is not None and item.spec.entry not in own_kinds()


def _names(objects: Objects) -> set[tuple[str, str]]:
    return {(o["kind"], o["metadata"]["name"]) for o in objects}


def _watched_names(objects: Objects) -> set[str]:
    return {name for o in objects for rule in o.get("rules", ()) for name in rule.get("resourceNames", ())}


def _pod_labels(objects: Objects) -> Iterator[Mapping[str, str]]:
    for found in objects:
        for template in pod_templates(found):
            yield template.metadata["labels"]  # type: ignore[misc]


def _selectors(objects: Objects) -> Iterator[Mapping[str, str]]:
    for found in objects:
        spec = found.get("spec", {})
        if found["kind"] == "Service":
            yield spec["selector"]
        elif found["kind"] == "NetworkPolicy":
            yield spec["podSelector"]["matchLabels"]
            for rule in spec.get("ingress", []):
                for peer in rule.get("from", []):
                    # An empty one is every pod of the namespace, those of another release too; one of a spec
                    # selects pods of other apps.
                    labels = peer.get("podSelector", {}).get("matchLabels", {})
                    if "app.kubernetes.io/instance" in labels:
                        yield labels
        elif found["kind"] in {"InferencePool", "PodDisruptionBudget", "PodMonitor"}:
            yield spec["selector"]["matchLabels"]


def _selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    return selector.items() <= labels.items()


_REFERENCES = ("claimName", "serviceAccountName", "subdomain", "resourceClaimTemplateName")


def _used_names(tree: Any) -> Iterator[str]:
    """Return the names by which objects refer to others of their app."""
    if isinstance(tree, list):
        for node in tree:
            yield from _used_names(node)
    elif isinstance(tree, dict):
        for key, node in tree.items():
            if key in _REFERENCES:
                yield node
            elif key in {"roleRef", "configMap"}:
                yield node["name"]
            else:
                yield from _used_names(node)
