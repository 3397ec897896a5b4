"""Problems of kaigen.yaml that its schema does not know, each at its place and with what to do; and what is valid."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from kaigen.catalog.images import default_images
from kaigen.config.merge import read_config
from kaigen.config.reserved import SyncerSecrets
from kaigen.diagnostics.errors import InputError
from tests.unit.config.reports import problems_of, report


def valid(root: Path, text: str, environment: str = "") -> None:
    (root / "kaigen.yaml").write_text(text, encoding="utf-8")
    read_config(root, environment)


def test_the_problems_of_all_blocks_are_reported_in_one_run(tmp_path: Path) -> None:
    text = """\
kubernetes: "1.1"
labels: {app.kubernetes.io/name: x}
overrides: [{match: {app: a}}]
promotion: [prod]
tenants: {a: {folders: ["*"], namespaces: [a]}}
secrets: {externalSecrets: {}}
gitops: {}
"""
    assert [line.removeprefix("kaigen.yaml:").split()[:2] for line in problems_of(tmp_path, text)] == [
        ["1:13", "KG0703"],
        ["2:10", "KG0324"],
        ["3:13", "KG0710"],
        ["4:13", "KG0702"],
        ["5:25", "KG0743"],
        ["6:11", "KG0730"],
        ["7:1", "KG0724"],
    ]


@pytest.mark.parametrize(
    ("text", "name", "hint"),
    [
        ("environments: {prod: {}, dev: {}}\n", "prd", "did you mean `prod`?"),
        ("environments: {prod: {}, dev: {}}\n", "x", "known: dev, prod"),
        ("namespace: ml\n", "prod", "kaigen.yaml defines none"),
    ],
)
def test_an_unknown_environment_is_refused(tmp_path: Path, text: str, name: str, hint: str) -> None:
    assert problems_of(tmp_path, text, name) == [f"KG0702 no environment `{name}` in kaigen.yaml | {hint}"]


VERSIONS = "known: 1.33, 1.34, 1.35, 1.36, 1.37"
PROFILES = "known: generic, k3s, kind, aks, eks, gke"


@pytest.mark.parametrize(
    ("text", "environment", "problems"),
    [
        ("kubernetes: '1.1'\n", "", [f"1:13 KG0703 [kubernetes] unknown `kubernetes` `1.1` | {VERSIONS}"]),
        ("profile: gkee\n", "", ["1:10 KG0703 [profile] unknown `profile` `gkee` | did you mean `gke`?"]),
        (
            "profile: zzzz\nenvironments: {prod: {profile: zzzzz, kubernetes: '1.1'}}\n",
            "prod",
            [
                f"1:10 KG0703 [profile] unknown `profile` `zzzz` | {PROFILES}",
                f"2:32 KG0703 [environments.prod.profile] unknown `profile` `zzzzz` | {PROFILES}",
                f"2:51 KG0703 [environments.prod.kubernetes] unknown `kubernetes` `1.1` | {VERSIONS}",
            ],
        ),
    ],
)
def test_unknown_versions_and_profiles_of_each_layer_are_errors(
    tmp_path: Path, text: str, environment: str, problems: list[str]
) -> None:
    assert problems_of(tmp_path, text, environment) == [f"kaigen.yaml:{problem}" for problem in problems]


def test_labels_that_kaigen_sets_are_errors_in_each_layer(tmp_path: Path) -> None:
    text = """\
