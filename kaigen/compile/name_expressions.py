"""Names of releases, of apps, and of the objects of other apps."""

from __future__ import annotations

from kaigen.compile.expressions import CHART, NAME_MAX, Expr, Scope, shorten_name


def full_name(release: str, app: str, most: int = NAME_MAX) -> str:
    """Return what the names of all objects of a release begin with, as the chart's helper `fullname` does.

    Args:
        release: name of the release.
        app: name of the app.
        most: greatest number of characters.
    """
    release = release.replace(".", "-")
    return shorten_name(release if app in release else f"{release}-{app}", most)


class ReleaseName(Expr, frozen=True):
    """The name of the release, which all charts of an umbrella chart share."""

    def value(self, scope: Scope) -> str:
        return scope.release or scope.fullname

    def pipeline(self) -> str:
        return ".Release.Name"

    def inline(self) -> str:
        return '"{{ .Release.Name }}"'


class AppName(Expr, frozen=True):
    """The name of the app; in a chart, that of the chart or the value `nameOverride`."""

    name: str

    def value(self, scope: Scope) -> str:
        return self.name

    def pipeline(self) -> str:
        return f'include "{CHART}.name" .'

    def inline(self) -> str:
        return f'"{{{{ include "{CHART}.name" . }}}}"'


class OtherApp(Expr, frozen=True):
    """The name of an object of another app.

    Attributes:
        app: name of the other app.
        suffix: end of the object's name.
        digest: hash of a run, the last part of the name; empty for none.
        most: most characters of the full name of the other app.
    """

    app: str
    suffix: str = ""
    digest: str = ""
    most: int = NAME_MAX

    def value(self, scope: Scope) -> str:
        return self.app + self.suffix + (f"-{self.digest}" if self.digest else "")

    def pipeline(self) -> str:
        name = f'include "{CHART}.otherApp" (list . "{self.app}" {self.most})'
        if not self.digest:
            return f'printf "%s{self.suffix}" ({name})' if self.suffix else name
        run = f'include "{CHART}.runDigest" (list . "{self.digest}")'
        return f'printf "%s{self.suffix}-%s" ({name}) ({run})'
