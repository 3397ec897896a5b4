"""An image is the name of one: no `..`, no empty part, with which rules for images could be read differently."""

from __future__ import annotations

import pytest
import yaml

from tests.unit.security.hostile import CONFIG, JOB, Repository

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}


@pytest.mark.parametrize("image", ["example.com/a/../b:1", "example.com/a//b:1", "example.com/A:1"])
def test_images_of_specs_and_of_plain_objects_are_checked(repository: Repository, image: str) -> None:
    plain = yaml.safe_dump(POD | {"spec": {"containers": [{"name": "a", "image": image}]}})
    repository.write({"kaigen.yaml": CONFIG + "passthrough: true\n", "specs/plain.yaml": plain})
    repository.write({"specs/evaluate.yaml": JOB.replace("example.com/evaluate:1.0", image)})
    done = repository.kaigen("validate")
    assert done.code == 2
    assert "specs/plain.yaml:" in done.err
    assert "specs/evaluate.yaml:" in done.err, done.text
    assert done.err.count("error[KG0554]") == 2, done.text
