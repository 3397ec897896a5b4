"""Argo CD and Flux."""

from __future__ import annotations

from tests.unit.diff.diff_cases import obj, with_
from tests.unit.diff.rule_cases.objects import Case, application, config, flux, project

CASES: list[Case] = [
    Case(
        "syncer-removed",
        "an Application that takes all along",
        with_(application(), "metadata/finalizers", ["resources-finalizer.argocd.argoproj.io/background"]),
        None,
        [("danger", "all that it deployed is deleted with it, except what is marked to keep")],
    ),
    Case(
        "syncer-removed",
        "an Application that leaves all",
        application(),
        None,
        [("notice", "what it deployed is kept (unmanaged from now on)")],
    ),
    Case(
        "syncer-removed",
        "a Kustomization that prunes",
        flux(prune=True),
        None,
        [("danger", "all that it deployed is deleted with it, except what is marked to keep")],
    ),
    Case(
        "syncer-removed",
        "a Kustomization that orphans",
        flux(prune=True, deletionPolicy="Orphan"),
        None,
        [("notice", "what it deployed is kept (unmanaged from now on)")],
    ),
    Case(
        "syncer-removed",
        "a HelmRelease",
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2"),
        None,
        [("danger", "the Helm release is uninstalled with all it made, except what is marked to keep")],
    ),
    *(
        Case("syncer-removed", f"an ApplicationSet, preserving {preserve}", applications, None, [expected])
        for preserve, applications, expected in (
            (
                False,
                obj("ApplicationSet", "s", "argoproj.io/v1alpha1", spec={}),
                (
                    "danger",
                    "its Applications are deleted with all they deployed, except what is marked to keep",
                ),
            ),
            (
                True,
                obj(
                    "ApplicationSet",
                    "s",
                    "argoproj.io/v1alpha1",
                    spec={"syncPolicy": {"preserveResourcesOnDeletion": True}},
                ),
                (
                    "notice",
                    "its Applications are deleted; what they deployed is kept (unmanaged from now on)",
                ),
            ),
        )
    ),
    Case(
        "sync-source",
        "another revision",
        application(source={"targetRevision": "v1", "path": "a"}),
        application(source={"targetRevision": "v2", "path": "a"}),
        [("notice", "syncs from revision v2 instead of v1")],
    ),
    Case(
        "sync-source",
        "another branch",
        obj("GitRepository", "g", "source.toolkit.fluxcd.io/v1", spec={"ref": {"branch": "main"}}),
        obj("GitRepository", "g", "source.toolkit.fluxcd.io/v1", spec={"ref": {"branch": "prod"}}),
        [("notice", "syncs from branch prod instead of main")],
    ),
    Case(
        "sync-target",
        "another cluster",
        application(destination={"name": "dev"}),
        application(destination={"name": "prod"}),
        [("danger", "deploys to cluster prod instead of dev: made anew there")],
    ),
    Case(
        "sync-policy",
        "it prunes by itself",
        application(),
        application(syncPolicy={"automated": {"prune": True, "selfHeal": True}}),
        [
            ("notice", "prune: what leaves Git is deleted from the cluster from now on"),
            ("notice", "syncs by itself from now on"),
            ("notice", "changes made by hand are undone from now on (selfHeal)"),
        ],
    ),
    Case(
        "sync-policy",
        "it is suspended and prunes no more",
        flux(prune=True),
        flux(prune=False, suspend=True),
        [
            ("notice", "no prune: what leaves Git stays in the cluster from now on"),
            ("notice", "suspended: Git and cluster go apart"),
        ],
    ),
    Case(
        "sync-policy",
        "other values",
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2", spec={"values": {"a": 1}}),
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2", spec={"values": {"a": 2}}),
        [("notice", "a helm upgrade with other values runs")],
    ),
    Case(
        "project",
        "one more namespace",
        project("a"),
        project("a", "b"),
        [("danger", "project allows more: namespace b on https://k")],
    ),
    Case(
        "project",
        "one less",
        project("a", "b"),
        project("a"),
        [("notice", "project no longer allows: namespace b on https://k")],
    ),
    Case(
        "project",
        "a new one",
        None,
        project("a"),
        [("notice", "project allows: namespace a on https://k and Job.batch in namespaces")],
    ),
    Case(
        "sync-wave",
        "a later wave",
        config(),
        config(metadata={"annotations": {"argocd.argoproj.io/sync-wave": "2"}}),
        [("info", "Argo CD syncs it in wave 2 instead of 0")],
    ),
]
