"""What is reported of folders that no object of an app shows: moved, no longer rendered, or not written by kaigen."""

from __future__ import annotations

import pytest

from kaigen.diff import AppChange, Change, Effect, compare
from kaigen.diff.folders import Folder, with_folders, with_hidden
from tests.unit.diff.diff_cases import claim, only_app, tree

GIT = ("https://git.example.com/a", "main", "out")
PROD = Folder("prod", "out", is_committed=True, source=GIT, syncers=("_argocd", "_flux"))
NOTHING = compare({}, {})


def folder_change(old: Folder | None, new: Folder | None) -> AppChange | None:
    """What is reported of one environment; None for nothing."""
    change = with_folders(NOTHING, [old] if old else [], [new] if new else [])
    return only_app(change) if change.apps else None


def texts(app: AppChange | None) -> list[str]:
    """The texts of effects, which are all notices about a folder."""
    effects = app.effects if app else ()
    assert {(each.level, each.rule) for each in effects} <= {("notice", "folder")}
    return [each.text for each in effects]


def test_an_environment_that_is_gone_leaves_its_folder_and_its_apps() -> None:
    app = folder_change(PROD, None)
    assert app is not None
    assert (app.namespace, app.name, app.status, app.root, app.old_root) == ("", "", "removed", "out", "")
    assert texts(app) == [
        "kaigen does not delete out",
        *(
            f"{name} syncs the last content of the folder. Without it, {name} reports an error and deletes nothing. "
            f"To delete the apps, run `kubectl delete -k out/{folder}/bootstrap`, then "
            f"`kubectl delete -k out/{folder}/apps`"
            for folder, name in (("_argocd", "Argo CD"), ("_flux", "Flux"))
        ),
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, PROD),
        (PROD, PROD),
        (Folder("prod", "out"), None),
        (Folder("prod", "out"), Folder("prod", "other")),
    ],
    ids=["added", "the same", "removed without traces", "moved without traces"],
)
def test_nothing_is_reported_of_a_folder_that_leaves_nothing_behind(old: Folder | None, new: Folder | None) -> None:
    assert folder_change(old, new) is None


def test_a_moved_folder_stays_and_is_synced_until_the_bootstrap_is_applied() -> None:
    source = ("https://git.example.com/a", "prod", "new")
    app = folder_change(
        Folder("prod", "out", is_committed=True, source=GIT, syncers=("_flux",)),
        Folder("prod", "new", is_committed=True, source=source, syncers=("_flux",)),
    )
    assert app is not None
    assert (app.status, app.root, app.old_root) == ("moved", "new", "out")
    assert texts(app) == [
        "kaigen does not delete out",
        "Flux syncs main out until you run `kubectl apply -k new/_flux/bootstrap`, then prod new. "
        "Without the old one, it reports an error and deletes nothing",
    ]


def test_a_tool_that_is_no_longer_used_keeps_its_objects() -> None:
    app = folder_change(PROD, Folder("prod", "out", is_committed=True, source=GIT, syncers=("_flux",)))
    assert app is not None
    assert (app.status, app.root, app.old_root) == ("changed", "out", "")
    assert texts(app) == [
        "Argo CD keeps its objects, and syncs the apps, until you delete them in the cluster",
    ]


@pytest.mark.parametrize(("names", "folder"), [(["prod"], "_argocd"), (["dev", "prod"], "prod/_argocd")])
def test_objects_of_a_tool_that_is_no_longer_used_are_not_reported_as_deleted(names: list[str], folder: str) -> None:
    change = Change(
        apps=tuple(AppChange("a", "b", "removed", root=root) for root in (folder, f"{folder}/x", f"{folder}x"))
    )
    old = [Folder(name, "out", syncers=("_argocd",) if name == "prod" else ()) for name in names]
    found = with_folders(change, old, [Folder(name, "out") for name in names])
    assert [app.root for app in found.apps if app.namespace] == [f"{folder}x"]


def test_files_that_kaigen_did_not_write_are_dangers() -> None:
    change = with_hidden(NOTHING, {"out": [f"out/{number}.yaml" for number in range(12)], "a": ["a/x.yaml"]}, [])
    first, second = change.apps
    assert (first.root, first.status) == ("a", "changed")
    assert first.effects == (
        Effect("danger", "kaigen did not write a/x.yaml, and what syncs the folder reads it", "foreign"),
    )
    assert second.root == "out"
    assert [each.text for each in second.effects[:2]] == [
        f"kaigen did not write out/{number}.yaml, and what syncs the folder reads it" for number in (0, 1)
    ]
    assert second.effects[10:] == (Effect("danger", "kaigen did not write 2 more files", "foreign"),)


def test_ten_files_are_all_named() -> None:
    change = with_hidden(NOTHING, {"out": [f"out/{number}.yaml" for number in range(10)]}, [])
    assert len(only_app(change).effects) == 10
    assert "more files" not in only_app(change).effects[-1].text


def test_new_grants_and_weaker_settings_are_dangers_of_kaigen_yaml() -> None:
    app = only_app(with_hidden(NOTHING, {}, ["host network"], ["prune is off"]))
    assert (app.root, app.status) == ("kaigen.yaml", "changed")
    assert app.effects == (
        Effect("danger", "prune is off", "setting"),
        Effect("danger", "specs may now use host network", "grant"),
    )


def test_a_change_with_nothing_hidden_is_itself() -> None:
    change = compare(tree(claim()), tree())
    assert with_hidden(change, {}, []) is change
    assert with_hidden(change, {"out": ["x"]}, []).apps[1:] == change.apps
