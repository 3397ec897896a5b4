"""Downloads of Models: what is stored next to what."""

from __future__ import annotations

from tests.unit.diff.diff_cases import Obj, container, job, template
from tests.unit.diff.rule_cases.objects import Case

PHI, OTHER = "microsoft/phi-4", "org/other"
OLD, NEW = "0" * 40, "1" * 40


def download(
    commit: str, repo: str = PHI, *more: str, identity: str = "", dest: str = "/model", keep: str = "1"
) -> Obj:
    """Return a Job that downloads a Model; in the layout without folders if it keeps no revisions."""
    name = identity or commit[:16]
    options = ["fetch", "huggingface", f"--repo={repo}", f"--revision={commit}", *more]
    options += [f"--dest={dest}/{name}" if keep else f"--dest={dest}", f"--identity={name}"]
    options += [f"--keep-revisions={keep}"] if keep else []
    return job(f"run-{'1' if keep else '0'}{name[:7]}", template(container("fetch", args=options)))


def web(identity: str) -> Obj:
    """Return a Job that downloads single files."""
    options = ["fetch", "http", f"--dest=/model/{identity}", f"--identity={identity}", "--keep-revisions=2"]
    return job(f"run-{identity}", template(container("fetch", args=options)))


KEPT = "pods keep the old ones until they are replaced; 1 earlier revision stays stored for a rollback"
CASES: list[Case] = [
    Case(
        "revision",
        "another commit of a model that the catalogue knows",
        download(OLD),
        download(NEW),
        [
            (
                "notice",
                "microsoft/phi-4 at 111111111111 is downloaded next to 000000000000: the volume needs up to 27.3 GiB "
                f"more, unless it still has the files; {KEPT}",
            )
        ],
    ),
    Case(
        "revision",
        "files that the lock has",
        download(OLD),
        download(NEW, PHI, f"--locked=7:{5 << 29}:{'0' * 64}"),
        [
            (
                "notice",
                "microsoft/phi-4 at 111111111111 is downloaded next to 000000000000: the volume needs 2.5 GiB more, "
                f"unless it still has the files; {KEPT}",
            )
        ],
    ),
    Case(
        "revision",
        "another model in a bucket",
        download(OLD, dest="s3://models"),
        download("main", OTHER, dest="s3://models", identity="5" * 16),
        [
            (
                "notice",
                "org/other at main is downloaded next to microsoft/phi-4 at 000000000000: the bucket needs room for "
                f"the files once more, unless it still has the files; {KEPT}",
            )
        ],
    ),
    Case(
        "revision",
        "other files of the same commit",
        download(OLD),
        download(OLD, PHI, "--include=*.json", identity="5" * 16),
        [
            (
                "notice",
                "microsoft/phi-4 at 000000000000 is downloaded next to the earlier selection of files: the volume "
                f"needs room for the files once more, unless it still has the files; {KEPT}",
            )
        ],
    ),
    Case(
        "revision",
        "files from web servers",
        web("a"),
        web("b"),
        [
            (
                "notice",
                "the new set of files is downloaded next to the old set of files: the volume needs room for the files "
                "once more, unless it still has the files; pods keep the old ones until they are replaced; 2 earlier "
                "revisions stay stored for a rollback",
            )
        ],
    ),
    Case(
        "revision",
        "the layout without folders",
        download(OLD, keep=""),
        download(OLD),
        [
            (
                "info",
                "the files get a folder of their own next to those of other revisions: they are linked, or copied in "
                "the bucket, and not downloaded again",
            )
        ],
    ),
    Case("revision", "other options of the same download", download(OLD), download(OLD, PHI, "--x=1"), []),
    Case("revision", "a run that downloads no model", job(), job("run-5e6f7a8b"), []),
]
