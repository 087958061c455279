"""Shared by the commands: the group they belong to, options, output as text or JSON, errors in one line."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import IO, Any, ParamSpec

import click

from outcore import _core
from outcore._base.sizes import parse_size
from outcore.errors import OutcoreError

Parameters = ParamSpec("Parameters")


def parsed_size(context: click.Context, parameter: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def show(content: object, as_json: bool, text: str) -> None:
    click.echo(json.dumps(content, indent=2, default=str) if as_json else text)


def errors_in_one_line(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Errors outcore raises on purpose end the command in one line with their code, or as JSON, with status 1."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **options: Parameters.kwargs) -> None:
        try:
            command(*args, **options)
        except KeyboardInterrupt as interrupt:
            for note in getattr(interrupt, "__notes__", ()):
                click.echo(f"outcore: {note.replace('resume=True', '--resume')}", err=True)
            raise
        except OutcoreError as error:
            if options.get("as_json"):
                content = {"code": error.code, "message": str(error), "details": error.details}
                click.echo(json.dumps({"error": content}, default=str))
            else:
                # Of what functions take the command has options.
                message = str(error).replace("overwrite=True", "--overwrite")
                click.echo(f"outcore: {message} [{error.code}]", err=True)
            sys.exit(1)

    return run


class _UsageError(click.ClickException):
    """A usage error as JSON."""

    exit_code = click.UsageError.exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(json.dumps({"error": {"code": "usage", "message": self.message, "details": {}}}))


class _Commands(click.Group):
    """Usage errors are JSON where `--json` asks for it, though they arise before options are read."""

    def invoke(self, context: click.Context) -> Any:
        as_json = "--json" in context.args
        try:
            return super().invoke(context)
        except click.UsageError as error:
            raise _UsageError(error.format_message()) if as_json else error from None


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
limit_option = click.option(
    "--memory-limit", metavar="SIZE", callback=parsed_size, help="Resident bytes of the whole process, such as 512MiB."
)


@click.group(cls=_Commands)
@click.version_option(_core.version(), prog_name="outcore")
def main() -> None:
    """NumPy-shaped arrays larger than memory, on one machine's disks."""


__all__ = ["errors_in_one_line", "json_option", "limit_option", "main", "parsed_size", "show"]
