"""Compile a document of a folder's kind: render its templates and build an app from their objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App, Roles
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Namespace, Release, Setting
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.name_expressions import AppName, ReleaseName
from kaigen.compile.problems import Problems
from kaigen.core.json_types import FieldPath
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.problem import ProblemError, dotted_path
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.build import RUN, Part, build_app, plain
from kaigen.extend.defined_kind import SUFFIX, Definition
from kaigen.extend.schemas import given_schema, values_schema
from kaigen.extend.templates import expand_tokens, mark_line, render
from kaigen.extend.token_tree import OUTPUT_ERROR, TokenTree
from kaigen.extend.tokens import MisusedValue, Run, check_default, check_path, check_same
from kaigen.kinds.schema import deref, walk
from kaigen.kinds.user import UserDocument

if TYPE_CHECKING:
    from kaigen.extend.templates import LineMap
    from kaigen.extend.wire import SettingCall
    from kaigen.yaml.document import Document


def compile_document(definition: Definition, block: UserDocument, context: Context, problems: Problems) -> App | None:
    """Return the app of a document, or None after adding the errors of its templates to `problems`.

    Args:
        definition: the kind.
        block: the document, defaults filled in.
        context: the target of the compilation.
        problems: collects problems.
    """
    return _Compiler(definition, block, context, problems).app()


class _Compiler:
    """Compiles one document."""

    def __init__(self, definition: Definition, block: UserDocument, context: Context, problems: Problems) -> None:
        self.definition = definition
        self.block = block
        self.context = context
        self.problems = problems
        self.namespace = block.metadata.namespace or context.config.namespace
        self.diagnostics = Diagnostics()
        self.settings: dict[str, tuple[Setting, tuple[str, int]]] = {}
        secret = sha256_hex(f"{definition.signature}{go_json(block.spec)}{block.metadata.name}")[:12]
        self.run = Run(f"kaigen{secret}x", self._first_values())
        self.tokens = TokenTree(self.run)
        self.schema: dict[str, Any] = dict(definition.schema)

    def app(self) -> App | None:
        rendered = render(self.definition, self.run, self._names(), self.add_setting, self.diagnostics)
        parts: list[Part] = []
        roles = Roles(".")
        for item in rendered:
            stem = item.template.removesuffix(SUFFIX).replace("/", "-")
            for document in item.documents:
                role = stem if len(item.documents) == 1 else f"{stem}-{str(document.kind).lower()}"
                part = self._part(roles.take(role), document, item.lines)
                if part is not None:
                    parts.append(part)
        if not self.diagnostics.has_errors:
            self._check_unused()
        if not parts and not self.diagnostics.has_errors:
            self.problems.error(
                "KG1008", f"the templates of `{self.block.kind}` produce no object for this spec", ("spec",)
            )
        for diagnostic in self.diagnostics:
            self.problems.add_diagnostic(diagnostic)
        if self.problems.failed:
            return None
        return build_app(
            self.block.kind,
            self.block.metadata,
            self.context,
            self.problems,
            parts,
            summary=self._summary(),
            pod_security=self.definition.pod_security,
        )

    def _summary(self) -> str:
        text = self.definition.summary
        return text[0].upper() + text[1:].rstrip(".") + "."

    def _first_values(self) -> list[Any]:
        """Return the values of the tokens that every rendering has, as in `FIRST_TOKENS`."""
        return [Release(), RUN, Namespace(), AppName(self.block.metadata.name), ReleaseName()]

    def _names(self) -> dict[str, Any]:
        """Return the names that templates can use and that have no tokens."""
        profile = self.context.profile
        return {
            "spec": self.block.spec,
            "name": self.block.metadata.name,
            "profile": {
                "name": profile.name,
                "storageClass": profile.storage_class,
                "gpuLabel": profile.gpu_label,
                "gpuTolerations": [dict(item) for item in profile.gpu_tolerations],
                "gpuRuntimeClass": profile.gpu_runtime_class,
            },
            "kubernetes": self.context.config.kubernetes,
        }

    def add_setting(self, call: SettingCall) -> Setting:
        """Return the setting that a template defines.

        Raises:
            MisusedValue: it is not valid.
        """
        path = check_path(call.path)
        default = check_default(path, call.default, self.run.nonce)
        if call.template not in self.definition.templates:
            raise MisusedValue(f"the setting `{path}` is in no template")
        origin = call.origin
        about = walk(self.schema, origin[1:]) if origin[:1] == ("spec",) and len(origin) > 1 else None
        about = deref(self.schema, about) if about else None
        text = call.doc or str((about or {}).get("description", "")) or f"The field `{dotted_path(origin) or path}`."
        schema = self._setting_schema(path, call.schema, about, default)
        setting = Setting(path, default, " ".join(text.split()), schema, False, origin)
        known = self.settings.setdefault(path, (setting, (call.template, call.line)))[0]
        check_same(path, known.default, setting.default)
        return known

    def _setting_schema(
        self, path: str, given: Mapping[str, Any] | None, about: Mapping[str, Any] | None, default: Any
    ) -> dict[str, Any]:
        if not given:
            return values_schema(about, default)
        try:
            return given_schema(given)
        except ValueError as error:
            raise MisusedValue(f"the schema of `{path}` is not valid: {error}") from None

    def _check_unused(self) -> None:
        for path, (_, (template, line)) in self.settings.items():
            if path not in self.tokens.used:
                source = self.definition.templates[template]
                self.diagnostics.add(
                    Diagnostic(
                        "KG1007",
                        f"no object uses the setting `{path}`",
                        mark_line(source, line, path),
                        "write the setting without filters: its value is known only at deploy time",
                    )
                )

    def _part(self, role: str, document: Document, lines: LineMap) -> Part | None:
        """Return one object, or None after reporting why it is not one."""

        def mark(path: FieldPath) -> Mark:
            here: Any = document.data
            for step in path:
                here = here.get(step) if isinstance(here, dict) else None
            return lines.source_mark(document.mark(path, key=isinstance(here, dict | list)))

        try:
            body = self._body(document)
        except ProblemError as error:
            problem = error.problem
            message, hint = expand_tokens(problem.message, self.run), expand_tokens(problem.hint, self.run)
            self.diagnostics.add(Diagnostic(problem.code, message, mark(problem.path), hint))
            return None
        return Part(role, body, mark)

    def _body(self, document: Document) -> dict[str, Any]:
        if not isinstance(document.data, dict):
            raise ProblemError(
                OUTPUT_ERROR,
                "not a Kubernetes object",
                hint="write an object with `apiVersion`, `kind` and `metadata.name`",
            )
        body: Any = self.tokens.read(document)
        for key in ("apiVersion", "kind"):
            if key not in body:
                raise ProblemError(OUTPUT_ERROR, f"the object has no `{key}`", (key,), did_you_mean(key, body))
            if not isinstance(body[key], str):
                raise ProblemError(OUTPUT_ERROR, f"`{key}` must be a string", (key,))
        self._check_metadata(body)
        metadata = body["metadata"]
        if metadata.get("namespace") == self.namespace:
            metadata["namespace"] = Namespace()
        return body  # type: ignore[no-any-return]

    def _check_metadata(self, body: dict[str, Any]) -> None:
        metadata = body.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise ProblemError(
                OUTPUT_ERROR,
                f"the {body['kind']} has no `metadata.name`",
                ("metadata",),
                "set it, for example `name: {{ release }}`",
            )
        for key in ("labels", "annotations"):
            if not isinstance(metadata.get(key, {}), dict):
                raise ProblemError(OUTPUT_ERROR, f"`metadata.{key}` must be a mapping", ("metadata", key))
        name = metadata["name"]
        path = ("metadata", "name")
        if not isinstance(name, Expr):
            raise ProblemError(
                OUTPUT_ERROR,
                f"the name `{name}` is the same in every release of the chart, so two releases would conflict",
                path,
                "use `{{ release }}` or `{{ release }}-SUFFIX`",
            )
        if name == RUN:
            if not isinstance(body.get("spec"), dict):
                raise ProblemError(OUTPUT_ERROR, "`{{ run }}` requires an object with a `spec`", path)
        elif not isinstance(plain(name, self.block.metadata.name, self.namespace), str):
            raise ProblemError(OUTPUT_ERROR, "`metadata.name` must be a string", path)
