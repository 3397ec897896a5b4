"""The one settings object: each field is a flag and an environment variable."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NoReturn, TypeAlias, get_type_hints

from kaigen_chat import __version__
from kaigen_chat.errors import BadSettings
from kaigen_chat.keys import Keys, keys_in

PREFIX = "KAIGEN_CHAT_"
KEY_VARIABLE = "KAIGEN_CHAT_API_KEY"
DTYPES = ("auto", "float32", "bfloat16", "float16")
DEVICES = ("auto", "cpu", "cuda")
LOG_LEVELS = ("warning", "info", "debug")

Value: TypeAlias = "str | int | float | bool | Path | tuple[Adapter, ...] | None"

_SIZE = re.compile(r"(\d+)\s*(Ki|Mi|Gi|k|M|G)?")
_SIZES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def _word(text: str) -> str:
    if not text or not text.isprintable() or text != text.strip():
        raise ValueError("must not be empty, nor begin or end with a space")
    return text


def _path(text: str) -> Path:
    return Path(_word(text))


def _number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise ValueError(f"not a number from {least} to {most}: {text!r}")
        return int(text)

    return parse


def _choice(words: Sequence[str]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"not one of {', '.join(words)}: {text!r}")
        return text

    return parse


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"not a size in bytes: {text!r} (try 4Mi)")
    return int(match[1]) * _SIZES[match[2] or ""]


def _duration(text: str) -> float:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time span: {text!r} (try 90s, 10m or 2h)")
    return float(match[1]) * _SECONDS[match[2] or ""]


def _truth(text: str) -> bool:
    if text.lower() not in {"true", "false", "1", "0"}:
        raise ValueError(f"not true or false: {text!r}")
    return text.lower() in {"true", "1"}


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter to add to the model.

    Attributes:
        folder: its adapter_config.json and safetensors.
        strength: factor of its weights, from 0 to 1.
    """

    folder: Path
    strength: float


def _strength(text: str) -> float:
    try:
        strength = float(text)
    except ValueError:
        strength = -1.0
    if not 0 <= strength <= 1:
        raise ValueError(f"not a strength from 0 to 1: {text!r}")
    return strength


def _adapters(text: str) -> tuple[Adapter, ...]:
    found = []
    for each in text.split(","):
        folder, _, strength = each.partition("=")
        found.append(Adapter(_path(folder), _strength(strength) if strength else 1.0))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Option:
    """How a field is written on the command line and in the environment.

    Attributes:
        parse: from text; raises ValueError.
        metavar: what --help calls the value; empty for a flag without one.
        about: what it is for.
        shown: what --help says of the default, when the default itself is not informative.
    """

    parse: Callable[[str], Value]
    metavar: str
    about: str
    shown: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of the server. Flags have vLLM's names where they have the same meaning."""

    model: Annotated[Path, Option(_path, "DIR", "folder of the model: config.json, safetensors, tokenizer")]
    host: Annotated[str, Option(_word, "ADDRESS", "address to listen on")] = "0.0.0.0"
    port: Annotated[int, Option(_number(0, 65535), "PORT", "port to listen on; 0 takes a free one and says which")] = (
        8000
    )
    probe_port: Annotated[
        int | None,
        Option(
            _number(0, 65535),
            "PORT",
            "port for /health, /healthz and /readyz alone, whatever clients do at the other",
            "none",
        ),
    ] = None
    served_model_name: Annotated[
        str | None, Option(_word, "NAME", "what clients call the model", "the folder's name")
    ] = None
    max_model_len: Annotated[
        int | None,
        Option(_number(2, 1 << 24), "TOKENS", "most tokens of a prompt and its answer together", "the model's own"),
    ] = None
    max_num_seqs: Annotated[int, Option(_number(1, 1024), "ROWS", "most answers that are generated at once")] = 16
    max_cache_tokens: Annotated[
        int | None,
        Option(
            _number(2, 1 << 30),
            "TOKENS",
            "maximum tokens in the KV cache, including padding; limits memory",
            "rows × context",
        ),
    ] = None
    max_queue: Annotated[int, Option(_number(0, 100_000), "ROWS", "answers that may wait for a row; more get 429")] = 64
    max_body: Annotated[int, Option(_size, "BYTES", "largest body of a request; larger ones get 413", "4Mi")] = 4 << 20
    prefill_chunk: Annotated[
        int, Option(_number(16, 1 << 20), "TOKENS", "most prompt tokens between two tokens of running answers")
    ] = 1024
    dtype: Annotated[
        str,
        Option(
            _choice(DTYPES),
            "|".join(DTYPES),
            "numbers to compute with; auto is float32 on a CPU and the checkpoint's own on a GPU",
        ),
    ] = "auto"
    device: Annotated[str, Option(_choice(DEVICES), "|".join(DEVICES), "auto is the GPU if there is one")] = "auto"
    threads: Annotated[
        int | None, Option(_number(1, 1024), "N", "threads to compute with on a CPU", "the CPU limit of the container")
    ] = None
    chat_template: Annotated[
        Path | None, Option(_path, "FILE", "a Jinja chat template instead of the model's own", "the model's")
    ] = None
    api_key_file: Annotated[
        Path | None,
        Option(
            _path,
            "FILE",
            "keys, a line each, which may change; clients must send one",
            "none: open to all",
        ),
    ] = None
    merge_adapters: Annotated[
        tuple[Adapter, ...],
        Option(
            _adapters,
            "DIR[=STRENGTH],…",
            "LoRA adapters to add to the model, each times its strength from 0 to 1",
            "none",
        ),
    ] = ()
    trust_remote_code: Annotated[
        bool, Option(_truth, "", "run Python code that the model's folder brings", "refuse such a model")
    ] = False
    await_marker: Annotated[
        str | None,
        Option(
            _word,
            "IDENTITY",
            "wait until DIR/.kaigen/model.json says that DIR is complete; 'any' accepts every identity",
            "do not look",
        ),
    ] = None
    await_timeout: Annotated[float, Option(_duration, "TIME", "how long to wait for that", "2h")] = 7200.0
    drain_timeout: Annotated[
        float, Option(_duration, "TIME", "how long running answers may go on after SIGTERM", "5m")
    ] = 300.0
    log_level: Annotated[str, Option(_choice(LOG_LEVELS), "|".join(LOG_LEVELS), "how much to log")] = "info"


