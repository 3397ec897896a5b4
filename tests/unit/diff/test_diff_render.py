"""How a change is shown: in a terminal, in a pull request, and to other tools."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from kaigen.diff import (
    AppChange,
    Change,
    Effect,
    FieldChange,
    ObjectChange,
    compare,
    render_json,
    render_markdown,
    render_text,
)
from tests.goldens import Goldens
from tests.unit.diff.diff_cases import claim, deployment, difference, obj, only_app, tree, with_

FOLDER = Path(__file__).parents[2] / "golden" / "diff"
CASES = sorted(path.name for path in FOLDER.iterdir())


def read(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.fixture
def goldens(golden: Goldens) -> Goldens:
    return Goldens(FOLDER, golden.update)


@pytest.mark.parametrize("case", CASES)
class TestGoldens:
    def test_text(self, case: str, goldens: Goldens) -> None:
        change = compare(read(FOLDER / case / "old"), read(FOLDER / case / "new"))
        goldens.check(f"{case}/change.txt", render_text(change))

    def test_markdown(self, case: str, goldens: Goldens) -> None:
        change = compare(read(FOLDER / case / "old"), read(FOLDER / case / "new"))
        goldens.check(f"{case}/change.md", render_markdown(change))

    def test_json(self, case: str, goldens: Goldens) -> None:
        change = compare(read(FOLDER / case / "old"), read(FOLDER / case / "new"))
        goldens.check(f"{case}/change.json", render_json(change))

    def test_the_order_of_files_does_not_matter(self, case: str) -> None:
        old, new = read(FOLDER / case / "old"), read(FOLDER / case / "new")
        backwards = [dict(reversed(list(side.items()))) for side in (old, new)]
        assert compare(*backwards) == compare(old, new)

    def test_the_way_back_is_shown_too(self, case: str) -> None:
        old, new = read(FOLDER / case / "old"), read(FOLDER / case / "new")
        there, back = compare(old, new), compare(new, old)
        assert len(there.apps) == len(back.apps)


def change_of(*apps: AppChange) -> Change:
    return Change(apps)


def app(name: str, *effects: Effect, fields: tuple[FieldChange, ...] = ()) -> AppChange:
    item = ObjectChange("Service", "v1", "ns", name, name, "changed", f"{name}.yaml", fields, effects)
    return AppChange("ns", name, "changed", (item,))


def row_of(item: AppChange) -> str:
    return next(line for line in render_markdown(change_of(item)).splitlines() if line.startswith("| `"))


class TestNothing:
    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (Change(), "No changes to the rendered objects."),
            (Change(formatting_only=1), "No changes to the rendered objects. 1 file differs in formatting only."),
            (
                Change(formatting_only=2, other_files=3),
                "No changes to the rendered objects. 2 files differ in formatting only. 3 other files differ.",
            ),
        ],
    )
    def test_is_described_in_one_line(self, change: Change, text: str) -> None:
        assert render_text(change) == text + "\n"
        assert render_markdown(change) == f"<!-- kaigen diff -->\n{text}\n"
        assert json.loads(render_json(change))["apps"] == []


class TestText:
    CHANGE = difference(claim(), claim(size="1Gi", storageClassName="a" * 30))

    @pytest.mark.parametrize("width", [1, 60, 80, 100, 1000])
    def test_sentences_keep_within_the_width(self, width: int) -> None:
        lines = render_text(self.CHANGE, width=width).splitlines()[2:]
        sentences = [line for line in lines if not line.strip().startswith(("~", "-", "+", "@", "spec", "team-a"))]
        assert max(map(len, sentences)) <= max(60, min(width, 100))

    def test_is_plain_without_colour(self) -> None:
        assert "\x1b" not in render_text(self.CHANGE)

    def test_colour_adds_nothing_but_colour(self) -> None:
        coloured = render_text(self.CHANGE, color=True)
        assert "\x1b[1;31mdanger\x1b[0m: will be rejected" in coloured
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(self.CHANGE)

    def test_values_cannot_speak_to_the_terminal(self) -> None:
        evil = obj("ConfigMap", data={"a\x1b[2J": "\x1b]0;title\x07", "text": "a\nb\x1b[31m\n"})
        assert "\x1b" not in render_text(difference(with_(evil, "data", {"text": "a\nc\n"}), evil))

    def test_many_fields_are_counted(self) -> None:
        old = obj("ConfigMap", data={f"k{n:03}": "1" for n in range(100)})
        new = obj("ConfigMap", data={f"k{n:03}": "2" for n in range(100)})
        text = render_text(difference(old, new))
        assert "k039" in text
        assert "k040" not in text
        assert "and 60 more fields" in text

    def test_long_texts_are_shown_line_by_line_and_cut(self) -> None:
        old = obj("ConfigMap", data={"a": "".join(f"line {n}\n" for n in range(100))})
        new = obj("ConfigMap", data={"a": "".join(f"Line {n}\n" for n in range(100))})
        text = render_text(difference(old, new))
        assert "- line 0\n" in text
        assert "more lines)" in text
        assert text.count("\n") < 30

    def test_very_long_texts_are_only_counted(self) -> None:
        old = obj("ConfigMap", data={"a": "x\n" * 3000})
        new = obj("ConfigMap", data={"a": "y\n" * 3001})
        assert "- 3000 lines\n      + 3001 lines\n" in render_text(difference(old, new))


class TestMarkdown:
    def test_begins_with_a_line_by_which_it_is_found_again(self) -> None:
        assert render_markdown(change_of(app("a"))).startswith("<!-- kaigen diff -->\n")

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("a | b", "a \\| b"),
            ("`code`", "\\`code\\`"),
            ("<img src=x>", "\\<img src=x\\>"),
            ("*bold* _it_ ~s~", "\\*bold\\* \\_it\\_ \\~s\\~"),
            ("[l](u)", "\\[l\\](u)"),
            ("$x$ &amp;", "\\$x\\$ \\&amp;"),
            ("@team and #12", "@\u200bteam and #\u200b12"),
            ("repo@sha256:ab", "repo@\u200bsha256:ab"),
            ("a\nb", "a\\\\u000ab"),
        ],
    )
    def test_text_is_shown_as_it_is(self, text: str, shown: str) -> None:
        comment = render_markdown(change_of(app("a", Effect("danger", text, "r"))))
        assert f"| `ns/a` | **danger:** Service a: {shown} |\n" in comment
        assert f"  - **danger:** {shown}\n" in comment

    def test_values_cannot_end_the_code_block(self) -> None:
        field = FieldChange(("data", "a"), "x\n```\n</details>\n", "y\n````\n| t |\n")
        lines = render_markdown(change_of(app("a", fields=(field,)))).splitlines()
        fences = [number for number, line in enumerate(lines) if line.strip().startswith("`````")]
        assert len(fences) == 2
        assert any(fences[0] < number < fences[1] for number, line in enumerate(lines) if "</details>" in line)

    def test_names_cannot_end_the_table_or_the_summary(self) -> None:
        evil = AppChange("n|s", "<b>`x`", "removed")
        comment = render_markdown(change_of(evil))
        assert "| `` n\\|s/<b>`x` `` |" in comment
        assert "<summary>n|s/&lt;b&gt;`x` (removed)</summary>" in comment

    def test_dangers_are_first_and_the_others_are_counted(self) -> None:
        effects = [Effect("info", f"info {n}", "r") for n in range(5)] + [Effect("danger", "lost", "r")]
        assert row_of(app("a", *effects)) == (
            "| `ns/a` | **danger:** Service a: lost<br>Service a: info 0<br>Service a: info 1<br>and 3 more effects |"
        )

    def test_all_dangers_are_listed_even_above_the_limit(self) -> None:
        row = row_of(app("a", *(Effect("danger", f"loss {n}", "r") for n in range(6))))
        assert all(f"loss {n}" in row for n in range(6))

    @pytest.mark.parametrize("limit", [500, 1000, 3000, 10_000, 60_000])
    @pytest.mark.parametrize("apps", [1, 3, 40, 300])
    def test_never_grows_beyond_its_bound(self, limit: int, apps: int) -> None:
        loose = with_(deployment(), "spec/template/spec/hostPID", True)
        one = only_app(difference(deployment(), loose))
        change = change_of(*(replace(one, name=f"app-{number:04}", namespace="ns") for number in range(apps)))
        comment = render_markdown(change, limit)
        assert len(comment) <= limit
        shown = comment.count("| `ns/app-")
        rest = apps - shown
        assert ("more app" in comment) == bool(rest)
        if rest:
            assert f"and {rest} more app" in comment
        details = comment.count("<details>")
        assert details == comment.count("</details>")
        if details < apps:
            assert f"The details of {apps - details} app" in comment

    def test_one_huge_app_does_not_hide_the_others(self) -> None:
        huge = [obj("ConfigMap", f"c{n}", data={f"k{m}": "x" * 500 for m in range(60)}) for n in range(60)]
        changed = [with_(item, "data", {f"k{m}": "y" * 500 for m in range(60)}) for item in huge]
        old = {**tree(*huge, folder="ns/a"), **tree(deployment(), folder="ns/b")}
        new = {**tree(*changed, folder="ns/a"), **tree(deployment(replicas=3), folder="ns/b")}
        comment = render_markdown(compare(old, new), 20_000)
        assert len(comment) <= 20_000
        assert "<summary>ns/b (changed)" in comment
        assert "its fields do not fit here" in comment.lower()

    def test_a_limit_too_small_for_anything_still_gives_the_headline(self) -> None:
        comment = render_markdown(change_of(app("a", Effect("danger", "x" * 5000, "r"))), 10)
        assert len(comment) <= 500
        assert "1 app changes: 1 danger." in comment
        assert "and 1 more app" in comment


class TestJson:
    def test_omits_what_did_not_exist(self) -> None:
        change = difference(obj("ConfigMap", data={"a": "1"}), obj("ConfigMap", data={"b": None}))
        fields = json.loads(render_json(change))["apps"][0]["objects"][0]["fields"]
        assert fields == [{"path": "data.a", "old": "1"}, {"path": "data.b", "new": None}]

    def test_survives_names_that_are_no_text(self) -> None:
        text = render_json(compare({}, {"n/a/manifests/caf\udce9.yaml": b"{"}))
        assert json.loads(text)["apps"][0]["objects"][0]["newName"] == "caf\udce9.yaml"
        text.encode("ascii")
