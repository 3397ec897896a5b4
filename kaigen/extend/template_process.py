"""Check and render templates: what the process of templates does. Texts in, texts and values out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from types import TracebackType
from typing import Any

import msgspec
from jinja2.exceptions import SecurityError, TemplateNotFound, TemplateRuntimeError, TemplateSyntaxError, UndefinedError

from kaigen.diagnostics.suggest import did_you_mean
from kaigen.extend.child import Report
from kaigen.extend.sandbox import Sandbox, UndefinedName
from kaigen.extend.tokens import (
    FIRST_TOKENS,
    MAX_TEXT,
    LimitExceeded,
    Placeholder,
    Run,
    TemplateFailure,
    check_default,
    check_path,
    check_same,
)
from kaigen.extend.wire import (
    LIMIT,
    Failure,
    Output,
    Render,
    Rendered,
    SettingCall,
    TemplateRequest,
    decode,
    encode,
    plain,
    setting_value,
)

TOO_DEEP = "the template is nested too deep"


def prepare() -> None:
    """Load what rendering needs: encodings, and the modules that Jinja and Python import late."""
    texts = {"a.yaml.jinja": '{% for i in [2, 1]|sort %}{{ "\\n" }}{{ i|round }}{{ spec.missing }}{% endfor %}'}
    request = Render(msgspec.Raw(encode(texts)), tuple(texts), "", "nonce", {"spec": {}, "name": "", "kubernetes": ""})
    answer(encode(TemplateRequest(render=request)), lambda _: None)
    with suppress(ImportError):
        import_module("_pylong")  # divides large numbers since Python 3.12
    _environment.cache_clear()


def answer(request: bytes, report: Report) -> bytes:
    """Return the answer to a request.

    Args:
        request: an encoded `TemplateRequest`.
        report: receives the number of the template that is evaluated next.
    """
    wanted = decode(request, TemplateRequest)
    if wanted.check is not None:
        return encode(_check(wanted.check.templates, report))
    if wanted.locate is not None:
        known = _Templates(wanted.locate.templates)
        return encode(known.environment.get_template(wanted.locate.name).get_corresponding_lineno(wanted.locate.line))
    assert wanted.render is not None
    return encode(_Rendering(wanted.render).rendered(report))


def file_name(number: int) -> str:
    """Return the name of a template's code in tracebacks, by its number."""
    return f"template:{number}"