def options() -> dict[str, Option]:
    """The fields of Settings, and how each is written."""
    hints = get_type_hints(Settings, include_extras=True)
    return {field.name: hints[field.name].__metadata__[0] for field in dataclasses.fields(Settings)}


def flag(name: str) -> str:
    """`max_queue` → `--max-queue`."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """`max_queue` → `KAIGEN_CHAT_MAX_QUEUE`."""
    return PREFIX + name.upper()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSettings(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """The command line. Values stay text here: `read` parses them, from flags and from the environment."""
    top = _Parser(
        prog="kaigen-chat",
        description="Serves one model from a local folder with OpenAI's HTTP API, batching what clients ask.",
        epilog=(
            f"Each flag is also an environment variable: {variable('max_queue')} is {flag('max_queue')}. A flag wins. "
            f"API keys come from a file or from {KEY_VARIABLE}, never from the command line."
        ),
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=30, width=110),
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=__version__)
    defaults = {field.name: field.default for field in dataclasses.fields(Settings)}
    for name, option in options().items():
        shown = defaults[name] if option.shown is None else option.shown
        about = f"{option.about} ({'required' if shown is dataclasses.MISSING else shown})".replace("%", "%%")
        if option.parse is _truth:
            top.add_argument(flag(name), action="store_const", const="true", help=about)
        else:
            top.add_argument(flag(name), metavar=option.metavar, help=about)
    return top


def read(argv: Sequence[str], env: Mapping[str, str]) -> Settings:
    """The settings that a command line and an environment make.

    Args:
        argv: arguments without the program's name.
        env: the environment. An empty variable counts as none.

    Raises:
        BadSettings: a flag is unknown, or a value is not what its flag takes.
    """
    given = vars(parser().parse_args(argv))
    values: dict[str, Value] = {}
    for name, option in options().items():
        text, source = given[name], flag(name)
        if text is None:
            text, source = env.get(variable(name)) or None, variable(name)
        if text is None:
            continue
        try:
            values[name] = option.parse(text)
        except ValueError as error:
            raise BadSettings(f"{source}: {error}") from None
    if "model" not in values:
        raise BadSettings(f"which model? {flag('model')} DIR or {variable('model')}=DIR is missing")
    return Settings(**values)  # type: ignore[arg-type]


def read_keys(settings: Settings, env: Mapping[str, str]) -> Keys:
    """The valid API keys; none when the server requires none.

    Raises:
        BadSettings: the file cannot be read, or it contains no key. The message never contains what was read.
    """
    fixed, file = keys_in(env.get(KEY_VARIABLE, "")), settings.api_key_file
    if file is not None:
        try:
            found = keys_in(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise BadSettings(f"{flag('api_key_file')}: cannot read {file}: {reason}") from None
        if not fixed and not found:
            raise BadSettings(f"{flag('api_key_file')}: {file} contains no key")
    elif KEY_VARIABLE in env and not fixed:
        raise BadSettings(f"{KEY_VARIABLE} is set and empty: unset it to let everybody in")
    return Keys(fixed, file)
