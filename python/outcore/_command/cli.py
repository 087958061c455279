"""The command line: `outcore info | convert | explain | demo | clean | sparse | graph | volume`, each with `--json`."""

from __future__ import annotations

import subprocess
import sys

import click

import outcore as oc
from outcore import _core, config
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._command import convert as _convert
from outcore._command import graph as _graph
from outcore._command import info as _info
from outcore._command import sparse as _sparse
from outcore._command import volume
from outcore._command.demo import demo as run_demo
from outcore._command.shared import errors_in_one_line, json_option, limit_option, main, parsed_size, show
from outcore.errors import ArgumentError, OutcoreError

# Imported for the commands that they add to `main`.
_ADDED = (_info, _convert, volume, _graph, _sparse)


@main.command()
@click.argument("expression")
@click.option("--array", "-a", "arrays", multiple=True, metavar="NAME=PATH", help="An array the expression may name.")
@limit_option
@json_option
@errors_in_one_line
def explain(expression: str, arrays: tuple[str, ...], memory_limit: int | None, as_json: bool) -> None:
    """The forecast of a Python EXPRESSION, such as "X @ X.T" with --array X=X.zarr. Nothing is run.

    All of outcore's functions may be used by name.
    """
    names: dict[str, object] = {name: getattr(oc, name) for name in vars(oc)["__all__"] if not name.startswith("_")}
    names |= {"oc": oc, "__builtins__": {}}
    for pair in arrays:
        name, equals, path = pair.partition("=")
        if not equals or not name.isidentifier():
            raise click.BadParameter(f"{pair!r} is not NAME=PATH", param_hint="--array")
        names[name] = oc.open(path)
    with config.set(memory_limit=memory_limit):
        try:
            value = eval(compile(expression, "<expression>", "eval"), names)
        except (SyntaxError, NameError, AttributeError) as error:
            raise click.BadParameter(f"{expression!r}: {error}", param_hint="EXPRESSION") from None
        except OutcoreError:
            raise
        except Exception as error:
            raise ArgumentError(f"{expression!r}: {' '.join(str(error).split())}") from None
        values = value if isinstance(value, tuple) else (value,)
        if not all(isinstance(part, oc.Array) for part in values):
            raise click.BadParameter(f"{expression!r} gives {type(value).__name__}, not an array")
        explanation = oc.explain(*values)
    show(explanation.to_dict(), as_json, str(explanation))


@main.command()
@click.option(
    "--size", metavar="SIZE", callback=parsed_size, default="2GiB", show_default=True, help="Bytes of the data matrix."
)
@click.option("--directory", type=click.Path(file_okay=False), default="data", show_default=True, help="Where to work.")
@click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=parsed_size,
    default="512MiB",
    show_default=True,
    help="Limit of each program.",
)
@click.option("--keep", is_flag=True, help="Leave data and results where they are.")
@json_option
@errors_in_one_line
def demo(size: int, directory: str, memory_limit: int, keep: bool, as_json: bool) -> None:
    """Two programs over a file larger than their memory: forecast, run under a real limit, checked against NumPy."""
    try:
        summary = run_demo(size=size, directory=directory, memory_limit=memory_limit, keep=keep, quiet=as_json)
    except subprocess.SubprocessError as error:
        sys.exit(f"outcore: {error}")
    verdict = "\nevery promise held" if not summary["faults"] else "\n" + "\n".join(summary["faults"])
    show(summary, as_json, verdict)
    if summary["faults"]:
        sys.exit(1)


@main.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False), required=False)
@click.option("--resumable", is_flag=True, help="Also remove what `store(..., resume=True)` could go on with.")
@json_option
@errors_in_one_line
def clean(directory: str | None, resumable: bool, as_json: bool) -> None:
    """Removes scratch that dead processes left in DIRECTORY; in every configured scratch directory unless given.

    Work that can be gone on with (`store(..., resume=True)`) is listed with its size and age, and stays unless
    --resumable is given. Outputs leave it in their own directory, stages of a computation in the first of scratch.
    Work over arrays in memory or functions of a process that has ended is lost, and goes too.
    """
    places = [directory] if directory else list(config.get("scratch"))
    content: dict[str, JSONObject] = {}
    lines = []
    for place in places:
        removed = dict(_core.clean(place))
        count, size = _core.remove_unfinished(place, lost_only=not resumable)
        removed["count"] += count
        removed["bytes"] += size
        summary = (
            f"scratch and unfinished outputs of ended processes: {removed['count']}, {format_size(removed['bytes'])}"
        )
        lines.append(f"{place}: removed {summary}")
        work = []
        for folder, target, size, age, busy in _core.unfinished(place):
            work.append({"folder": str(folder), "target": str(target), "bytes": size, "age_seconds": age, "busy": busy})
            state = ", at work" if busy else ""
            lines.append(
                f"  can be gone on with: store(…, resume=True) into {target}, {format_size(size)}, "
                f"{age / 3600:.1f} h old{state}"
            )
        content[place] = {**removed, "resumable": work}
    show(content, as_json, "\n".join(lines))


__all__ = ["main"]

if __name__ == "__main__":
    main()
