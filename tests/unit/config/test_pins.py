"""pins/ENVIRONMENT.yaml: the text that is written, and what is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaigen.config.images import given_images
from kaigen.config.pins import pins_text, read_pins
from kaigen.config.settings import pins_path
from kaigen.diagnostics.errors import InputError
from tests.unit.config.reports import report

HEAD = """\
# Values promoted to this environment. They override the specs and kaigen.yaml.
# Written by `kaigen promote`: review this file, and promote again to change it.
apiVersion: kaigen.dev/v1alpha1
kind: Pins
"""


def write(root: Path, text: str) -> None:
    path = pins_path(root, "prod")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("apps", "images", "text"),
    [
        ({}, {}, ""),
        ({"a": {}}, {}, ""),
        (
            {"b": {"spec.y": "2", "spec.x": "1"}, "a": {"spec.z": "3"}, "c": {}},
            {},
            'apps:\n  a:\n    spec.z: "3"\n  b:\n    spec.x: "1"\n    spec.y: "2"\n',
        ),
        ({}, {"vllm": "v:1", "chat": "c:1"}, "images:\n  chat: c:1\n  vllm: v:1\n"),
    ],
)
def test_the_text_is_sorted_and_has_no_empty_tables(
    tmp_path: Path, apps: dict[str, dict[str, str]], images: dict[str, str], text: str
) -> None:
    assert pins_text(apps, images) == HEAD + text
    write(tmp_path, HEAD + text)
    found = read_pins(tmp_path, "prod")
    assert found is not None
    assert (found.apps, given_images(found.images)) == ({name: each for name, each in apps.items() if each}, images)


def test_an_environment_without_the_file_or_with_an_empty_one_has_no_pins(tmp_path: Path) -> None:
    assert read_pins(tmp_path, "prod") is None
    write(tmp_path, HEAD)
    assert read_pins(tmp_path, "dev") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "prod.yaml KG0108 the file contains no document | add a document, or remove the file"),
        ("- a\n", "prod.yaml:1:1 KG0711 prod.yaml must contain a mapping"),
        (
            f"{HEAD}---\na: b\n",
            "prod.yaml:6:1 KG0711 prod.yaml contains more than one document | delete the `---` and what follows it",
        ),
        (HEAD.replace("Pins", "Other"), "prod.yaml:4:7 KG0205 [kind] `kind` must be `Pins`, not `Other`"),
        (
            f"{HEAD}apps: {{a: {{spec.x: 'b c'}}}}\n",
            'prod.yaml:5:20 KG0204 [apps.a["spec.x"]] `spec.x: b c` may contain only characters other than whitespace',
        ),
    ],
)
def test_an_invalid_file_is_reported_at_its_line(tmp_path: Path, text: str, problem: str) -> None:
    write(tmp_path, text)
    with pytest.raises(InputError) as raised:
        read_pins(tmp_path, "prod")
    assert report(raised.value.diagnostics) == [problem]


def test_a_broken_link_is_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = pins_path(tmp_path, "prod")
    path.parent.mkdir()
    path.symlink_to(tmp_path / "gone")
    with pytest.raises(InputError):
        read_pins(tmp_path, "prod")
