"""Argo CD and Flux."""

from __future__ import annotations

from tests.unit.diff.diff_cases import obj, with_
from tests.unit.diff.rule_cases.objects import Case, application, config, flux, project

SOURCE = obj("GitRepository", "g", "source.toolkit.fluxcd.io/v1", spec={})

CASES: list[Case] = [
    Case(
        "syncer-removed",
        "an Application that takes all along",
        with_(application(), "metadata/finalizers", ["resources-finalizer.argocd.argoproj.io/background"]),
        None,
        [("danger", "all its objects are deleted with it, except those marked to keep")],
    ),
    Case(
        "syncer-removed",
        "an Application that leaves all",
        application(),
        None,
        [("notice", "its objects are kept (no longer managed)")],
    ),
    Case(
        "syncer-removed",
        "a Kustomization that prunes",
        flux(prune=True),
        None,
        [("danger", "all its objects are deleted with it, except those marked to keep")],
    ),
    Case(
        "syncer-removed",
        "a Kustomization that orphans",
        flux(prune=True, deletionPolicy="Orphan"),
        None,
        [("notice", "its objects are kept (no longer managed)")],
    ),
    Case(
        "syncer-removed",
        "a HelmRelease",
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2"),
        None,
        [("danger", "the Helm release is uninstalled with all its objects, except those marked to keep")],
    ),
    *(
        Case("syncer-removed", f"an ApplicationSet, preserving {preserve}", applications, None, [expected])
        for preserve, applications, expected in (
            (
                False,
                obj("ApplicationSet", "s", "argoproj.io/v1alpha1", spec={}),
                ("danger", "its Applications are deleted with all their objects, except those marked to keep"),
            ),
            (
                True,
                obj(
                    "ApplicationSet",
                    "s",
                    "argoproj.io/v1alpha1",
                    spec={"syncPolicy": {"preserveResourcesOnDeletion": True}},
                ),
                ("notice", "its Applications are deleted; their objects are kept (no longer managed)"),
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
    *(
        Case(
            "sync-source",
            f"another {path}",
            with_(item, f"spec/{path}", "a"),
            with_(item, f"spec/{path}", "b"),
            [("notice", f"syncs from {label} b instead of a")],
        )
        for item, path, label in (
            (application(), "source/repoURL", "repository"),
            (application(), "source/path", "path"),
            (flux(), "path", "path"),
            (flux(), "sourceRef/name", "source"),
            *((SOURCE, f"ref/{field}", field) for field in ("tag", "commit", "digest")),
            (SOURCE, "ref/semver", "version"),
            (SOURCE, "url", "repository"),
            (obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2", spec={}), "chart/spec/version", "chart version"),
        )
    ),
    *(
        Case(
            "sync-target",
            f"another {path}",
            with_(item, f"spec/{path}", "a"),
            with_(item, f"spec/{path}", "b"),
            [("danger", f"deploys to {label} b instead of a: everything is created again there")],
        )
        for item, path, label in (
            (application(), "destination/server", "cluster"),
            (application(), "destination/namespace", "namespace"),
            (flux(), "targetNamespace", "namespace"),
        )
    ),
    *(
        Case("verification", f"{field} {how}", with_(item, f"spec/{field}", ["a"]), now, expected)
        for item, field in ((SOURCE, "verify"), (project(), "signatureKeys"), (project(), "sourceIntegrity"))
        for how, now, expected in (
            (
                "of another key",
                with_(item, f"spec/{field}", ["b"]),
                [("danger", f"what is synced is verified with [b] instead of [a] ({field})")],
            ),
            ("gone", item, [("danger", f"what is synced is verified with nothing instead of [a] ({field})")]),
            ("that stays", with_(with_(item, f"spec/{field}", ["a"]), "spec/x", 1), []),
        )
    ),
    Case(
        "sync-account",
        "an account",
        flux(),
        flux(serviceAccountName="a"),
        [("danger", "applies as ServiceAccount a instead of the account of the controller")],
    ),
    Case(
        "sync-account",
        "no account",
        flux(serviceAccountName="a"),
        flux(),
        [("danger", "applies as the account of the controller instead of ServiceAccount a")],
    ),
    Case(
        "project",
        "everything",
        project(),
        with_(
            with_(with_(project(), "spec/destinations", [{}]), "spec/sourceRepos", ["*"]),
            "spec/destinationServiceAccounts",
            [{"defaultServiceAccount": "a"}],
        ),
        [("danger", 'project allows more: source "*", namespace * on * and applies as a in namespace * on *')],
    ),
    Case(
        "sync-target",
        "another cluster",
        application(destination={"name": "dev"}),
        application(destination={"name": "prod"}),
        [("danger", "deploys to cluster prod instead of dev: everything is created again there")],
    ),
    Case(
        "sync-policy",
        "it prunes automatically",
        application(),
        application(syncPolicy={"automated": {"prune": True, "selfHeal": True}}),
        [
            ("notice", "prune on: objects removed from Git are now deleted from the cluster"),
            ("notice", "now syncs automatically"),
            ("notice", "manual changes are now reverted (selfHeal)"),
        ],
    ),
    Case(
        "sync-policy",
        "it is suspended and prunes no more",
        flux(prune=True),
        flux(prune=False, suspend=True),
        [
            ("notice", "prune off: objects removed from Git now stay in the cluster"),
            ("notice", "suspended: changes in Git are not applied"),
        ],
    ),
    Case(
        "sync-policy",
        "other values",
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2", spec={"values": {"a": 1}}),
        obj("HelmRelease", "h", "helm.toolkit.fluxcd.io/v2", spec={"values": {"a": 2}}),
        [("notice", "runs helm upgrade with the new values")],
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
        [("danger", "project allows: namespace a on https://k and Job.batch in namespaces")],
    ),
    Case(
        "sync-wave",
        "a later wave",
        config(),
        config(metadata={"annotations": {"argocd.argoproj.io/sync-wave": "2"}}),
        [("info", "Argo CD syncs it in wave 2 instead of 0")],
    ),
]
