"""Checks of `kaigen.yaml` across its blocks: promotion, clusters, accounts and `{env}`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kaigen.config.file import ConfigFile
from kaigen.config.layers import Layers
from kaigen.config.settings import CHARTS_HINT, CHARTS_IN_ARTIFACT, FILE_NAME, Format
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.yaml.document import Document

if TYPE_CHECKING:
    from kaigen.config.gitops import GitOps


def check_promotion(file: ConfigFile, document: Document | None, problems: Diagnostics) -> None:
    """Report names in `promotion` that are not environments, or are listed twice."""
    known = sorted(file.environments)
    for index, name in enumerate(file.promotion):
        assert document is not None
        mark = document.mark(("promotion", index))
        if name not in known:
            hint = did_you_mean(name, known) or f"known: {', '.join(known) or 'none'}"
            problems.add(Diagnostic("KG0702", f"no environment `{name}` in {FILE_NAME}", mark, hint))
        elif name in file.promotion[:index]:
            message = f"`promotion` lists `{name}` twice"
            problems.add(Diagnostic("KG0714", message, mark, "delete one of them"))


def check_clusters(file: ConfigFile, layers: Layers, problems: Diagnostics) -> None:
    """Report clusters of the environment that are not defined, or that Argo CD could not select."""
    own = file.environments[layers.environment].clusters if layers.environment else []
    for index, name in enumerate(own):
        mark = layers.mark_of(("environments", layers.environment, "clusters", index))
        if name not in file.clusters:
            known = sorted(file.clusters)
            listed = "known: " + ", ".join(known) if known else "`clusters` defines none"
            hint = did_you_mean(name, known) or listed
            problems.add(Diagnostic("KG0720", f"no cluster `{name}`", mark, hint))
        elif file.clusters[name].selector and file.gitops and not _selects_clusters(file.gitops):
            message = f"cluster `{name}` is selected by labels, which only an ApplicationSet can do"
            hint = "set `gitops.argocd.applications: set`, or set the cluster's `server`"
            problems.add(Diagnostic("KG0720", message, mark, hint))


def _selects_clusters(gitops: GitOps) -> bool:
    """Whether clusters can be selected by labels, or Argo CD is not used."""
    return gitops.argocd is None or gitops.argocd.applications == "set"


def check_gitops(file: ConfigFile, layers: Layers, form: Format, problems: Diagnostics) -> None:
    """Report a block that lacks the repository, or contains fields that contradict each other.

    Args:
        file: kaigen.yaml with the fields of the environment.
        layers: where the fields are.
        form: the form of the output.
        problems: receives the errors.
    """
    gitops = file.gitops
    if gitops is None:
        return
    if gitops.repository is None:
        hint = "set `gitops.repository` to the URL of the Git repository with the rendered tree"
        problems.add(Diagnostic("KG0724", "`gitops` has no `repository`", layers.mark("gitops", key=True), hint))
    tenancy = gitops.tenancy
    if tenancy and tenancy.service_account and gitops.argocd and not tenancy.admin_service_account:
        problems.add(
            Diagnostic(
                "KG0721",
                "`serviceAccount` requires `adminServiceAccount` with Argo CD",
                layers.mark("gitops", "tenancy", "serviceAccount"),
                "set `adminServiceAccount` to the account that creates namespaces and Applications",
            )
        )
    if form == "chart" and gitops.flux and gitops.flux.oci is not None and gitops.charts is None:
        problems.add(Diagnostic("KG0723", CHARTS_IN_ARTIFACT, layers.mark("gitops", "flux", "oci"), CHARTS_HINT))
    if gitops.flux and gitops.flux.verify_secret and not (gitops.flux.oci or gitops.charts):
        problems.add(
            Diagnostic(
                "KG0725",
                "`verifySecret` verifies artifacts of a registry, and Flux reads none",
                layers.mark("gitops", "flux", "verifySecret"),
                "set `flux.oci` or `gitops.charts`, or delete `verifySecret`",
            )
        )
    if not file.environments:
        _check_placeholders(gitops, layers, problems)


def _check_placeholders(gitops: GitOps, layers: Layers, problems: Diagnostics) -> None:
    """Report `{env}` in `gitops` of a file without environments."""
    for path, text in (
        (("branch",), gitops.branch),
        (("path",), gitops.path),
        (("charts",), gitops.charts),
        (("flux", "oci"), gitops.flux and gitops.flux.oci),
    ):
        if "{env}" in (text or ""):
            message = "`{env}` is the name of an environment, and kaigen.yaml defines none"
            hint = "delete `{env}`, or define `environments`"
            problems.add(Diagnostic("KG0722", message, layers.mark("gitops", *path), hint))