class _Templates:
    """The templates of a kind.

    Attributes:
        texts: by name.
        environment: compiles them.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._files = {name: file_name(number) for number, name in enumerate(texts)}
        self.environment = Sandbox(self._load)

    def _load(self, name: str) -> tuple[str, str] | None:
        return (self.texts[name], self._files[name]) if name in self.texts else None

    def failing_line(self, trace: TracebackType | None) -> tuple[str, int] | None:
        """Return the innermost template in a traceback, and its line."""
        names = {file: name for name, file in self._files.items()}
        innermost = None
        while trace is not None:
            file = trace.tb_frame.f_code.co_filename
            if file in names:
                innermost = (names[file], trace.tb_lineno)
            trace = trace.tb_next
        return innermost


@lru_cache(maxsize=16)
def _environment(signature: str, texts: bytes) -> _Templates:
    return _Templates(msgspec.msgpack.decode(texts))


def _check(texts: Mapping[str, str], report: Report) -> list[Failure]:
    """Return the syntax errors of templates."""
    environment = _Templates(texts).environment
    errors = []
    for number, (name, text) in enumerate(texts.items()):
        report(number)
        try:
            environment.compile(environment.parse(text, name, file_name(number)))
        except TemplateSyntaxError as error:
            errors.append(_syntax_error(name, error))
        except MemoryError as error:
            if not error.args:  # With a text it is Python's parser, which has a limit of depth.
                raise
            errors.append(_too_deep(name))
        except (RecursionError, SyntaxError, AssertionError):
            errors.append(_too_deep(name))
        except ValueError as error:
            errors.append(Failure(name, 1, f"the template cannot be read: {str(error)[:200]}", code="KG1004"))
    return errors


def _too_deep(name: str) -> Failure:
    return Failure(name, 1, TOO_DEEP, "split it into several templates", code="KG1004")


def _syntax_error(name: str, error: TemplateSyntaxError) -> Failure:
    message = str(error.message).rstrip(".")
    unknown = re.match(r"No (filter|test) named '([^']*)'", message)
    if unknown:
        kind, word = unknown.groups()
        environment = Sandbox(lambda _: None)
        known = environment.filters if kind == "filter" else environment.tests
        hint = did_you_mean(word, known) or f"{kind}s: " + ", ".join(f"`{each}`" for each in sorted(known))
        return Failure(name, error.lineno, f"unknown {kind} `{word}`", hint, word, "KG1004")
    found = re.search(r"'([^']+)'", message)
    text = message[0].lower() + message[1:].replace("'", "`")
    return Failure(name, error.lineno, f"Jinja2 syntax error: {text}", "", found[1] if found else "", "KG1004")


class _Rendering:
    """One rendering of a kind's templates."""

    def __init__(self, request: Render) -> None:
        self._request = request
        self._templates = _environment(request.signature, bytes(request.templates))
        self._run = Run(request.nonce, [None] * len(FIRST_TOKENS))
        self._settings: dict[str, tuple[Any, Placeholder]] = {}
        self._calls: list[SettingCall] = []
        self._names = self._all_names(request.names)

    def rendered(self, report: Report) -> Rendered:
        environment = self._templates.environment
        environment.run = self._run
        environment.forget_modules()
        outputs = []
        for number, name in enumerate(self._request.objects):
            report(number)
            self._calls = []
            output = self._output(name)
            outputs.append(msgspec.structs.replace(output, settings=tuple(self._calls)))
        return Rendered(tuple(outputs), tuple(self._run.values[len(FIRST_TOKENS) :]))

    def _all_names(self, given: Mapping[str, Any]) -> dict[str, Any]:
        tokens = {name: f"{self._run.nonce}{number}z" for number, name in enumerate(FIRST_TOKENS)}
        return {
            **given,
            "release": Placeholder(tokens["release"], "`release`"),
            "run": Placeholder(tokens["run"], "`run`"),
            "namespace": Placeholder(tokens["namespace"], "`namespace`"),
            "labels": {
                "app.kubernetes.io/name": Placeholder(tokens["appName"], "`labels`"),
                "app.kubernetes.io/instance": Placeholder(tokens["releaseName"], "`labels`"),
            },
            "setting": self._setting,
        }

    def _output(self, name: str) -> Output:
        try:
            return Output(name, self._generate(name))
        except TemplateSyntaxError as error:
            return Output(name, failure=_syntax_error(error.name or name, error))
        except Exception as error:
            failure = _failure(error, self._templates.texts)
            if failure is None:
                raise
            template, line = self._templates.failing_line(error.__traceback__) or (name, 1)
            code = LIMIT if isinstance(error, MemoryError) and not error.args else "KG1005"
            return Output(name, failure=Failure(template, line, failure.message, failure.hint, failure.word, code))

    def _generate(self, name: str) -> str:
        parts: list[str] = []
        length = 0
        for part in self._templates.environment.get_template(name).generate(**self._names):
            length += len(part)
            if length > MAX_TEXT:
                raise LimitExceeded(f"the template produced more than {MAX_TEXT:,} characters and was stopped")
            parts.append(part)
        return str.__str__("".join(parts))

    def _setting(
        self,
        path: object,
        default: Any = None,
        doc: str = "",
        *,
        schema: Any = None,
        _line: tuple[str, int] = ("", 0),
        _origin: Sequence[str | int] = (),
    ) -> Placeholder:
        """Return the placeholder of a value that can be overridden at deploy time."""
        name = check_path(path)
        value = check_default(name, default, self._run.nonce)
        text = " ".join(doc.split()) if doc else ""
        if schema and not isinstance(schema, Mapping):
            raise TemplateFailure(f"the schema of `{name}` must be a mapping")
        known = self._settings.get(name)
        if known is None:
            token = self._run.token(setting_value(name))
            known = self._settings[name] = (value, Placeholder(token, f"the setting `{name}`"))
            self._calls.append(
                SettingCall(
                    name,
                    plain(value),
                    str.__str__(text),
                    plain(schema) if schema else None,
                    *_line,
                    tuple(plain(step) for step in _origin),
                )
            )
        check_same(name, known[0], value)
        return known[1]


def _failure(error: Exception, templates: Mapping[str, str]) -> TemplateFailure | None:
    """Return what an exception means to the template's author; None for a bug of kaigen."""
    if isinstance(error, TemplateFailure):
        return error
    if isinstance(error, UndefinedName):
        return error.failure
    if isinstance(error, TemplateNotFound):
        missing = str(error.name)
        hint = did_you_mean(missing, templates) or "templates of this kind: " + ", ".join(
            f"`{name}`" for name in templates
        )
        return TemplateFailure(f"template `{missing}` not found", hint, missing)
    if isinstance(error, SecurityError | UndefinedError):
        return TemplateFailure(str(error).rstrip("."))
    if isinstance(error, MemoryError | SyntaxError):
        return TemplateFailure(TOO_DEEP)
    if isinstance(error, TemplateRuntimeError):
        return TemplateFailure(str(error).rstrip("."))
    if isinstance(error, RecursionError):
        return TemplateFailure("the template calls or includes itself endlessly")
    # OSError and ImportError: Python would load a module, and the process cannot open files.
    if isinstance(
        error, TypeError | ValueError | ArithmeticError | LookupError | AttributeError | OSError | ImportError
    ):
        return TemplateFailure(f"the template failed: {(str(error) or type(error).__name__)[:200]}")
    return None
