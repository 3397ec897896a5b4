"""Checks of `kaigen.yaml` across its blocks: promotion, clusters, accounts and `{env}`."""

from __future__ import annotations

from kaigen.config.file import ConfigFile
from kaigen.config.gitops import GitOps
from kaigen.config.settings import CHARTS_HINT, CHARTS_IN_ARTIFACT, FILE_NAME
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.yaml.document import Document


def check_promotion(file: ConfigFile, document: Document | None, problems: Diagnostics) -> None:
    """Report names in `promotion` that are no environment, or are listed twice."""
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


def check_clusters(
    file: ConfigFile, environment: str, document: Document | None, problems: Diagnostics
) -> None:
    """Report clusters of the environment that are not defined, or that Argo CD could not select."""
    own = file.environments[environment] if environment else None
    for index, name in enumerate(own.clusters if own else ()):
        assert document is not None
        mark = document.mark(("environments", environment, "clusters", index))
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


def check_tenancy(
    file: ConfigFile, environment: str, document: Document | None, problems: Diagnostics
) -> None:
    """Report tenant accounts for Argo CD without an account for its own objects."""
    own = file.environments[environment].gitops if environment else None
    blocks = [(("gitops",), file.gitops), (("environments", environment, "gitops"), own)]
    for place, block in blocks:
        tenancy = block.tenancy if block else None
        if not (tenancy and tenancy.service_account and file.gitops and file.gitops.argocd):
            continue
        if not tenancy.admin_service_account:
            assert document is not None
            problems.add(
                Diagnostic(
                    "KG0721",
                    "`serviceAccount` requires `adminServiceAccount` with Argo CD",
                    document.mark((*place, "tenancy", "serviceAccount")),
                    "set `adminServiceAccount` to the account that creates namespaces and Applications",
                )
            )


def check_charts(file: ConfigFile, document: Document | None, problems: Diagnostics) -> None:
    """Report charts that Flux would have to read from an artifact of manifests."""
    flux = file.gitops.flux if file.gitops else None
    if file.format != "chart" or flux is None or flux.oci is None or (file.gitops and file.gitops.charts):
        return
    assert document is not None
    mark = document.mark(("gitops", "flux", "oci"))
    problems.add(Diagnostic("KG0723", CHARTS_IN_ARTIFACT, mark, CHARTS_HINT))


def check_env_placeholders(file: ConfigFile, document: Document | None, problems: Diagnostics) -> None:
    """Report `{env}` in `gitops` of a file without environments."""
    gitops = file.gitops
    if gitops is None or file.environments:
        return
    assert document is not None
    for path, text in (
        (("branch",), gitops.branch),
        (("path",), gitops.path),
        (("charts",), gitops.charts),
        (("flux", "oci"), gitops.flux and gitops.flux.oci),
    ):
        if "{env}" in (text or ""):
            message = "`{env}` is the name of an environment, and kaigen.yaml defines none"
            mark = document.mark(("gitops", *path))
            problems.add(Diagnostic("KG0722", message, mark, "delete `{env}`, or define `environments`"))
