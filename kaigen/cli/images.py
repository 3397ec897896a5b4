"""`kaigen images`: build kaigen's own images, and check those that a repository uses."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from kaigen import __version__
from kaigen.cli.console import Console, table
from kaigen.cli.limits import apply_limits
from kaigen.cli.main import output_options
from kaigen.cli.options import environment_option, read_configs, require_repository
from kaigen.diff.formatting import size_text
from kaigen.environments.combined import for_each
from kaigen.images.build import Built, Order, build_images
from kaigen.images.builders import BUILDERS, Builder, find_builder
from kaigen.images.check import Answer, Used, check_images, images_used
from kaigen.images.recipes import TORCH, choose_recipes, find_recipes
from kaigen.kubernetes.images import is_image
from kaigen.oci.reference import Reference
from kaigen.pipeline.run import Run
from kaigen.scaffold.changes import write_changes
from kaigen.scaffold.image_settings import settings_of, with_images

Command = Callable[..., Any]
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path, resolve_path=True)
_PLATFORM = re.compile("linux/[a-z0-9]+(?:/v[0-9]+)?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_output = click.option("--output", "-o", type=click.Choice(["text", "json"]), default="text", help="Output format.")


@click.group("images")
def command() -> None:
    """Build kaigen's images, and check those that a repository uses."""


@command.command("list")
@environment_option("all")
@_output
@click.pass_obj
def list_images(console: Console, /, environment: str, output: str) -> None:
    """List the images that the apps of a repository use.

    Those of `helm test` are among them. `kaigen mirror --list` also has their names before mirroring. No registry is
    asked.
    """
    images = _used(environment)
    if output == "json":
        console.write(json.dumps(to_builtins(images), indent=2) + "\n")
        return
    for line in table([("IMAGE", "APPS"), *((each.image, ", ".join(each.apps)) for each in images)]):
        console.out(line)


@command.command("check")
@environment_option("all")
@click.option("--plain-http", is_flag=True, help="Connect to remote registries without TLS.")
@_output
@click.pass_obj
def check(console: Console, /, environment: str, plain_http: bool, output: str) -> None:
    """Ask registries for the images that the apps of a repository use.

    Prints a line for each image. Exits with 1 if a registry does not have one, and with 3 if it does not answer or
    requires a login. Credentials are those of `docker login` on this machine, not those of the nodes.
    """
    answers = check_images(_used(environment), plain_http=plain_http)
    if output == "json":
        console.write(json.dumps(to_builtins(answers), indent=2) + "\n")
    else:
        for line in table([("STATE", "IMAGE", "DETAIL"), *map(_row, answers)]):
            console.out(line)
    states = {answer.state for answer in answers}
    missing = sum(answer.state in ("missing", "invalid") for answer in answers)
    if missing:
        console.say(f"{missing} of {len(answers)} images are missing; `kaigen images push` builds kaigen's own")
        raise click.exceptions.Exit(1)
    if states - {"found"}:
        raise click.exceptions.Exit(3)


def _row(answer: Answer) -> tuple[str, str, str]:
    return answer.state, answer.image, answer.detail or answer.digest


def _used(environment: str) -> list[Used]:
    configs = read_configs(environment)
    require_repository(configs[0])
    with apply_limits():  # Builds take long, so the command as a whole has none.
        apps = for_each(configs, lambda config: Run.load((), config, use_cache=False).apps())
        return images_used(item for each in apps for item in each)


def _registry(_context: click.Context, _option: click.Parameter, value: str) -> str:
    name = value.removesuffix("/")
    if name and ("/" not in name or not is_image(f"{name}/a:1")):
        raise click.BadParameter(f"`{value}` is not a registry with a prefix, such as registry.example.com/kaigen")
    return name


def _tag(_context: click.Context, _option: click.Parameter, value: str) -> str:
    if not _TAG.fullmatch(value):
        raise click.BadParameter(f"`{value}` is not a tag of an image")
    return value


def _base(_context: click.Context, _option: click.Parameter, value: str) -> str:
    if value and not is_image(value):
        raise click.BadParameter(f"`{value}` is not the reference of an image")
    return value


def _platforms(_context: click.Context, _option: click.Parameter, values: Sequence[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for value in values for part in value.split(",") if part.strip()))
    for each in found:
        if not _PLATFORM.fullmatch(each):
            raise click.BadParameter(f"`{each}` is not a platform such as linux/amd64")
    return found


def _secret(_context: click.Context, _option: click.Parameter, value: Path | None) -> Path | None:
    if value is not None and "," in str(value):
        raise click.BadParameter("the path has a comma, which separates the options of a secret")
    return value


