"""Compile a document of a folder's kind: render its templates and build an app from their objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Namespace, Release, Setting, SpecPath
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.name_expressions import AppName, ReleaseName
from kaigen.compile.problems import Problems
from kaigen.diagnostics.collector import Diagnostics
from kaigen.diagnostics.diagnostic import Diagnostic, Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.diagnostics.problem import ProblemError
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.build import RUN, Part, build_app, plain
from kaigen.extend.definition import SUFFIX, Definition
from kaigen.extend.sandbox import Placeholder, Run
from kaigen.extend.schemas import given_schema, values_schema
from kaigen.extend.template_errors import MisusedValue
from kaigen.extend.templates import expand_tokens, mark_line, render
from kaigen.extend.token_tree import OUTPUT_ERROR, TokenTree
from kaigen.kinds.schema import deref, walk
from kaigen.kinds.user import UserDocument

if TYPE_CHECKING:
    from kaigen.extend.templates import LineMap
    from kaigen.yaml.document import Document

_SETTING = re.compile(r"[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*")


def compile_document(
    definition: Definition, block: UserDocument, context: Context, problems: Problems
) -> App | None:
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

    def __init__(
        self, definition: Definition, block: UserDocument, context: Context, problems: Problems
    ) -> None:
        self.definition = definition
        self.block = block
        self.context = context
        self.problems = problems
        self.namespace = block.metadata.namespace or context.namespace
        self.diagnostics = Diagnostics()
        self.settings: dict[str, tuple[Setting, tuple[str, int]]] = {}
        secret = sha256_hex(f"{definition.signature}{go_json(block.spec)}{block.metadata.name}")[:12]
        self.run = Run(f"kaigen{secret}x", self.setting)
        self.tokens = TokenTree(self.run)
        self.schema: dict[str, Any] = dict(definition.schema)

    def app(self) -> App | None:
        rendered = render(self.definition, self.run, self._names(), self.diagnostics)
        parts: list[Part] = []
        for item in rendered:
            stem = item.template.removesuffix(SUFFIX).replace("/", "-")
            for document in item.documents:
                role = stem if len(item.documents) == 1 else f"{stem}-{str(document.kind).lower()}"
                count = sum(part.role == role or part.role.startswith(f"{role}.") for part in parts)
                part = self._part(f"{role}.{count + 1}" if count else role, document, item.lines)
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

    def _names(self) -> dict[str, Any]:
        profile = self.context.profile
        release = Placeholder(self.run.token(Release()), "`release`")
        return {
            "spec": self.block.spec,
            "name": self.block.metadata.name,
            "release": release,
            "run": Placeholder(self.run.token(RUN), "`run`"),
            "namespace": Placeholder(self.run.token(Namespace()), "`namespace`"),
            "labels": {
                "app.kubernetes.io/name": Placeholder(
                    self.run.token(AppName(self.block.metadata.name)), "`labels`"
                ),
                "app.kubernetes.io/instance": Placeholder(self.run.token(ReleaseName()), "`labels`"),
            },
            "profile": {
                "name": profile.name,
                "storageClass": profile.storage_class,
                "gpuLabel": profile.gpu_label,
                "gpuTolerations": [dict(item) for item in profile.gpu_tolerations],
                "gpuRuntimeClass": profile.gpu_runtime_class,
            },
            "kubernetes": self.context.target,
            "setting": self.run.setting,
        }

    def setting(
        self,
        path: object,
        default: Any = None,
        doc: str = "",
        *,
        schema: Mapping[str, Any] | None = None,
        _line: tuple[str, int] = ("", 0),
        _origin: SpecPath = (),
    ) -> Placeholder:
        """Return the placeholder of a value that can be overridden at deploy time; templates call this as `setting`."""
        if not isinstance(path, str) or not _SETTING.fullmatch(path) or path.split(".")[0] == "global":
            raise MisusedValue(
                f"`{path}` is not a valid name of a setting",
                "use letters and digits, with dots between levels, such as `storage.size`",
            )
        if default is None:
            raise MisusedValue(f"the setting `{path}` requires a default")
        if isinstance(default, Placeholder):
            raise MisusedValue(f"the default of `{path}` must be known at render time")
        default = self._default(path, default)
        about = walk(self.schema, _origin[1:]) if _origin[:1] == ("spec",) and len(_origin) > 1 else None
        about = deref(self.schema, about) if about else None
        text = doc or str((about or {}).get("description", "")) or f"The field `{dotted(_origin) or path}`."
        one_line = " ".join(text.split())
        setting = Setting(
            path, default, one_line, self._setting_schema(path, schema, about, default), False, _origin
        )
        known = self.settings.setdefault(path, (setting, _line))[0]
        if known.default != setting.default:
            raise MisusedValue(
                f"the setting `{path}` has two different defaults", "rename one of the two settings"
            )
        return Placeholder(self.run.token(known), f"the setting `{path}`")

    def _setting_schema(
        self, path: str, given: object, about: Mapping[str, Any] | None, default: Any
    ) -> dict[str, Any]:
        if not given:
            return values_schema(about, default)
        if not isinstance(given, Mapping):
            raise MisusedValue(f"the schema of `{path}` must be a mapping")
        try:
            return given_schema(given)
        except ValueError as error:
            raise MisusedValue(f"the schema of `{path}` is not valid: {error}") from None

    def _default(self, path: str, default: Any) -> Any:
        if isinstance(default, str) and self.run.nonce in default:
            raise MisusedValue(f"the default of `{path}` must be known at render time")
        if isinstance(default, Mapping):
            return {str(key): self._default(path, value) for key, value in default.items()}
        if isinstance(default, list | tuple):
            return [self._default(path, value) for value in default]
        if not isinstance(default, str | int | float | bool):
            raise MisusedValue(f"the default of `{path}` must be plain data")
        return str(default) if isinstance(default, str) else default

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

        def mark(path: SpecPath) -> Mark:
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
                raise ProblemError(
                    OUTPUT_ERROR, f"the object has no `{key}`", (key,), did_you_mean(key, body)
                )
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
