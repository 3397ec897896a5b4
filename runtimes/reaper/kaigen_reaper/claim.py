"""`claim`: creates a volume that expires, owned by a ServiceAccount of its app."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping

from kaigen_reaper.cluster import MERGE_PATCH, Api, Json, check_name, mapping, refused
from kaigen_reaper.contract import APP_LABELS, EXPIRES, JOB, VOLUME_ANNOTATIONS
from kaigen_reaper.errors import ApiUnavailable, BadInput, Conflict, Unavailable
from kaigen_reaper.text import duration, say

_INVALID = {400, 422}


def read_volume(text: str) -> Json:
    """Return the PersistentVolumeClaim of a JSON text.

    Raises:
        BadInput: the text is not one, or the claim has no name or not the label of volumes that expire.
    """
    try:
        volume = mapping(json.loads(text))
    except ValueError as error:
        raise BadInput(f"--volume: not JSON: {error}") from None
    if (volume.get("apiVersion"), volume.get("kind")) != ("v1", "PersistentVolumeClaim"):
        raise BadInput("--volume: must be a PersistentVolumeClaim of v1")
    metadata = mapping(volume.get("metadata"))
    check_name(str(metadata.get("name") or ""), "--volume: metadata.name")
    if mapping(metadata.get("labels")).get(EXPIRES) != "true":
        raise BadInput(f'--volume: the label {EXPIRES} must be "true"')
    return volume


def claim(volume: Json, owner: str, env: Mapping[str, str], *, timeout: float, poll: float) -> str:
    """Create the volume, or adapt the one of an earlier run of the app.

    It belongs to a ServiceAccount and not to the Job that runs this pod: Argo CD and Flux replace that Job with each
    run, and the garbage collector would delete the volume with it. Once the run that it is for has ended, no volume is
    created: it has expired, or somebody deleted it.

    While the API server cannot be reached or refuses, and while an old volume is being deleted, it tries again:
    permissions may be created later than this pod.

    Args:
        volume: a PersistentVolumeClaim without namespace.
        owner: name of the ServiceAccount.
        env: how to reach the API server.
        timeout: seconds until it gives up.
        poll: seconds between two attempts.

    Returns:
        What was done, for a message.

    Raises:
        BadInput: an argument or variable is invalid, or the API server finds the volume invalid.
        Conflict: a volume with that name belongs to something else.
        Unavailable: the time is over.
    """
    with contextlib.closing(Api(env)) as api:
        return _repeat(_Attempt(api, volume, owner), timeout, poll)


def _repeat(attempt: _Attempt, timeout: float, poll: float) -> str:
    begin, printed = time.monotonic(), ""
    while True:
        try:
            done, state = attempt.run()
        except ApiUnavailable as error:
            done, state = False, f"the API server cannot be reached; a NetworkPolicy may deny it ({error})"
        if done:
            return state
        waited = time.monotonic() - begin
        if waited >= timeout:
            raise Unavailable(f"waited {duration(waited)}: {state}")
        if state != printed:
            say(f"waiting: {state}")
            printed = state
        time.sleep(min(poll, timeout - waited))


class _Attempt:
    """Attempts to create or adapt one volume."""

    def __init__(self, api: Api, volume: Json, owner: str) -> None:
        metadata = mapping(volume.get("metadata"))
        if metadata.get("namespace", api.namespace) != api.namespace:
            raise BadInput(f"--volume: metadata.namespace must be {api.namespace}, the namespace of this pod")
        self._api = api
        self._volume = volume
        self._owner = owner
        self._own: Json = {}
        self._name = str(metadata["name"])
        self._labels = mapping(metadata.get("labels"))
        self._annotations = mapping(metadata.get("annotations"))
        self._run = str(self._annotations.get(JOB) or "")
        self._path = f"/api/v1/namespaces/{api.namespace}/persistentvolumeclaims"
        self._what = f"PersistentVolumeClaim {api.namespace}/{self._name}"

    def run(self) -> tuple[bool, str]:
        """Return whether the volume is there, and the state in words."""
        account = f"ServiceAccount {self._owner}"
        path = f"/api/v1/namespaces/{self._api.namespace}/serviceaccounts/{self._owner}"
        status, found = self._api.call("GET", path)
        if status != 200:
            return False, f"{account}: {refused('get', status, found)}"
        uid = mapping(found.get("metadata")).get("uid")
        self._own = {"apiVersion": "v1", "kind": "ServiceAccount", "name": self._owner, "uid": uid}
        by = f"owned by {account}"
        status, found = self._api.call("GET", f"{self._path}/{self._name}")
        if status == 404:
            ended, state = self._run_has_ended()
            if state:
                return ended, state
            body = {**self._volume, "metadata": {**mapping(self._volume["metadata"])}}
            mapping(body["metadata"])["ownerReferences"] = [self._own]
            status, found = self._api.call("POST", self._path, body)
            if status == 201:
                return True, f"created {self._what}, {by}"
            return self._refused("create", status, found)
        if status != 200:
            return self._refused("get", status, found)
        metadata = mapping(found.get("metadata"))
        if "deletionTimestamp" in metadata:
            return False, f"{self._what} is being deleted; a pod may still mount it"
        self._check_owner(metadata)
        if self._is_done(metadata):
            return True, f"{self._what} exists, {by}"
        status, found = self._api.call("PATCH", f"{self._path}/{self._name}", self._patch(metadata), MERGE_PATCH)
        if status == 200:
            return True, f"adapted {self._what} for Job {self._run}, {by}"
        return self._refused("patch", status, found)

    def _run_has_ended(self) -> tuple[bool, str]:
        """Return whether the Job of the volume has ended, and the state in words; none while it has not."""
        if not self._run:
            return False, ""
        path = f"/apis/batch/v1/namespaces/{self._api.namespace}/jobs/{self._run}"
        status, found = self._api.call("GET", path)
        if status == 404:
            return False, ""
        if status != 200:
            return False, f"Job {self._run}: {refused('get', status, found)}"
        conditions = mapping(found.get("status")).get("conditions")
        for each in conditions if isinstance(conditions, list) else []:
            one = mapping(each)
            if one.get("type") in ("Complete", "Failed") and one.get("status") == "True":
                return True, f"Job {self._run} has ended: {self._what} is not created again"
        return False, ""

    def _refused(self, verb: str, status: int, answer: Json) -> tuple[bool, str]:
        reason = f"{self._what}: {refused(verb, status, answer)}"
        if status in _INVALID:
            raise BadInput(reason)
        return False, reason

    def _check_owner(self, metadata: Json) -> None:
        """Check that the volume is one of this app's.

        Raises:
            Conflict: it is not.
        """
        labels = mapping(metadata.get("labels"))
        owners = metadata.get("ownerReferences")
        others = [mapping(each) for each in owners] if isinstance(owners, list) else []
        advice = "Rename the volume in the spec, or delete that one"
        for each in others:
            if each.get("kind") != "ServiceAccount" or each.get("name") != self._owner:
                raise Conflict(f"{self._what} belongs to {each.get('kind')} {each.get('name')}. {advice}")
        if labels.get(EXPIRES) != "true":
            raise Conflict(f"{self._what} exists and does not expire. {advice}")
        if not self._labels.get(APP_LABELS[0]) or any(labels.get(key) != self._labels.get(key) for key in APP_LABELS):
            app = labels.get(APP_LABELS[0]) or "no app"
            raise Conflict(f"{self._what} belongs to another app ({app}). {advice}")

    def _is_done(self, metadata: Json) -> bool:
        owners = metadata.get("ownerReferences")
        uids = [mapping(each).get("uid") for each in owners] if isinstance(owners, list) else []
        annotations = mapping(metadata.get("annotations"))
        return uids == [self._own["uid"]] and all(
            annotations.get(key) == self._annotations.get(key) for key in VOLUME_ANNOTATIONS
        )

    def _patch(self, metadata: Json) -> Json:
        """Return the patch that makes the Job the owner, if the volume is still the one that was read."""
        return {
            "metadata": {
                "uid": metadata.get("uid"),
                "resourceVersion": metadata.get("resourceVersion"),
                "ownerReferences": [self._own],
                "labels": self._labels,
                "annotations": {**dict.fromkeys(VOLUME_ANNOTATIONS), **self._annotations},
            }
        }