def _build_options(function: Command) -> Command:
    """What both commands that build take."""
    options = [
        click.argument("names", nargs=-1, metavar="[IMAGE]...", type=click.Choice(list(find_recipes()))),
        click.option(
            "--tag", default=__version__, show_default=True, callback=_tag, metavar="TAG", help="Tag of the images."
        ),
        click.option(
            "--base",
            default="",
            callback=_base,
            metavar="IMAGE",
            help="Image with Python 3.13 that they start from, such as a copy in your registry. Default: that of the "
            "Dockerfiles, by digest.",
        ),
        click.option(
            "--platform",
            "platforms",
            multiple=True,
            callback=_platforms,
            metavar="OS/ARCH",
            help="Platform, such as linux/arm64; several are separated by commas. Default: that of this machine.",
        ),
        click.option(
            "--torch",
            default="",
            callback=_base,
            metavar="IMAGE",
            help="Image of PyTorch that they start from, which was built before. Default: it is built with them.",
        ),
        click.option(
            "--torch-lock",
            type=_FILE,
            callback=_secret,
            metavar="FILE",
            help="Lock file with hashes of another build of PyTorch, such as one for CPUs. Default: that of the Python "
            "index, which brings CUDA.",
        ),
        click.option("--with-torch", is_flag=True, help="The image of notebooks also has PyTorch and transformers."),
        click.option(
            "--pip-conf",
            type=_FILE,
            callback=_secret,
            metavar="FILE",
            help="Configuration of pip, such as the address of your package index with its login. No layer has it.",
        ),
        click.option(
            "--ca-certificate",
            type=_FILE,
            callback=_secret,
            metavar="FILE",
            help="Certificates in PEM that the builds trust, such as that of a TLS proxy. No layer has them.",
        ),
        click.option(
            "--builder",
            type=click.Choice(BUILDERS),
            default=None,
            help="Program that builds. Default: the first one that works.",
        ),
        _output,
    ]
    for option in reversed(options):
        function = option(function)
    return function


@command.command("build")
@_build_options
@click.option(
    "--registry",
    default="",
    callback=_registry,
    metavar="REGISTRY/PREFIX",
    help="Start of the images' names. Default: none, as in kaigen-downloader.",
)
@click.pass_obj
def build(console: Console, /, names: tuple[str, ...], builder: str | None, output: str, **options: Any) -> None:
    """Build kaigen's images on this machine.

    IMAGE names the images; the default is all of them. Uses docker with buildx, podman or buildah. Proxies are those
    of the environment variables, and in no layer.
    """
    order = _order(plain_http=False, **options)
    built = _build(console, names, order, builder, push=False)
    if output == "json":
        console.write(json.dumps(to_builtins(built), indent=2) + "\n")


@command.command("push")
@_build_options
@click.option(
    "--registry", required=True, callback=_registry, metavar="REGISTRY/PREFIX", help="Start of the images' names."
)
@click.option("--plain-http", is_flag=True, help="Connect to a remote registry without TLS.")
@click.option(
    "--write",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the images with their digests into `images` of this file, such as kaigen.yaml.",
)
@click.pass_obj
def push(
    console: Console,
    /,
    names: tuple[str, ...],
    builder: str | None,
    plain_http: bool,
    file: Path | None,
    output: str,
    **options: Any,
) -> None:
    """Build kaigen's images, and push them to a registry.

    As `kaigen images build`. A bill of materials and the provenance are attached to each image, and the block `images`
    for kaigen.yaml is printed. Log in with `docker login` or `podman login`.
    """
    loopback = Reference(options["registry"].partition("/")[0], "a").is_loopback
    order = _order(plain_http=plain_http or loopback, **options)
    built = _build(console, names, order, builder, push=True)
    settings = settings_of(built)
    if file is not None and settings:
        write_changes([with_images(file, settings)])
    if output == "json":
        console.write(json.dumps(to_builtins(built), indent=2) + "\n")
    elif settings:
        console.out("images:")
        for name, reference in settings.items():
            console.out(f"  {name}: {reference}")
    if file is not None and settings:
        console.say(f"wrote them to {file}; run `kaigen render`, and review the change")
    elif settings and output == "text":
        console.say("add this block to kaigen.yaml, or run with --write kaigen.yaml")


def _order(
    registry: str,
    tag: str,
    base: str,
    torch: str,
    torch_lock: Path | None,
    platforms: tuple[str, ...],
    with_torch: bool,
    pip_conf: Path | None,
    ca_certificate: Path | None,
    *,
    plain_http: bool,
) -> Order:
    files = {"pip.conf": pip_conf, "ca.crt": ca_certificate}
    secrets = {name: path for name, path in files.items() if path is not None}
    return Order(registry, tag, base, torch, platforms, secrets, with_torch, plain_http, torch_lock)


def _build(console: Console, names: Sequence[str], order: Order, builder: str | None, *, push: bool) -> list[Built]:
    needs_torch = order.notebook_torch and "notebook" in names and not order.torch
    recipes = choose_recipes([*names, *([TORCH] if needs_torch else [])], has_torch=bool(order.torch))
    program = find_builder(builder or "")
    client = Builder(program, lambda line: console.say(line, level=1), plain_http=order.plain_http)
    console.say(f"building {len(recipes)} images with {program}: {', '.join(recipe.name for recipe in recipes)}")
    built = []
    for item in build_images(recipes, order, client, push=push):
        built.append(item)
        size = f", {size_text(item.bytes)}" if item.bytes is not None else ""
        console.say(f"{len(built)} of {len(recipes)}: {item.reference} ({item.seconds:.0f} s{size})")
    return built


for each in (list_images, check, build, push):
    each.params += [
        option for option in output_options() if option.name not in {parameter.name for parameter in each.params}
    ]
