"""A cdk8s program: an ApiObject for every object.

An ApiObject takes no fields but metadata in Python; the others are added as the library says, by JSON Patch.
"""

import json
from pathlib import Path

from cdk8s import ApiObject, App, Chart, JsonPatch  # type: ignore[import-not-found]

_OWN = ("apiVersion", "kind", "metadata")

app = App(outdir="dist")
chart = Chart(app, "bench")
for name, item in json.loads(Path("objects.json").read_text()).items():
    made = ApiObject(chart, name, api_version=item["apiVersion"], kind=item["kind"], metadata=item["metadata"])
    made.add_json_patch(*(JsonPatch.add(f"/{key}", value) for key, value in item.items() if key not in _OWN))
app.synth()
