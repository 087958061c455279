"""The command line `outcore convert`: arrays, groups and tables from one format to another, within the limit.

**Contract.** All that a command refuses is refused before work starts: a target that exists, members that are not read,
options that do not go with the source. The forecast is told first, the outcome after. The target is there whole or not
at all.
"""

from __future__ import annotations

import glob
import math
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import click

import outcore as oc
from outcore import config
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._command.described import REFUSALS, is_parquet, reason_of
from outcore._command.shared import errors_in_one_line, json_option, limit_option, main, show
from outcore.errors import ArgumentError, TargetExistsError, UnsupportedFormatError

_TEXT = (".csv", ".tsv", ".tab")
_PARQUET = (".parquet", ".pq")
# Endings of names that are no folder of columns.
_NO_FOLDER = (".npy", ".zarr", ".ocs", ".ocg", ".h5", ".hdf5", ".nc", ".npz", ".arrow", *_TEXT)


OutputItems: TypeAlias = "dict[str, Any]"  # an array or a group by its path


class Wishes(NamedTuple):
    """Options of the command line."""

    chunks: tuple[str, ...]
    compression: str | None
    dtype: str | None
    overwrite: bool
    skip: bool
    decode: bool
    resume: bool
    axis: str | None
    progress: bool | None
    as_json: bool


@main.command()
@click.argument("source", type=click.Path())
@click.argument("target", type=click.Path())
@click.option(
    "--chunks",
    multiple=True,
    metavar="[NAME=]LENGTHS",
    help="Chunk shape of a Zarr target, such as 1000,100; t2m=1,100,100 of an array of a group.",
)
@click.option(
    "--compression",
    metavar="NAME[:LEVEL][,…]",
    help="Codecs of a Zarr or HDF5 target, such as zstd, gzip:9, blosc or shuffle,gzip.",
)
@click.option("--dtype", help="Element type of the target; of arrays alone.")
@click.option("--overwrite", is_flag=True, help="Replace what is at TARGET.")
@click.option("--skip", is_flag=True, help="Leave out members and columns that outcore does not read.")
@click.option("--no-decode", "decode", flag_value=False, default=True, help="Keep numbers as stored (CF conventions).")
@click.option("--axis", help="Axis along which files are joined, where SOURCE has wildcards, such as time or 0.")
@click.option("--resume", is_flag=True, help="Go on where the same command was killed; of arrays alone.")
@click.option("--progress/--no-progress", default=None, help="Show progress; by default where stderr is a terminal.")
@limit_option
@json_option
@errors_in_one_line
def convert(source: str, target: str, memory_limit: int | None, **options: object) -> None:
    """Copies the content of SOURCE to TARGET, within the memory limit: TARGET is there whole or not at all.

    \b
    an array (.npy, Zarr, an HDF5 file's "a.h5/group/name")  to .npy, .zarr or "b.h5/name"
    a group (HDF5, NetCDF-4, Zarr)                           to .zarr, .h5 or .nc
    a table (.parquet, .csv, .tsv, .gz and .zst of text)     to .parquet or a folder of columns
    many files ("t2m_*.nc" --axis time)                      as one of them

    Names of axes, attributes and dates go along where the target keeps them. Sparse matrices: `outcore sparse convert`.
    """
    wishes = Wishes(**options)  # type: ignore[arg-type]
    with config.set(memory_limit=memory_limit):
        if _is_table(source):
            content, text = _table(source, target, wishes)
        else:
            opened = oc.open(source, decode=wishes.decode, axis=_axis(wishes.axis))
            if isinstance(opened, oc.Group):
                content, text = _group(opened, target, wishes)
            else:
                content, text = _array(opened, target, wishes)
    show({"target": target, **content}, wishes.as_json, text)


def _axis(text: str | None) -> int | str:
    """A number of an axis, or the name of one; axis 0 where none is named."""
    try:
        return int(text or 0)
    except ValueError:
        return str(text)


def _refuse(what: str, options: dict[str, object]) -> None:
    """Raises ArgumentError where an option is set that does not go with the source."""
    names = [name for name, value in options.items() if value]
    if names:
        raise ArgumentError(f"convert: {', '.join(names)} is not supported for {what}")


def _tell(text: str, wishes: Wishes) -> None:
    if not wishes.as_json:
        click.echo(f"forecast: {text}")