labels: {a: b, app.kubernetes.io/name: x}
environments: {prod: {labels: {kaigen.dev/app: y}}, dev: {labels: {kaigen.dev/app: z}}}
"""
    set_by, hint = "is set by kaigen or Kubernetes", "choose another key"
    one, two = "app.kubernetes.io/name", "kaigen.dev/app"
    assert problems_of(tmp_path, text, "prod") == [
        f'kaigen.yaml:1:16 KG0324 [labels["{one}"]] the label `{one}` {set_by} | {hint}',
        f'kaigen.yaml:2:32 KG0324 [environments.prod.labels["{two}"]] the label `{two}` {set_by} | {hint}',
    ]


def test_the_order_of_promotion_has_each_environment_once(tmp_path: Path) -> None:
    text = "promotion: [prod, prd, prod, other, dev]\nenvironments: {prod: {}, dev: {}}\n"
    assert problems_of(tmp_path, text) == [
        "kaigen.yaml:1:19 KG0702 no environment `prd` in kaigen.yaml | did you mean `prod`?",
        "kaigen.yaml:1:24 KG0714 `promotion` lists `prod` twice | delete one of them",
        "kaigen.yaml:1:30 KG0702 no environment `other` in kaigen.yaml | known: dev, prod",
    ]
    assert problems_of(tmp_path, "promotion: [x]\n") == [
        "kaigen.yaml:1:13 KG0702 no environment `x` in kaigen.yaml | known: none"
    ]


@pytest.mark.parametrize(
    ("clusters", "own", "problem"),
    [
        ("{near: {}, far: {}}", "[neer]", "2:34 KG0720 no cluster `neer` | did you mean `near`?"),
        ("{near: {}, far: {}}", "[near, x]", "2:40 KG0720 no cluster `x` | known: far, near"),
        ("{}", "[near]", "2:34 KG0720 no cluster `near` | `clusters` defines none"),
    ],
)
def test_a_cluster_of_an_environment_must_be_defined(tmp_path: Path, clusters: str, own: str, problem: str) -> None:
    text = f"clusters: {clusters}\nenvironments: {{prod: {{clusters: {own}}}}}\n"
    assert problems_of(tmp_path, text, "prod") == [f"kaigen.yaml:{problem}"]


SELECTED = """\
clusters: {far: {selector: {region: far}}, near: {server: "https://near.example"}}
environments: {prod: {clusters: [near, far]}}
"""


@pytest.mark.parametrize("syncers", ["argocd: {}", "argocd: {applications: each}, flux: {}"])
def test_clusters_that_labels_select_need_an_application_set(tmp_path: Path, syncers: str) -> None:
    block = f"gitops: {{repository: 'ssh://r', {syncers}}}\n{SELECTED}"
    assert problems_of(tmp_path, block, "prod") == [
        "kaigen.yaml:3:40 KG0720 cluster `far` is selected by labels, which only an ApplicationSet can do "
        "| set `gitops.argocd.applications: set`, or set the cluster's `server`"
    ]


@pytest.mark.parametrize(
    "gitops",
    ["", "gitops: {repository: r, argocd: {applications: set}}\n", "gitops: {repository: 'ssh://r', flux: {}}\n"],
)
def test_clusters_may_be_selected_by_labels_with_an_application_set_or_without_argo_cd(
    tmp_path: Path, gitops: str
) -> None:
    valid(tmp_path, gitops + SELECTED, "prod")


ONLY_REPOSITORY = "set `gitops.repository` to the URL of the Git repository with the rendered tree"
ACCOUNT = "set `adminServiceAccount` to the account that creates namespaces and Applications"
CHARTS = "Flux cannot install charts from the artifact in `gitops.flux.oci`"
VERIFY = "`verifySecret` verifies artifacts of a registry, and Flux reads none"
TEMPLATE = (
    "KG0722 `{env}` is the name of an environment, and kaigen.yaml defines none "
    "| delete `{env}`, or define `environments`"
)


@pytest.mark.parametrize(
    ("gitops", "problems"),
    [
        ("{branch: a}", [f"1:1 KG0724 `gitops` has no `repository` | {ONLY_REPOSITORY}"]),
        (
            "{repository: r, argocd: {}, tenancy: {serviceAccount: a}}",
            [f"1:63 KG0721 `serviceAccount` requires `adminServiceAccount` with Argo CD | {ACCOUNT}"],
        ),
        (
            "{repository: r, flux: {oci: 'oci://r/a'}}\nformat: chart",
            [f"1:37 KG0723 {CHARTS} | set `gitops.charts` to the registry of the charts, or `format` to `manifests`"],
        ),
        (
            "{repository: 'ssh://r', flux: {verifySecret: k}}",
            [f"1:54 KG0725 {VERIFY} | set `flux.oci` or `gitops.charts`, or delete `verifySecret`"],
        ),
        ("{repository: r, branch: 'a{env}'}", [f"1:33 {TEMPLATE}"]),
        ("{repository: r, path: 'a/{env}'}", [f"1:31 {TEMPLATE}"]),
        ("{repository: r, charts: 'oci://r/{env}'}", [f"1:33 {TEMPLATE}"]),
        ("{repository: r, flux: {oci: 'oci://r/{env}'}}", [f"1:37 {TEMPLATE}"]),
        ("{repository: r, branch: 'a{env}', path: 'a/{env}'}", [f"1:33 {TEMPLATE}", f"1:49 {TEMPLATE}"]),
    ],
)
def test_fields_of_gitops_that_contradict_each_other_are_errors(
    tmp_path: Path, gitops: str, problems: list[str]
) -> None:
    assert problems_of(tmp_path, f"gitops: {gitops}\n") == [f"kaigen.yaml:{problem}" for problem in problems]


@pytest.mark.parametrize(
    "gitops",
    [
        "{repository: r}",
        "{repository: 'ssh://r', flux: {}, tenancy: {serviceAccount: a}}",
        "{repository: r, argocd: {}, tenancy: {serviceAccount: a, adminServiceAccount: 'b:c'}}",
        "{repository: r, argocd: {}, tenancy: {namespaces: true}}",
        "{repository: r, flux: {oci: 'oci://r/a'}}",
        "{repository: r, flux: {oci: 'oci://r/a'}}\nformat: both",
        "{repository: r, flux: {oci: 'oci://r/a'}, charts: 'oci://r/b'}\nformat: chart",
        "{repository: 'ssh://r', flux: {}}\nformat: chart",
        "{repository: r, flux: {verifySecret: k, oci: 'oci://r/a'}}",
        "{repository: 'ssh://r', flux: {verifySecret: k}, charts: 'oci://r/b'}",
        "{repository: r, branch: 'a{env}', path: 'a{env}'}\nenvironments: {prod: {}}",
        "{}\nenvironments: {prod: {}}",
    ],
)
def test_fields_of_gitops_that_go_together_are_valid(tmp_path: Path, gitops: str) -> None:
    valid(tmp_path, f"gitops: {gitops}\n")


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("git@github.com:acme/deploy.git", "write `ssh://git@github.com/acme/deploy.git`"),
        ("ssh://git@gitlab.com:acme/deploy.git", "write `ssh://git@gitlab.com/acme/deploy.git`"),
        ("github.com:acme/deploy", "write `ssh://git@github.com/acme/deploy`"),
        ("github.com/acme/deploy", "write `https://github.com/acme/deploy`"),
        (
            "git://github.com/acme/deploy",
            "write `https://github.com/acme/deploy` or `ssh://git@github.com/acme/deploy`",
        ),
        ("deploy", "write its URL, such as `https://git.example.com/ml/deploy.git`"),
        ("file:///srv/deploy.git", "write its URL, such as `https://git.example.com/ml/deploy.git`"),
        ("oci://ghcr.io/a", "set `flux.oci` for an artifact, and `repository` to the URL of the Git repository"),
    ],
)
def test_a_git_url_that_flux_does_not_accept_is_an_error(tmp_path: Path, url: str, hint: str) -> None:
    message = f"KG0726 Flux reads a Git repository by https://, http:// or ssh://, not `{url}` | {hint}"
    text = f"gitops: {{repository: '{url}', flux: {{}}}}\n"
    assert problems_of(tmp_path, text) == [f"kaigen.yaml:1:22 {message}"]
    valid(tmp_path, f"gitops: {{repository: '{url}', argocd: {{}}}}\n")


@pytest.mark.parametrize("url", ["ssh://git@h:22/a.git", "https://h/a", "http://h:3000/a", "ssh://git@h/~a/b"])
def test_flux_accepts_a_git_url_with_its_scheme(tmp_path: Path, url: str) -> None:
    valid(tmp_path, f"gitops: {{repository: '{url}', flux: {{}}}}\n")


def test_gitops_is_checked_in_each_environment_and_reported_where_it_sets_it(tmp_path: Path) -> None:
    text = "gitops: {branch: a}\nenvironments: {prod: {gitops: {branch: b}}, dev: {}}\n"
    message = f"KG0724 `gitops` has no `repository` | {ONLY_REPOSITORY}"
    assert problems_of(tmp_path, text, "prod") == [f"kaigen.yaml:2:23 {message}"]
    assert problems_of(tmp_path, text, "dev") == [f"kaigen.yaml:1:1 {message}"]
    assert read_config(tmp_path, "").gitops is None


EVERY = """\
kubernetes: "1.34"
profile: eks
namespace: ml
specs: [one, two]
output: out
format: both
passthrough: true
kinds: [kinds]
catalog: tables
promotion: [dev, prod]
registry: mirror.example
images: {kubectl: "own.example/kubectl:1"}
builds: {registry: builds.example/a}
licenses: {ask: [mit]}
publish: {remote: up}
allow: {files: [README.md], secrets: [free]}
labels: {a: b}
annotations: {c: d}
clusters: {near: {}, far: {}}
tenants: {team: {folders: [one], namespaces: [team]}, other: {folders: [two], namespaces: [team-b]}}
gitops: {repository: r, flux: {secret: login, verifySecret: free, oci: "oci://r/a", namespace: team}}
environments:
  dev: {clusters: [far], images: {vllm: "own.example/vllm:1"}}
  prod: {}
