"""From a document of a folder's kind to its app: templates rendered, tokens replaced, objects put together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kaigen.compile.app import App
from kaigen.compile.context import Context
from kaigen.compile.expressions import Expr, Namespace, Release, Setting, SpecPath, Text, Tree
from kaigen.compile.go_json import go_json, sha256_hex
from kaigen.compile.problems import Problems
from kaigen.diagnostics.diagnostic import Diagnostic, Diagnostics, Mark
from kaigen.diagnostics.field_path import dotted
from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.build import RUN, Part, build_app, joined, plain
from kaigen.extend.definition import SUFFIX, Definition
from kaigen.extend.sandbox import Misused, Placeholder, Run
from kaigen.extend.schemas import values_schema
from kaigen.extend.templates import place_in, render, shown_tokens
from kaigen.kinds.schema import deref, walk
from kaigen.kinds.user import UserDocument

if TYPE_CHECKING:
    from kaigen.extend.templates import LineMap
    from kaigen.yaml.document import Document

_SETTING = re.compile(r"[a-z][A-Za-z0-9]*(?:\.[a-z][A-Za-z0-9]*)*")


def compile_document(
    definition: Definition, block: UserDocument, context: Context, problems: Problems
) -> App | None:
    """The app of a document; None when a template is wrong, which `problems` tells.

    Args:
        definition: the kind.
        block: the document, defaults filled in.
        context: what it is compiled for.
        problems: takes what is wrong.
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
        self.found = Diagnostics()
        self.settings: dict[str, tuple[Setting, tuple[str, int]]] = {}
        self.used: set[str] = set()
        secret = sha256_hex(f"{definition.signature}{go_json(block.spec)}{block.metadata.name}")[:12]
        self.run = Run(f"kaigen{secret}x", self.setting)
        self.tokens = re.compile(rf"{self.run.nonce}([0-9]+)z")
        self.schema: dict[str, Any] = dict(definition.schema)

    def app(self) -> App | None:
        rendered = render(self.definition, self.run, self._names(), self.found)
        parts: list[Part] = []
        for item in rendered:
            stem = item.template.removesuffix(SUFFIX).replace("/", "-")
            for document in item.documents:
                role = stem if len(item.documents) == 1 else f"{stem}-{str(document.kind).lower()}"
                count = sum(part.role == role or part.role.startswith(f"{role}.") for part in parts)
                part = self._part(f"{role}.{count + 1}" if count else role, document, item.lines)
                if part is not None:
                    parts.append(part)
        if not self.found.has_errors:
            self._check_unused()
        if not parts and not self.found.has_errors:
            self.problems.error(
                "KG1008", f"no template of `{self.block.kind}` makes an object for this spec", ("spec",)
            )
        for diagnostic in self.found:
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
                "app.kubernetes.io/name": self.block.metadata.name,
                "app.kubernetes.io/instance": release,
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
        _place: tuple[str, int] = ("", 0),
        _origin: SpecPath = (),
    ) -> Placeholder:
        """What `setting` does in a template: a value that may be overridden at deploy time."""
        if not isinstance(path, str) or not _SETTING.fullmatch(path) or path.split(".")[0] == "global":
            raise Misused(
                f"`{path}` cannot name a setting",
                "a name is letters and digits, with dots between levels, as in `storage.size`",
            )
        if default is None:
            raise Misused(f"the setting `{path}` needs a default")
        if isinstance(default, Placeholder):
            raise Misused(f"the default of `{path}` must be known when it is rendered")
        default = self._default(path, default)
        about = walk(self.schema, _origin[1:]) if _origin[:1] == ("spec",) and len(_origin) > 1 else None
        about = deref(self.schema, about) if about else None
        text = doc or str((about or {}).get("description", "")) or f"The field `{dotted(_origin) or path}`."
        one_line = " ".join(text.split())
        setting = Setting(
            path, default, one_line, dict(schema) if schema else values_schema(about, default), False, _origin
        )
        known = self.settings.setdefault(path, (setting, _place))[0]
        if known.default != setting.default:
            raise Misused(
                f"the setting `{path}` has another default elsewhere", "give one of the two another name"
            )
        return Placeholder(self.run.token(known), f"the setting `{path}`")

    def _default(self, path: str, default: Any) -> Any:
        if isinstance(default, str) and self.run.nonce in default:
            raise Misused(f"the default of `{path}` must be known when it is rendered")
        if isinstance(default, Mapping):
            return {str(key): self._default(path, value) for key, value in default.items()}
        if isinstance(default, list | tuple):
            return [self._default(path, value) for value in default]
        if not isinstance(default, str | int | float | bool):
            raise Misused(f"the default of `{path}` is no plain data")
        return str(default) if isinstance(default, str) else default

    def _check_unused(self) -> None:
        for path, (_, (template, line)) in self.settings.items():
            if path not in self.used:
                source = self.definition.templates[template]
                self.found.add(
                    Diagnostic(
                        "KG1007",
                        f"the setting `{path}` ends up in no object",
                        place_in(source, line, path),
                        "write it out as it is: no filter can change what is known only when it is deployed",
                    )
                )

    def _part(self, role: str, document: Document, lines: LineMap) -> Part | None:
        def place(path: SpecPath) -> Mark:
            here: Any = document.data
            for step in path:
                here = here.get(step) if isinstance(here, dict) else None
            return lines.place(document.mark(path, key=isinstance(here, dict | list)))

        def wrong(message: str, path: SpecPath, hint: str = "") -> None:
            text, advice = shown_tokens(message, self.run), shown_tokens(hint, self.run)
            self.found.add(Diagnostic("KG1006", text, place(path), advice))

        data = document.data
        if not isinstance(data, dict):
            wrong(
                "this is no Kubernetes object", (), "an object has `apiVersion`, `kind` and `metadata.name`"
            )
            return None
        try:
            body: Any = self._tree(data, document, ())
        except _Wrong as error:
            wrong(str(error), error.path, error.hint)
            return None
        for key in ("apiVersion", "kind"):
            if not isinstance(body.get(key), str):
                near = did_you_mean(key, body)
                wrong(
                    f"the object has no `{key}`" if key not in body else f"`{key}` must be a text",
                    (key,),
                    near,
                )
                return None
        metadata = body.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            wrong(
                f"the {body['kind']} has no `metadata.name`",
                ("metadata",),
                "for example `name: {{ release }}`",
            )
            return None
        for key in ("labels", "annotations"):
            if not isinstance(metadata.get(key, {}), dict):
                wrong(f"`metadata.{key}` must be a mapping", ("metadata", key))
                return None
        name = metadata["name"]
        if not isinstance(name, Expr):
            wrong(
                f"the name `{name}` is the same for every release of the chart, so two would get into each other's way",
                ("metadata", "name"),
                "derive it: `{{ release }}` or `{{ release }}-SUFFIX`",
            )
        if name == RUN and not isinstance(body.get("spec"), dict):
            wrong("`{{ run }}` needs an object with a `spec`", ("metadata", "name"))
            return None
        if isinstance(name, Expr) and name is not RUN:
            shown = plain(name, self.block.metadata.name, self.namespace)
            if not isinstance(shown, str):
                wrong("`metadata.name` must be a text", ("metadata", "name"))
                return None
        namespace = metadata.get("namespace")
        if isinstance(namespace, str) and namespace == self.namespace:
            metadata["namespace"] = Namespace()
        return Part(role, body, place)

    def _tree(self, node: Any, document: Document, path: SpecPath) -> Tree:
        """The document's data with values and expressions in place of tokens."""
        if isinstance(node, dict):
            result: dict[str, Tree] = {}
            for key, value in node.items():
                name = self._key(key, (*path, key))
                if name in result:
                    raise _Wrong(f"the key `{name}` is there twice", (*path, key))
                result[name] = self._tree(value, document, (*path, key))
            return result
        if isinstance(node, list):
            return [self._tree(value, document, (*path, index)) for index, value in enumerate(node)]
        if isinstance(node, str):
            found: Tree = self._text(node, document, path)
            return found
        if node is None:
            raise _Wrong(
                f"`{dotted(path)}` has no value", path, "give it one, or leave the line out with `{% if %}`"
            )
        return node  # type: ignore[no-any-return]

    def _key(self, key: str, path: SpecPath) -> str:
        name = self._joined(key, path)
        if isinstance(name, Expr):
            raise _Wrong("a key cannot be what is known only when it is deployed", path)
        return name

    def _text(self, text: str, document: Document, path: SpecPath) -> Any:
        if self.run.nonce not in text.lower():
            return text
        alone = self.tokens.fullmatch(text)
        if alone and path == ("metadata", "name") and self.run.values[int(alone[1])] is RUN:
            return RUN
        if alone:
            mark = document.mark(path)
            if mark.text[mark.column - 1 : mark.column] not in {'"', "'", "|", ">"}:
                value: Tree = self._value(self.run.values[int(alone[1])], path)
                if isinstance(value, Expr) and value == RUN:
                    raise _Wrong("`run` is the name of an object, whole, and nothing else", path)
                return value
        return self._joined(text, path)

    def _value(self, value: Any, path: SpecPath) -> Tree:
        """What an expression stands for."""
        if isinstance(value, Placeholder):
            return self._value(self.run.values[int(self.tokens.fullmatch(value.token)[1])], path)  # type: ignore[index]
        if isinstance(value, Setting):
            self.used.add(value.path)
            return value
        if isinstance(value, Expr | bool | int | float):
            return value
        if isinstance(value, str):
            return self._joined(str(value), path)
        if isinstance(value, Mapping):
            return {self._key(str(key), path): self._value(item, path) for key, item in value.items()}
        if isinstance(value, Sequence | range) or type(value).__name__ in {"dict_keys", "dict_values"}:
            return [self._value(item, path) for item in value]
        raise _Wrong(
            "an expression gives no value" if value is None else "an expression gives what is no plain data",
            path,
        )

    def _joined(self, text: str, path: SpecPath) -> str | Expr:
        """A text with what its tokens stand for."""
        parts: list[str | Expr] = []
        last = 0
        for match in self.tokens.finditer(text):
            parts.append(text[last : match.start()])
            last = match.end()
            value = self._value(self.run.values[int(match[1])], path)
            if value == RUN:
                raise _Wrong("`run` is the name of an object, whole, and nothing else", path)
            if isinstance(value, Setting):
                parts.append(value if value.schema.get("type") == "string" else Text(value))
            elif isinstance(value, Expr | str):
                parts.append(value)
            elif isinstance(value, dict | list):
                parts.append(self._json(value, path))
            else:
                parts.append(json.dumps(value))
        parts.append(text[last:])
        if any(isinstance(part, str) and self.run.nonce in part.lower() for part in parts):
            raise _Wrong(
                "a filter changed what is known only when it is deployed",
                path,
                "write it out as it is",
            )
        return joined(parts)

    def _json(self, value: Any, path: SpecPath) -> str:
        try:
            return json.dumps(value, ensure_ascii=False)
        except TypeError:
            raise _Wrong("a mapping or list within text cannot hold a setting", path) from None


class _Wrong(Exception):
    """A part of an output that can be no part of an object."""

    def __init__(self, message: str, path: SpecPath, hint: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.hint = hint