def _lengths(text: str) -> list[int]:
    try:
        return [int(length) for length in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of lengths such as 1000,100") from None


def _codecs(text: str | None) -> list[str | tuple[str, int]] | None:
    """The compression that `store` takes."""
    codecs: list[str | tuple[str, int]] = []
    for part in (text or "").split(",") if text else ():
        name, colon, level = part.partition(":")
        try:
            codecs.append((name, int(level)) if colon else name)
        except ValueError:
            raise click.BadParameter(f"{part!r} is not NAME or NAME:LEVEL", param_hint="--compression") from None
    return codecs or None


def _array(array: oc.Array, target: str, wishes: Wishes) -> tuple[JSONObject, str]:
    if len(wishes.chunks) > 1 or any("=" in text for text in wishes.chunks):
        raise click.BadParameter("an array has one chunk shape, without a name", param_hint="--chunks")
    array = array if wishes.dtype is None else array.astype(wishes.dtype)
    shapes = {target: _lengths(wishes.chunks[0])} if wishes.chunks else {}
    size = " × ".join(map(str, array.shape))
    return _stored({target: array}, shapes, f"{target}: {size} {array.dtype}", wishes)


def _stored(targets: OutputItems, shapes: JSONObject, text: str, wishes: Wishes) -> tuple[JSONObject, str]:
    """Stores arrays or a group: forecast, run, outcome."""
    target = next(iter(targets))
    if os.path.lexists(target) and not wishes.overwrite and not wishes.resume:
        raise _exists(target)
    forecast = _forecast(targets, bool(shapes), wishes)
    sizes = [format_size(forecast[key]) for key in ("bytes_read", "bytes_written")]
    about = "" if forecast["exact"] else "about "
    peak = f", peak {format_size(forecast['peak_bytes'])}" if "peak_bytes" in forecast else ""
    _tell(f"{about}{sizes[0]} to read, {sizes[1]} to write{peak}", wishes)
    outcome = oc.store(
        targets,
        overwrite=wishes.overwrite,
        chunks=shapes or None,
        compression=_codecs(wishes.compression),
        resume=wishes.resume,
        progress=wishes.progress,
    )
    read, written = format_size(outcome.bytes_read), format_size(outcome.bytes_written)
    done = f"{text}, {read} read, {written} written in {outcome.seconds:.1f} s"
    return {"forecast": forecast, **asdict(outcome)}, done


def _forecast(targets: OutputItems, has_shapes: bool, wishes: Wishes) -> JSONObject:
    """Bytes of the run, exact but where bytes of chunks that are asked for, or what is left of a run, are not known."""
    item = next(iter(targets.values()))
    if isinstance(item, (oc.Dates, oc.Text)):  # whose parts are planned one after the other while they are stored
        size = math.prod(item.shape) * item.dtype.itemsize
        return {"bytes_read": size, "bytes_written": size, "exact": False}
    codecs = _codecs(wishes.compression)
    plan = oc.explain(targets, overwrite=wishes.overwrite or wishes.resume, compression=codecs)
    return {
        "bytes_read": plan.bytes_read,
        "bytes_written": plan.bytes_written,
        "peak_bytes": plan.peak_bytes,
        "exact": not has_shapes and not wishes.resume and plan.exact,
    }


def _exists(target: str) -> TargetExistsError:
    return TargetExistsError(f"{target} exists; pass overwrite=True to replace it", {"path": target})


def _group(group: oc.Group, target: str, wishes: Wishes) -> tuple[JSONObject, str]:
    if target.endswith(".ocs"):
        raise UnsupportedFormatError(f"convert: a group is no matrix; outcore sparse convert makes {target} of AnnData")
    _refuse("groups; store their arrays one by one", {"--dtype": wishes.dtype, "--resume": wishes.resume})
    refused: dict[str, str] = {}
    arrays: list[str] = []
    whole = _readable(group, "", refused, arrays)
    _check_refused(group.name, "members", refused, wishes)
    shapes = {}
    for text in wishes.chunks:
        name, equals, lengths = text.rpartition("=")
        if not equals or name not in arrays:
            known = ", ".join(arrays[:10]) or "none"
            raise click.BadParameter(f"{text!r} is not NAME=LENGTHS; arrays are {known}", param_hint="--chunks")
        shapes[f"{target}/{name}"] = _lengths(lengths)
    content, done = _stored({target: whole}, shapes, f"{target}: {len(arrays)} arrays", wishes)
    return {"arrays": len(arrays), "skipped": refused, **content}, done


def _readable(group: oc.Group, path: str, refused: dict[str, str], arrays: list[str]) -> oc.Group:
    """The group without members that are not read, which are noted with their reason. I/O: metadata."""
    members: dict[str, object] = {}
    for name in group:
        place = f"{path}{name}"
        if name.startswith(".") or name.endswith((".npy", ".ocs")):
            refused[place] = "its name is none of an array or a group in Zarr"
            continue
        try:
            member = group[name]
        except REFUSALS as error:
            refused[place] = reason_of(error, f"{group.name}/{name}")
            continue
        if isinstance(member, oc.Text):
            refused[place] = f"text of {member.dtype}"
        elif isinstance(member, oc.Group):
            members[name] = _readable(member, f"{place}/", refused, arrays)
        else:
            members[name] = member
            arrays.append(place)
    return oc.group(members, attrs=group.attrs)


def _check_refused(source: str, kind: str, refused: dict[str, str], wishes: Wishes) -> None:
    """Raises UnsupportedFormatError with all names, or tells them where they are skipped."""
    named = "; ".join(f"{name} ({reason})" for name, reason in refused.items())
    if refused and not wishes.skip:
        raise UnsupportedFormatError(
            f"{source}: {kind} that are not read, and that --skip leaves out: {named}",
            {"path": source, kind: refused},
        )
    for name, reason in refused.items():
        click.echo(f"outcore: {name} is left out: {reason}", err=True)


def _is_text(source: str) -> bool:
    plain = source.lower().removesuffix(".gz").removesuffix(".zst")
    return plain.endswith(_TEXT)


def _is_table(source: str) -> bool:
    is_named = source.lower().endswith(_PARQUET) and not os.path.isdir(source)
    is_folder = os.path.exists(os.path.join(source, "table.json"))
    return is_named or is_folder or _is_text(source) or is_parquet(source)


def _table(source: str, target: str, wishes: Wishes) -> tuple[JSONObject, str]:
    further = {
        "--chunks": wishes.chunks,
        "--compression": wishes.compression,
        "--dtype": wishes.dtype,
        "--no-decode": not wishes.decode,
    }
    _refuse("tables", {**further, "--resume": wishes.resume, "--axis": wishes.axis})
    is_parquet_target = target.lower().endswith(_PARQUET)
    plain = target.lower().rstrip("/")
    if plain.endswith(_NO_FOLDER):
        raise UnsupportedFormatError(f"convert: a table goes to .parquet or to a folder of columns, not to {target}")
    if os.path.lexists(target) and not is_parquet_target and wishes.overwrite:
        raise ArgumentError(f"convert: {target} exists, and folders of columns are not replaced; remove it first")
    if os.path.lexists(target) and not wishes.overwrite:
        raise _exists(target)
    begin = time.perf_counter()
    forecast: JSONObject = {"file_bytes": _file_bytes(source)}
    if _is_text(source):
        _tell(f"{format_size(forecast['file_bytes'])} of text to read once", wishes)
        table = oc.read_csv(source, folder=None if is_parquet_target else target)
        refused: dict[str, str] = {}
        is_done = not is_parquet_target
    else:
        is_folder = os.path.isdir(source)
        table = oc.open_table(source) if is_folder else oc.read_parquet(source)
        table, refused = _readable_columns(table, source, wishes)
        forecast |= {"rows": len(table), "columns": len(table.columns)}
        rows = f"{len(table):,} rows of {len(table.columns)} columns"
        _tell(f"{rows}, {format_size(forecast['file_bytes'])} of files", wishes)
        is_done = False
    if not is_done and is_parquet_target:
        oc.to_parquet(table, target, overwrite=wishes.overwrite)
    elif not is_done:
        oc.from_arrow(table, path=target)
    seconds = time.perf_counter() - begin
    size = _file_bytes(target)
    content: JSONObject = {"rows": len(table), "columns": table.columns, "skipped": refused, "forecast": forecast}
    text = f"{target}: {len(table):,} rows of {len(table.columns)} columns, {format_size(size)} in {seconds:.1f} s"
    return {**content, "bytes": size, "seconds": seconds}, text


def _readable_columns(table: oc.Table, source: str, wishes: Wishes) -> tuple[oc.Table, dict[str, str]]:
    """The table without columns that are not read, and their reasons. Raises UnsupportedFormatError without --skip."""
    refused: dict[str, str] = {}
    for name in table.columns:
        try:
            table[name]
        except REFUSALS as error:
            refused[name] = reason_of(error, source)
    _check_refused(source, "columns", refused, wishes)
    return (table.select(*(name for name in table.columns if name not in refused)) if refused else table), refused


def _file_bytes(path: str) -> int:
    """Bytes of a file, of those that match a name with wildcards, or of those in a folder."""
    names = [path] if os.path.lexists(path) else glob.glob(path, recursive=True)
    files = [file for name in names for file in (Path(name).iterdir() if os.path.isdir(name) else [Path(name)])]
    return sum(file.stat().st_size for file in files if file.is_file())


__all__ = ["convert"]
