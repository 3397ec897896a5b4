"""From two trees to what differs: pairing, apps, noise, and files that cannot be read."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaigen.diff import ABSENT, Change, compare, render_json, render_markdown, render_text
from kaigen.diff.objects import LARGEST
from kaigen.diff.pairing import stem
from kaigen.diff.rules import RULES
from kaigen.diff.trees import AppKey, locate
from tests.unit.diff.diff_cases import (
    KEEP,
    Obj,
    claim,
    container,
    deployment,
    difference,
    job,
    obj,
    only_app,
    only_object,
    said,
    template,
    tree,
    with_,
)

KEYS = (
    *("name", "type", "ports", "port", "spec", "template", "containers", "securityContext", "capabilities"),
    *("drop", "add", "env", "envFrom", "volumes", "resources", "limits", "requests", "storage", "replicas"),
    *("policyTypes", "ingress", "egress", "from", "to", "rules", "verbs", "resourceNames", "apiGroups"),
    *("subjects", "selector", "matchLabels", "leaderWorkerTemplate", "size", "workerTemplate", "metadata"),
    *("replicatedJobs", "nodeSelector", "volumeClaimTemplates", "source", "destination", "syncPolicy"),
    *("automated", "hostnames", "backendRefs", "scaleTargetRef", "minReplicas", "maxReplicas", "clusterIP"),
    *("immutable", "volumeMounts", "initContainers", "image", "lifecycle", "preStop", "httpGet", "host"),
    *("jobTemplate", "rayClusterConfig", "workerGroupSpecs", "resourceClaims", "podSelector", "ipBlock"),
)
KINDS = sorted(
    {
        (api, kind)
        for rule in RULES
        for kind, _, group in (item.partition(".") for item in rule.types)
        for api in [f"{group}/v1" if group else "v1"]
    }
)

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)

SERVICE = obj("Service", "web", spec={"ports": [{"port": 80}]})


def test_nothing_heavy_is_imported_before_it_is_needed() -> None:
    heavy = ["jinja2", "jsonschema", "pydantic", "subprocess"]
    code = f"import sys, kaigen.diff; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class TestPlaces:
    @pytest.mark.parametrize(
        ("path", "app", "role", "file"),
        [
            ("ns/app/manifests/job.yaml", ("", "ns", "app"), "object", "manifests/job.yaml"),
            ("ns/app/chart/templates/job.yaml", ("", "ns", "app"), "chart", "chart/templates/job.yaml"),
            ("ns/app/manifests/kustomization.yaml", ("", "ns", "app"), "bookkeeping", "manifests/kustomization.yaml"),
            ("envs/prod/ns/app/manifests/a.yml", ("envs/prod", "ns", "app"), "object", "manifests/a.yml"),
            ("prod/ns/app/chart/Chart.yaml", ("prod", "ns", "app"), "chart", "chart/Chart.yaml"),
            ("prod/ns/chart/manifests/a.yaml", ("prod", "ns", "chart"), "object", "manifests/a.yaml"),
            ("argocd/apps.yaml", ("argocd", "", ""), "object", "apps.yaml"),
            ("top.yaml", ("", "", ""), "object", "top.yaml"),
            ("README.md", ("", "", ""), "other", "README.md"),
            (".kaigen-index", ("", "", ""), "bookkeeping", ".kaigen-index"),
            ("ns/.hidden/manifests/a.yaml", ("ns/.hidden/manifests", "", ""), "bookkeeping", "a.yaml"),
        ],
    )
    def test_a_file_belongs_where_it_lies(self, path: str, app: tuple[str, str, str], role: str, file: str) -> None:
        assert locate(path) == (AppKey(*app), role, file)


class TestNothing:
    def test_equal_trees_do_not_differ(self) -> None:
        files = tree(SERVICE)
        assert compare(files, dict(files)) == Change()

    def test_files_that_are_the_same_are_not_read(self) -> None:
        same = {"team-a/app/manifests/broken.yaml": b"{", "team-b/app/manifests/broken.yaml": b"\xff"}
        change = compare({**same, **tree(SERVICE)}, {**same, **tree(with_(SERVICE, "spec/type", "NodePort"))})
        assert [item.name for item in only_app(change).objects] == ["web"]

    @pytest.mark.parametrize(
        "new",
        [
            b"# from specs/b.yaml\n# by kaigen 2\nkind: A\napiVersion: v1\n",
            b"kind: A # a comment\napiVersion: v1\n",
            b"apiVersion: v1\nkind: 'A'\n",
            b'{"kind": "A", "apiVersion": "v1"}\n',
            b"\xef\xbb\xbfkind: A\r\napiVersion: v1\r\n",
        ],
    )
    def test_another_way_to_write_the_same_is_counted_and_no_more(self, new: bytes) -> None:
        old = b"# from specs/a.yaml\nkind: A\napiVersion: v1\n"
        path = "ns/app/manifests/a.yaml"
        assert compare({path: old}, {path: new}) == Change(formatting_only=1)

    def test_a_file_of_another_name_is_the_same_object(self) -> None:
        data = json.dumps(SERVICE).encode()
        assert compare({"n/a/manifests/a.yaml": data}, {"n/a/manifests/b.yaml": data}) == Change(formatting_only=1)

    def test_where_an_object_came_from_does_not_count(self) -> None:
        old = with_(SERVICE, "metadata/annotations", {"kaigen.dev/source": "a.yaml", "kaigen.dev/source-line": "3"})
        new = with_(SERVICE, "metadata/annotations", {"kaigen.dev/source": "b.yaml"})
        assert difference(old, new) == Change(formatting_only=1)
        assert difference(SERVICE, new) == Change(formatting_only=1)

    def test_bookkeeping_does_not_count(self) -> None:
        old = {".kaigen-index": b"1", "ns/app/manifests/kustomization.yaml": b"a"}
        assert compare(old, dict.fromkeys(old, b"2")) == Change()

    def test_other_files_are_counted(self) -> None:
        assert compare({}, {"README.md": b"x", "values.yaml": b"a: 1"}) == Change(other_files=2)

    def test_dates_are_text(self) -> None:
        path = "ns/app/manifests/a.yaml"
        change = compare(
            {path: b"kind: A\napiVersion: v1\nwhen: 2026-01-01\n"},
            {path: b"kind: A\napiVersion: v1\nwhen: '2026-01-01'\n"},
        )
        assert change == Change(formatting_only=1)


class TestPairs:
    def test_a_run_of_another_hash_is_the_same_object_replaced(self) -> None:
        new = job("run-5e6f7a8b", template(container(command=["b"])))
        item = only_object(difference(job("run-1a2b3c4d"), new))
        assert (item.status, item.old_name, item.new_name) == ("replaced", "run-1a2b3c4d", "run-5e6f7a8b")
        assert [change.path for change in item.fields] == ["spec.template.spec.containers[run].command"]

    def test_so_it_is_when_the_files_have_other_names(self) -> None:
        old = {"ns/app/manifests/run-1a2b3c4d.yaml": json.dumps(job("run-1a2b3c4d")).encode()}
        new = {"ns/app/manifests/run-5e6f7a8b.yaml": json.dumps(job("run-5e6f7a8b")).encode()}
        assert only_object(compare(old, new)).status == "replaced"

    def test_names_that_differ_in_more_than_a_hash_are_two_objects(self) -> None:
        old = {"ns/app/manifests/a.yaml": json.dumps(job("train-1a2b3c4d")).encode()}
        new = {"ns/app/manifests/b.yaml": json.dumps(job("tune-5e6f7a8b")).encode()}
        assert {item.status for item in only_app(compare(old, new)).objects} == {"added", "removed"}

    def test_what_could_be_confused_is_not_paired(self) -> None:
        old = {f"ns/app/manifests/{n}.yaml": json.dumps(job(f"run-{n * 8}")).encode() for n in ("a", "b")}
        new = {"ns/app/manifests/c.yaml": json.dumps(job("run-cccccccc")).encode()}
        assert sorted(item.status for item in only_app(compare(old, new)).objects) == ["added", "removed", "removed"]

    def test_another_kind_in_the_same_file_is_another_object(self) -> None:
        items = only_app(difference(SERVICE, deployment("web"))).objects
        assert {(item.kind, item.status) for item in items} == {("Service", "removed"), ("Deployment", "added")}

    def test_the_same_kind_of_another_group_is_another_object(self) -> None:
        items = only_app(difference(job("a"), obj("Job", "a", "ai.re-cinq.com/v1"))).objects
        assert {(item.api_version, item.status) for item in items} == {
            ("batch/v1", "removed"),
            ("ai.re-cinq.com/v1", "added"),
        }

    def test_several_objects_in_one_file_are_paired_by_who_they_are(self) -> None:
        def file(*items: object) -> dict[str, bytes]:
            return {"ns/app/manifests/a.yaml": b"\n---\n".join(json.dumps(item).encode() for item in items)}

        changed = with_(SERVICE, "spec/type", "NodePort")
        item = only_object(compare(file(SERVICE, claim()), file(claim(), changed)))
        assert (item.kind, item.status) == ("Service", "changed")

    def test_an_object_that_moves_to_another_app_is_not_lost(self) -> None:
        old = {**tree(claim(), folder="ns/a"), **tree(SERVICE, folder="ns/b")}
        new = {**tree(folder="ns/a"), **tree(SERVICE, claim(), folder="ns/b")}
        item = only_object(compare(old, new))
        assert item.status == "changed"
        assert said(item.effects, "passed-on") == [
            (
                "danger",
                "moves here from app ns/a: if that one is pruned first, it is deleted with its data and created again",
            )
        ]

    @pytest.mark.parametrize(
        ("name", "without"),
        [
            ("run-1a2b3c4d", "run"),
            ("run", "run"),
            ("a-worker", "a-worker"),
            ("a-12345", "a-12345"),
            ("x-deadbeef", "x"),
        ],
    )
    def test_only_a_hash_is_taken_for_one(self, name: str, without: str) -> None:
        assert stem(name) == without


class TestApps:
    def test_a_new_app_is_added(self) -> None:
        assert only_app(compare({}, tree(SERVICE))).status == "added"

    def test_a_gone_app_is_removed(self) -> None:
        app = only_app(compare(tree(claim()), {}))
        assert (app.status, app.title, app.rank) == ("removed", "team-a/app", 2)

    def test_an_app_whose_manifests_give_way_to_a_chart_is_changed(self) -> None:
        app = only_app(compare(tree(SERVICE), {"team-a/app/chart/Chart.yaml": b"a"}))
        assert (app.status, app.charts, len(app.objects)) == ("changed", 1, 1)

    def test_files_of_a_chart_are_counted(self) -> None:
        old = {"ns/app/chart/a": b"1", "ns/app/chart/b": b"1", "ns/app/chart/c": b"1"}
        new = {"ns/app/chart/a": b"1", "ns/app/chart/b": b"2", "ns/app/chart/d": b"1"}
        app = only_app(compare(old, new))
        assert (app.charts, app.objects, app.status) == (3, (), "changed")

    def test_apps_of_two_environments_are_two_apps(self) -> None:
        new = {**tree(SERVICE, folder="dev/ns/app"), **tree(SERVICE, folder="prod/ns/app")}
        assert [app.title for app in compare({}, new).apps] == ["dev/ns/app", "prod/ns/app"]

    def test_objects_outside_apps_are_shown_under_their_folder(self) -> None:
        app = only_app(compare({}, {"argocd/projects/p.yaml": json.dumps(obj("AppProject", "p")).encode()}))
        assert (app.title, app.name, [item.kind for item in app.objects]) == ("argocd/projects", "", ["AppProject"])

    def test_the_most_dangerous_app_is_first(self) -> None:
        old = {**tree(SERVICE, folder="a/a"), **tree(claim(), folder="z/z"), **tree(deployment(), folder="m/m")}
        new = {
            **tree(with_(SERVICE, "metadata/labels", {"a": "b"}), folder="a/a"),
            **tree(claim(size="1Gi"), folder="z/z"),
            **tree(with_(deployment(), "spec/template/spec/containers/0/args", ["b"]), folder="m/m"),
        }
        assert [(app.name, app.rank) for app in compare(old, new).apps] == [("z", 2), ("m", 1), ("a", 0)]

    def test_only_the_app_that_differs_is_shown(self) -> None:
        old = {**tree(deployment(replicas=1), folder="ns/a"), **tree(deployment(replicas=1), folder="ns/b")}
        new = {**tree(deployment(replicas=1), folder="ns/a"), **tree(deployment(replicas=2), folder="ns/b")}
        app = only_app(compare(old, new))
        assert app.title == "ns/b"
        assert [change.path for change in app.objects[0].fields] == ["spec.replicas"]


class TestMoved:
    def test_an_app_that_moves_to_another_namespace_is_one_app(self) -> None:
        old = tree(claim(annotations=KEEP), SERVICE)
        new = tree(
            with_(claim(annotations=KEEP), "metadata/namespace", "team-b"),
            with_(SERVICE, "metadata/namespace", "team-b"),
            folder="team-b/app",
        )
        app = only_app(compare(old, new))
        assert (app.status, app.old_namespace, app.namespace) == ("moved", "team-a", "team-b")
        assert said(app.effects, "moved") == [
            ("notice", "moved from namespace team-a to team-b: deleted there, created here")
        ]
        assert {(item.kind, item.status) for item in app.objects} == {
            ("PersistentVolumeClaim", "replaced"),
            ("Service", "replaced"),
        }
        moved_claim = next(item for item in app.objects if item.kind == "PersistentVolumeClaim")
        assert said(moved_claim.effects, "claim-replaced")[0][0] == "notice"

    def test_an_app_in_two_namespaces_afterwards_is_not_moved(self) -> None:
        old = tree(self.inside("a"), folder="a/app")
        new = {**tree(self.inside("b"), folder="b/app"), **tree(self.inside("c"), folder="c/app")}
        assert sorted(app.status for app in compare(old, new).apps) == ["added", "added", "removed"]

    def test_an_app_of_the_same_name_with_other_files_is_another_app(self) -> None:
        new = {"b/app/manifests/other.yaml": json.dumps(self.inside("b")).encode()}
        change = compare(tree(self.inside("a"), folder="a/app"), new)
        assert sorted(app.status for app in change.apps) == ["added", "removed"]

    def inside(self, namespace: str) -> Obj:
        return with_(SERVICE, "metadata/namespace", namespace)


class TestStandingExceptions:
    LOOSE = with_(deployment("loose"), "metadata/annotations", {"kaigen.dev/pod-security": "privileged"})
    LOOSE_PODS = deployment("pods", template(metadata={"annotations": {"kaigen.dev/pod-security": "baseline"}}))

    def test_every_change_of_the_app_shows_them(self) -> None:
        old = tree(SERVICE, self.LOOSE, self.LOOSE_PODS)
        new = tree(with_(SERVICE, "metadata/labels", {"a": "b"}), self.LOOSE, self.LOOSE_PODS)
        app = only_app(compare(old, new))
        assert said(app.effects, "pod-security-exception") == [
            ("notice", "Deployment loose requests Pod Security privileged, as before"),
            ("notice", "Deployment pods requests Pod Security baseline, as before"),
        ]
        assert [item.name for item in app.objects] == ["web"]

    def test_a_new_one_is_reported_as_new(self) -> None:
        change = difference(deployment("loose"), self.LOOSE)
        assert said(only_app(change).effects, "pod-security-exception") == [
            ("danger", "security is looser: Deployment loose now requests Pod Security privileged")
        ]

    def test_a_looser_one_is_reported_as_looser(self) -> None:
        milder = with_(deployment("loose"), "metadata/annotations", {"kaigen.dev/pod-security": "baseline"})
        assert said(only_app(difference(milder, self.LOOSE)).effects, "pod-security-exception") == [
            ("danger", "security is looser: Deployment loose now requests Pod Security privileged instead of baseline")
        ]

    def test_a_stricter_one_is_a_notice(self) -> None:
        milder = with_(deployment("loose"), "metadata/annotations", {"kaigen.dev/pod-security": "baseline"})
        assert said(only_app(difference(self.LOOSE, milder)).effects, "pod-security-exception") == [
            ("notice", "security is tighter: Deployment loose now requests Pod Security baseline instead of privileged")
        ]

    def test_one_of_another_object_is_new(self) -> None:
        change = compare(tree(self.LOOSE), tree(self.LOOSE, self.LOOSE_PODS))
        assert said(only_app(change).effects, "pod-security-exception") == [
            ("danger", "security is looser: Deployment pods now requests Pod Security baseline"),
            ("notice", "Deployment loose requests Pod Security privileged, as before"),
        ]

    def test_wider_pods_under_a_standing_one_are_a_danger(self) -> None:
        privileged = {"kaigen.dev/pod-security": "privileged"}
        new = with_(deployment("loose", template(hostNetwork=True)), "metadata/annotations", privileged)
        app = only_app(difference(self.LOOSE, new))
        assert any(effect.level == "danger" for item in app.objects for effect in item.effects)

    def test_one_that_is_taken_back_is_silent(self) -> None:
        assert only_app(difference(self.LOOSE, deployment("loose"))).effects == ()

    def test_restricted_is_no_exception(self) -> None:
        strict = with_(deployment(), "metadata/annotations", {"kaigen.dev/pod-security": "restricted"})
        assert only_app(compare({}, tree(strict))).effects == ()

    def test_apps_that_do_not_change_do_not_show_theirs(self) -> None:
        loose = tree(self.LOOSE, folder="ns/loose")
        change = compare({**loose, **tree(SERVICE)}, loose)
        assert [app.title for app in change.apps] == ["team-a/app"]


class TestSecrets:
    def test_values_are_hidden_everywhere(self) -> None:
        old = obj("Secret", "s", data={"token": "b2xk", "gone": "Z29uZQ=="}, stringData={"a": "x1"})
        new = obj("Secret", "s", data={"token": "bmV3"}, stringData={"a": "x2"})
        change = difference(old, new)
        fields = {field.path: (field.old, field.new) for field in only_object(change).fields}
        assert fields == {
            "data.token": ("(hidden)", "(hidden)"),
            "data.gone": ("(hidden)", ABSENT),
            "stringData.a": ("(hidden)", "(hidden)"),
        }
        for text in (render_text(change), render_markdown(change), render_json(change)):
            assert not [value for value in ("b2xk", "bmV3", "Z29uZQ", "x1", "x2") if value in text]

    def test_data_that_is_added_whole_is_hidden_too(self) -> None:
        change = difference(obj("Secret", "s"), obj("Secret", "s", data={"token": "bmV3"}))
        assert [field.new for field in only_object(change).fields] == ["(hidden)"]


class TestUnreadable:
    PATH = "ns/app/manifests/a.yaml"
    GOOD = json.dumps(SERVICE).encode()

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"a: [\n", "it is not valid YAML in line 2"),
            (b"\xff\xfe", "it is not UTF-8 text"),
            (b"- 1\n", "it contains something other than Kubernetes objects"),
            (b"a: 1\n", "it contains something other than Kubernetes objects"),
            (b"#" * (LARGEST + 1), "it has more than 8 MiB"),
            (b"[" * 200_000, "more than 100 levels of nesting (line 1)"),
            (b"- " * 200_000, "more than 100 levels of nesting (line 1)"),
            (b"\n".join(b" " * n + b"a:" for n in range(102)), "more than 100 levels of nesting (line 100)"),
            (
                b"a0: &a0 [1]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 900)),
                "more than 100 levels of nesting (line",
            ),
            (b"a: !!python/object:os.system {}\n", "the tag `!!python/object:os.system` is not supported (line 1)"),
            (b"a: \x00\n", "the control character U+0000 is not allowed (line 1)"),
            (b"? {a: b}\n: c\n", "a mapping cannot be a key (line 1)"),
            (
                b"a: &a [1,1,1,1,1,1,1,1,1]\n"
                + b"".join(b"%c: &%c [%s]\n" % (n + 1, n + 1, b",".join([b"*%c" % n] * 9)) for n in range(97, 110)),
                "aliases expand this document by more than 100000 values (line",
            ),
            (b"kind: A\napiVersion: v1\nself: &a [*a]\n", "the alias refers to a value that contains it (line 3)"),
            (b"kind: A\napiVersion: v1\nspec:\n  a: 1\n  a: 2\n", "duplicate key `a` (line 5)"),
            (b"kind: A\napiVersion: v1\na: .inf\n", "`.inf` is not a number in JSON (line 3)"),
            (b"kind: A\napiVersion: v1\na: !!binary aGk=\n", "the tag `!!binary` is not supported (line 3)"),
        ],
    )
    def test_a_file_that_cannot_be_read_is_a_danger_and_no_error(self, data: bytes, reason: str) -> None:
        for old, status in (({self.PATH: self.GOOD}, "changed"), ({}, "added")):
            item = only_object(compare(old, {self.PATH: data}))
            assert (item.kind, item.name, item.status) == ("", "a.yaml", status)
            (effect,) = item.effects
            assert effect.level == "danger"
            assert effect.text.startswith(f"the file cannot be compared: {reason}")

    def test_what_is_as_deep_as_allowed_can_be_compared(self) -> None:
        def file(inner: bytes) -> dict[str, bytes]:
            return {self.PATH: b"kind: A\napiVersion: v1\na: " + b"[" * 98 + inner + b"]" * 98}

        change = compare(file(b"1"), file(b"2"))
        assert only_object(change).fields[0].old == 1
        assert "[0][0]" in render_text(change)
        assert render_markdown(compare({}, file(b"1")))
        assert render_json(change)

    @pytest.mark.parametrize("written", ["0", "00", "0x0", "0b0", "-0", "0_0"])
    def test_a_number_is_read_as_kubernetes_reads_it(self, written: str) -> None:
        pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {securityContext: {runAsUser: %s}}\n"
        old, new = (compare({}, {self.PATH: pod % value}) for value in (b"0", written.encode()))
        assert only_object(new).effects == only_object(old).effects
        assert any("root" in effect.text for effect in only_object(new).effects)

    def test_one_that_could_not_be_read_before_is_reported(self) -> None:
        app = only_app(compare({self.PATH: b"{"}, {self.PATH: self.GOOD}))
        assert {(item.kind, item.status) for item in app.objects} == {("", "changed"), ("Service", "added")}

    def test_a_removed_one_is_reported(self) -> None:
        item = only_object(compare({self.PATH: b"{"}, {}))
        assert (item.status, item.name, item.rank) == ("removed", "a.yaml", 1)

    def test_the_rest_is_compared_all_the_same(self) -> None:
        old, new = tree(SERVICE), tree(with_(SERVICE, "spec/type", "NodePort"))
        change = compare(old, {**new, "team-b/app/manifests/a.yaml": b"{"})
        assert [app.title for app in change.apps] == ["team-b/app", "team-a/app"]

    @given(st.binary(max_size=200), st.binary(max_size=200))
    def test_no_bytes_make_it_fail(self, old: bytes, new: bytes) -> None:
        change = compare({self.PATH: old, "x.yaml": old}, {self.PATH: new, "x.yaml": new})
        render_text(change).encode()
        render_markdown(change).encode()
        json.loads(render_json(change))

    @given(ANYTHING, ANYTHING, st.sampled_from(KINDS))
    def test_no_object_makes_a_rule_fail(self, old: object, new: object, kind: tuple[str, str]) -> None:
        """Rules meet objects that no API server would take."""
        api, name = kind

        def file(spec: object, more: str) -> bytes:
            metadata = {"name": f"x{more}", "annotations": spec, "labels": spec}
            item = {"apiVersion": api, "kind": name, "metadata": metadata, "spec": spec, "data": spec, "rules": spec}
            return json.dumps(item | {"subjects": spec, "roleRef": spec}).encode()

        for before, after in (("", ""), ("", "-1a2b3c4d")):
            change = compare({self.PATH: file(old, before)}, {self.PATH: file(new, after)})
            render_text(change)
            render_markdown(change)
            render_json(change)


def named(name: str) -> dict[str, bytes]:
    """Return a tree with an app of this name: a Deployment with its Service and a ConfigMap."""
    service = obj("Service", name, spec={"selector": {"app": name}, "ports": [{"port": 80}]})
    config = obj("ConfigMap", f"{name}-params", data={"name": name})
    return tree(with_(deployment(name), "metadata/labels", {"app": name}), service, config, folder=f"team-a/{name}")


class TestNames:
    def test_an_app_with_another_name_is_renamed(self) -> None:
        app = only_app(compare(named("old"), named("new")))
        assert (app.status, app.name, app.old_name, app.summary) == ("renamed", "new", "old", "renamed, was old")
        assert {(item.kind, item.old_name, item.new_name, item.status) for item in app.objects} == {
            ("Deployment", "old", "new", "replaced"),
            ("Service", "old", "new", "replaced"),
            ("ConfigMap", "old-params", "new-params", "replaced"),
        }
        assert said(app.effects, "renamed") == [
            ("notice", "Service old goes, and its clients find nothing: keep its name with an Alias")
        ]
        assert '"oldName": "old"' in render_json(compare(named("old"), named("new")))
        assert "team-a/new (renamed, was old)" in render_text(compare(named("old"), named("new")))

    def test_a_renamed_app_may_change_in_a_few_of_its_files(self) -> None:
        new = named("new")
        new["team-a/new/manifests/configmap.yaml"] = json.dumps(
            obj("ConfigMap", "new-params", data={"a": "b"})
        ).encode()
        assert only_app(compare(named("old"), new)).status == "renamed"

    def test_an_app_that_has_little_of_another_is_new(self) -> None:
        same = with_(deployment("new"), "metadata/labels", {"app": "new"})
        new = tree(same, obj("ConfigMap", "new-a"), job("new-1a2b3c4d"), folder="team-a/new")
        assert {app.status for app in compare(named("old"), new).apps} == {"added", "removed"}

    def test_of_two_apps_that_could_have_been_it_none_is(self) -> None:
        old = {**named("one"), **named("two")}
        assert sorted(app.status for app in compare(old, named("new")).apps) == ["added", "removed", "removed"]

    def test_one_old_app_has_one_new_name(self) -> None:
        new = {**named("one"), **named("two")}
        assert sorted(app.status for app in compare(named("old"), new).apps) == ["added", "renamed"]

    def test_an_app_of_another_namespace_is_not_its_new_name(self) -> None:
        new = {path.replace("team-a/", "other/"): data for path, data in named("new").items()}
        assert sorted(app.status for app in compare(named("old"), new).apps) == ["added", "removed"]


class TestAliases:
    """A spec that becomes an Alias: its Service stays, and selects the pods of another app."""

    SERVICE = obj("Service", "old", spec={"selector": {"app": "new"}, "ports": [{"port": 80}]})
    ALIAS = with_(SERVICE, "metadata/annotations", {"kaigen.dev/alias-of": "new"})

    def test_an_app_that_becomes_an_alias_is_renamed(self) -> None:
        old = {**named("old"), **named("new")}
        app = only_app(compare(old, {**tree(self.ALIAS, folder="team-a/old"), **named("new")}))
        assert (app.status, app.name, app.alias_of, app.summary) == ("renamed", "old", "new", "renamed to new")
        assert ("Service", "changed") in {(item.kind, item.status) for item in app.objects}
        assert said(app.effects, "renamed") == [
            ("notice", "the pods of new answer from now on: they must be ready before this is merged")
        ]

    def test_an_alias_of_an_app_that_is_new_in_the_same_change_is_an_outage(self) -> None:
        change = compare(named("old"), {**tree(self.ALIAS, folder="team-a/old"), **named("new")})
        (app,) = [app for app in change.apps if app.name == "old"]
        assert said(app.effects, "renamed") == [
            ("notice", "requests fail until the pods of new, which is new, are ready: add it first, in another commit")
        ]

    def test_an_alias_that_stays_is_no_new_name(self) -> None:
        changed = with_(self.ALIAS, "spec/ports", [{"port": 81}])
        app = only_app(compare(tree(self.ALIAS, folder="team-a/old"), tree(changed, folder="team-a/old")))
        assert (app.status, app.effects) == ("changed", ())