"""


def test_the_settings_of_an_environment_are_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(EVERY, encoding="utf-8")
    config = read_config(tmp_path, "dev")
    assert (config.root, config.environment, config.environments) == (tmp_path, "dev", ("dev", "prod"))
    assert (config.kubernetes, config.profile, config.format, config.passthrough) == ("1.34", "eks", "both", True)
    assert (config.namespace, config.implied_namespace) == ("ml", False)
    assert (config.specs, config.kinds, config.catalog_folder) == (("one", "two"), ("kinds",), "tables")
    assert (config.output, config.output_base, config.trees) == ("out/dev", "out", ("dev", "prod"))
    assert (config.promotion, config.build_registry, config.origin) == (("dev", "prod"), "builds.example/a", "")
    assert (config.labels, config.annotations) == ({"a": "b"}, {"c": "d"})
    assert config.named_images == ("vllm",)
    assert config.images["kubectl"] == config.plain_images["kubectl"] == "own.example/kubectl:1"
    assert config.images["reaper"] == f"mirror.example/{default_images()['reaper'].partition('/')[2]}"
    assert config.plain_images["reaper"] == default_images()["reaper"]
    assert (list(config.clusters), config.mirror) == (["far"], None)
    assert config.licenses is not None
    assert config.licenses.ask == ["mit"]
    assert config.publish is not None
    assert config.publish.remote == "up"
    assert config.allow.files == ("README.md",)
    assert config.gitops is not None
    assert config.gitops.path == "out/dev"
    assert config.syncer_secrets == SyncerSecrets({"login": "gitops.flux.secret"}, "team")
    team, other = config.tenants
    assert (team.name, team.others, team.reserved.secrets) == ("team", ("team-b",), {"login": "gitops.flux.secret"})
    assert (other.name, other.others, other.reserved.secrets) == ("other", (), {})
    assert "RuntimeClass/nvidia" not in team.granted("classes")
    assert "own.example/kubectl:1" in team.granted("images")


def test_the_settings_of_the_file_alone_have_no_environment(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text(EVERY, encoding="utf-8")
    config = read_config(tmp_path, "")
    assert (config.output, config.output_base, config.trees) == ("out", "out", ("dev", "prod"))
    assert (config.clusters, config.named_images, config.pinned_images) == ({}, (), {})


def test_a_file_without_keys_has_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").write_text("kind: Config\n", encoding="utf-8")
    config = read_config(tmp_path, "")
    assert (config.kubernetes, config.profile, config.format) == ("1.36", "generic", "manifests")
    assert (config.namespace, config.implied_namespace) == ("default", True)
    assert (config.output, config.trees, config.build_registry) == ("rendered", ("",), "")
    assert (config.gitops, config.external_secrets, config.network, config.tenants) == (None, None, None, ())


def test_a_folder_without_the_file_has_the_defaults_and_no_implied_namespace(tmp_path: Path) -> None:
    assert read_config(tmp_path, "").implied_namespace is False


@pytest.mark.parametrize("text", ["overrides: [{spec: {a: 1}}]\n", "patches: [{target: {app: a}, patch: a.yaml}]\n"])
def test_the_origin_is_a_digest_of_the_files_whose_lines_messages_name(tmp_path: Path, text: str) -> None:
    content = f"{text}environments: {{prod: {{}}}}\n"
    (tmp_path / "kaigen.yaml").write_text(content, encoding="utf-8")
    pins = "apiVersion: kaigen.dev/v1alpha1\nkind: Pins\n"
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins" / "prod.yaml").write_text(pins, encoding="utf-8")
    file, pinned = (sha256(each.encode()).digest() for each in (content, pins))
    assert read_config(tmp_path, "").origin == sha256(file).hexdigest()
    assert read_config(tmp_path, "prod").origin == sha256(file + pinned).hexdigest()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "kaigen.yaml:1:1 KG0701 kaigen.yaml must contain a mapping"),
        (
            "namespace: a\n---\nnamespace: b\n",
            "kaigen.yaml:3:1 KG0701 kaigen.yaml contains more than one document | delete the `---` and what follows it",
        ),
        ("kind: Other\n", "kaigen.yaml:1:7 KG0205 [kind] `kind` must be `Config`, not `Other`"),
        (
            "dialects: {unknown: {}}\n",
            "kaigen.yaml:1:12 KG0201 [dialects.unknown] unknown field `unknown` | fields here: `substratus`",
        ),
    ],
)
def test_a_file_that_is_not_one_mapping_of_its_kind_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    assert problems_of(tmp_path, text) == [problem]


def test_a_folder_with_the_name_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kaigen.yaml").mkdir()
    with pytest.raises(InputError) as raised:
        read_config(tmp_path, "")
    assert report(raised.value.diagnostics) == ["kaigen.yaml KG0701 kaigen.yaml is a folder; it must be a file"]
