"""Names, labels and annotations that all objects of an app share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field

from kaigen.compile.builders import settings
from kaigen.compile.expressions import Namespace, Release, Setting, Tree
from kaigen.compile.field_expressions import Entries, Labels
from kaigen.compile.name_expressions import AppName, ReleaseName
from kaigen.compile.setting_expressions import Merged

WAVE = "argocd.argoproj.io/sync-wave"
_OPTIONS = "argocd.argoproj.io/sync-options"

KEEP: Mapping[str, str] = {
    _OPTIONS: "Prune=false,Delete=false",
    "helm.sh/resource-policy": "keep",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
"""Annotations that make Argo CD, Helm and Flux keep an object when its app is deleted."""

POD_SECURITY = "kaigen.dev/pod-security"
"""Annotation of pods with a level below restricted, so that every diff shows it."""

LOCATION = "kaigen.dev/location"
"""Annotation of a volume or a Job with the bucket's folder, which only one app may fill."""

READS = "kaigen.dev/reads"
"""Annotation of a volume with the bucket's folder that an app of another namespace fills."""


class Frame(Struct, frozen=True, dict=True):
    """The identity of an app. Every object has its labels, so each mapping is made once and shared.

    Attributes:
        name: name of the app.
        labels: the user's labels of every object.
        annotations: the user's annotations of every object, without those that direct kaigen.
        user_pod_labels: the user's labels of pods, which selectors do not require.
        pod_annotations: the user's annotations of pods.
        pod_labels: further labels of the app's pods, which their selectors require as well.
        headless_suffix: end of the headless Service's name.
        argocd: whether objects get kaigen's annotations for Argo CD, waves and options.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    user_pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    pod_labels: Mapping[str, Tree] = field(default_factory=dict)
    headless_suffix: str = "-nodes"
    argocd: bool = True

    @cached_property
    def common_labels(self) -> dict[str, Tree]:
        """Labels that kaigen sets on every object."""
        return {**self.selector_labels, "app.kubernetes.io/managed-by": "kaigen"}

    @cached_property
    def selector_labels(self) -> dict[str, Tree]:
        """The labels that select this release's pods."""
        return {"app.kubernetes.io/name": AppName(self.name), "app.kubernetes.io/instance": ReleaseName()}

    def all_labels(self, component: str, own: Mapping[str, Tree] | None = None) -> Labels:
        """Return the labels of one object."""
        return Labels(
            self.common_labels,
            {"app.kubernetes.io/component": component, **(own or {})},
            f"{self.name}.labels",
            self.labels_setting,
            shared=True,
        )

    def selector(self, component: str | None = None, own: Mapping[str, Tree] | None = None) -> Labels:
        """Return the labels that a selector finds the pods of one component by, or all pods for None.

        Args:
            component: value of the component label.
            own: further labels of these pods alone.
        """
        labels: dict[str, Tree] = {"app.kubernetes.io/component": component} if component else {}
        return Labels(self.selector_labels, {**labels, **(own or {}), **self.pod_labels}, self._selector_helper)

    def pod_metadata(
        self,
        component: str,
        annotations: Mapping[str, str],
        own: Mapping[str, Tree] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> dict[str, Tree]:
        """Return the metadata of a pod template.

        Args:
            component: value of the component label.
            annotations: kaigen's annotations, which override the user's.
            own: further labels that select these pods.
            labels: further labels that do not.
        """
        found = self.selector(component, own)
        if labels:
            found = Labels(found.common, {**labels, **found.own}, found.helper)
        found = Labels(found.common, found.own, found.helper, self._pod_labels)
        return {"labels": found, "annotations": Entries(dict(annotations), self._pod_annotations)}

    @cached_property
    def labels_setting(self) -> Setting:
        """The setting with the user's labels of every object."""
        return Setting(
            "labels",
            dict(self.labels),
            "Labels of every object, besides those that kaigen sets.",
            settings.LABELS,
            optional=True,
            origin=("metadata", "labels"),
            helper="withGlobalLabels",
        )

    @cached_property
    def annotations_setting(self) -> Setting:
        """The setting with the user's annotations of every object."""
        return settings.string_map(
            "annotations",
            {key: value for key, value in self.annotations.items() if key != WAVE},
            "Annotations of every object.",
            origin=("metadata", "annotations"),
            helper="withGlobalAnnotations",
        )

    @cached_property
    def _pod_labels(self) -> Setting:
        return Setting(
            "podLabels",
            dict(self.user_pod_labels),
            "Labels of the pods, besides those that select them.",
            settings.LABELS,
            optional=True,
            origin=("spec", "podLabels"),
            helper="withGlobalLabels",
        )

    @cached_property
    def _pod_annotations(self) -> Setting:
        return settings.string_map(
            "podAnnotations",
            self.pod_annotations,
            "Annotations of the pods.",
            origin=("spec", "podAnnotations"),
            helper="withGlobalAnnotations",
        )

    def release_selector(self) -> Labels:
        """Return the labels of all pods of the release, without those of a foreign system."""
        return Labels(self.selector_labels, {}, self._selector_helper)

    @property
    def _selector_helper(self) -> str:
        return f"{self.name}.selectorLabels"

    @property
    def headless_service(self) -> Release:
        """The name of the Service that gives each pod a host name."""
        return Release(self.headless_suffix)

    @property
    def _first_wave(self) -> int:
        """The user's wave, which is added to those of all objects, so that their order stays the same."""
        given = self.annotations.get(WAVE, "")
        return int(given) if re.fullmatch(r"[-+]?[0-9]{1,9}", given) else 0

    def metadata(
        self,
        suffix: str,
        component: str,
        *,
        wave: int = 0,
        labels: Mapping[str, Tree] | None = None,
        annotations: Mapping[str, Tree] | None = None,
        name: Tree = None,
        more: Setting | None = None,
    ) -> dict[str, Tree]:
        """Return an object's metadata.

        Args:
            suffix: end of its name, which begins with the full name of the release.
            component: value of its component label.
            wave: its sync wave.
            labels: further labels.
            annotations: further annotations.
            name: its name, in place of one with `suffix`.
            more: setting with annotations of this object alone.
        """
        notes: dict[str, Tree] = dict(annotations or {})
        if wave or WAVE in self.annotations:
            notes[WAVE] = str(self._first_wave + wave) if wave else self.annotations[WAVE]
        if not self.argocd:
            notes = {key: value for key, value in notes.items() if key not in (WAVE, _OPTIONS)}
        given = self.annotations_setting
        return {
            "name": Release(suffix) if name is None else name,
            "namespace": Namespace(),
            "labels": self.all_labels(component, labels),
            "annotations": Entries(
                dict(sorted(notes.items())), given if more is None else Merged(more, given), ordered=True
            ),
        }
