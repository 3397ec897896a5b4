"""The patches of a repository: change the objects of apps, in manifests and charts alike."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from msgspec import Struct, field

from kaigen.compile.app import App
from kaigen.config.block_settings import ObjectPatch
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.patch_target import Patch
from kaigen.extend.patched_objects import patch_app


class Patches(Struct, frozen=True):
    """Every patch of a run.

    Attributes:
        valid: the patches that can be applied, in order.
        diagnostics: errors of the others.
        stopped: what stopped patches in this run, by their tokens.
    """

    valid: tuple[Patch, ...]
    diagnostics: tuple[Diagnostic, ...]
    stopped: dict[str, Diagnostic] = field(default_factory=dict)

    def apply(self, app: App, diagnostics: Diagnostics) -> tuple[App, tuple[str, ...]]:
        """Return an app with its patches applied, and the tokens of the patches that matched an object.

        Args:
            app: the compiled app.
            diagnostics: collects problems.
        """
        matched = []
        for patch in self.valid:
            if patch.matches_app(app.namespace, app.name):
                app, changed = patch_app(app, patch, diagnostics, self.stopped)
                if changed:
                    matched.append(patch.token)
        return app, tuple(matched)

    def unmatched(
        self, matched: AbstractSet[object], apps: Iterable[tuple[str, str]], *, partial: bool
    ) -> list[Diagnostic]:
        """Return an error for each patch that matched no object.

        Args:
            matched: tokens of the patches that did.
            apps: namespace and name of every app.
            partial: not every app was compiled.
        """
        every = sorted(set(apps))
        errors = []
        for patch in self.valid:
            if patch.token in matched:
                continue
            pattern = patch.target.app
            matching = [name for namespace, name in every if patch.matches_app(namespace, name)]
            if not matching:
                names = [f"{namespace}/{name}" if "/" in pattern else name for namespace, name in every]
                hint = did_you_mean(pattern, names) or f"apps: {', '.join(names) or 'none'}"
                mark = patch.target_marks(("app",))
                errors.append(Diagnostic("KG1021", f"no app matches `{pattern}`", mark, hint))
            elif not partial and len(matching) > 1 and patch.has_wildcard:
                errors.append(
                    Diagnostic(
                        "KG1021",
                        f"none of the {len(matching)} apps that match `{pattern}` has {_description(patch.target)}",
                        patch.target_marks(("name",) if patch.target.name is not None else ("kind",)),
                        "run `kaigen render --stdout` to list the objects",
                    )
                )
        return errors


def _description(target: ObjectPatch) -> str:
    kind = target.kind or "object"
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    return f"{article} {kind}" + (f" named `{target.name}`" if target.name is not None else "")
