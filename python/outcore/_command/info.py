"""The command line `outcore info`: the content of a path, as lines or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import click

from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._command.described import Limits, described
from outcore._command.shared import errors_in_one_line, json_option, main, show

_TEXT_MAX = 72
_BYTES = ("nbytes", "stored_bytes", "stored_bytes_least")
_NAMES = {
    "nbytes": "values",
    "stored_bytes": "stored",
    "stored_bytes_least": "stored, at least",
    "chunk_files": "chunk files",
    "chunk_files_least": "chunk files, at least",
    "chunks_stored": "chunks stored",
    "row_groups": "row groups",
    "row_group_rows": "rows of each",
}
_MORE = "--depth, --members or outcore info on one of them tell more"


@main.command()
@click.argument("path", type=click.Path())
@click.option(
    "--depth", type=click.IntRange(0), default=3, show_default=True, help="Levels of groups whose members are listed."
)
@click.option(
    "--members",
    type=click.IntRange(0),
    default=50,
    show_default=True,
    help="Members, columns and attributes that are listed of each group, table and array.",
)
@json_option
@errors_in_one_line
def info(path: str, depth: int, members: int, as_json: bool) -> None:
    """Describes the array, group of arrays, table, sparse matrix or graph at PATH.

    Names of axes, attributes, element types, shapes, chunks, codecs or filters, and stored bytes beside those of
    values; of Parquet its row groups. Filters of HDF5 are told where h5py is installed. Metadata alone is read.
    """
    content = described(path, Limits(depth, members))
    lines = _of_group(content, path) if content["kind"] == "group" else _of_one(content)
    show(content, as_json, "\n".join(lines))


def _of_one(content: JSONObject) -> Iterator[str]:
    """A line for each property, then attributes and columns."""
    nested = ("attrs", "columns", "attrs_omitted", "columns_omitted")
    properties = {_NAMES.get(key, key): _shown(key, value) for key, value in content.items() if key not in nested}
    width = max(map(len, properties))
    for key, value in properties.items():
        yield f"{key:<{width}}  {value}"
    yield from _of_attributes(content, "  ")
    for name, column in content.get("columns", {}).items():
        details = [column["dtype"]]
        if "codecs" in column:
            sizes = f"{format_size(column['nbytes'])} encoded, {format_size(column['stored_bytes'])} stored"
            details += [*map(str.lower, column["codecs"]), sizes]
        yield f"  {name}: {', '.join(details)}"
    yield from _omission(content, "columns", "  ")


def _shown(key: str, value: object) -> str:
    if key in _BYTES and isinstance(value, int):
        return format_size(value)
    if key == "codecs" and isinstance(value, list):
        return ", ".join(map(_codec, value)) or "none"
    if key == "row_group_rows" and isinstance(value, list):
        least, most = value
        return f"{most:,}" if least == most else f"{least:,} to {most:,}"
    if key == "dims" and isinstance(value, list):
        return ", ".join(str(name or "-") for name in value)
    return " × ".join(map(str, value)) if isinstance(value, list) and value else str(value)


def _codec(codec: JSONObject | str) -> str:
    if isinstance(codec, str):
        return codec
    settings = codec.get("configuration")
    if codec.get("name") != "sharding_indexed" or not isinstance(settings, dict):
        return str(codec.get("name"))
    return f"shards of chunks with {', '.join(map(_codec, settings.get('codecs', [])))}"


def _of_group(content: JSONObject, name: str, margin: str = "") -> Iterator[str]:
    """A line for each member, its attributes below."""
    yield f"{margin}{name}/" if margin else f"{name}: {content['format']} group"
    below = margin + "    "
    yield from _of_attributes(content, below)
    for key, member in content["members"].items():
        if member["kind"] == "group":
            yield from _of_group(member, key, below)
        elif member["kind"] == "refused":
            yield f"{below}{key}: not read: {member['reason']}"
        else:
            yield f"{below}{key} {_of_member(member)}"
            yield from _of_attributes(member, below + "    ")
    yield from _omission(content, "members", below)


def _of_member(member: JSONObject) -> str:
    """An array of a group in one line."""
    names = member.get("dims") or [None] * len(member["shape"])
    axes = zip(names, member["shape"], strict=True)
    shape = ", ".join(f"{axis}: {length}" if axis else str(length) for axis, length in axes)
    parts = [f"({shape}) {member['dtype']}", format_size(member["nbytes"])]
    for key in ("chunks", "shards"):
        if member.get(key):
            parts.append(f"{key} {_shown(key, member[key])}")
    if member.get("codecs"):
        parts.append(_shown("codecs", member["codecs"]))
    for key in ("stored_bytes", "stored_bytes_least"):
        if key in member:
            parts.append(f"{_NAMES[key]} {format_size(member[key])}")
    return ", ".join(parts)


def _of_attributes(content: JSONObject, margin: str) -> Iterator[str]:
    attrs: Mapping[str, object] = content.get("attrs", {})
    for name, value in attrs.items():
        text = value if isinstance(value, str) else json.dumps(value)
        text = " ".join(text.split())
        if len(text) > _TEXT_MAX:
            text = f"{text[:_TEXT_MAX]}… ({len(text):,} characters)"
        yield f"{margin}@{name}: {text}"
    yield from _omission(content, "attrs", margin)


def _omission(content: JSONObject, key: str, margin: str) -> Iterator[str]:
    count = content.get(f"{key}_omitted")
    if count:
        kind = "attributes" if key == "attrs" else key
        yield f"{margin}… left out: {count:,} of {count + len(content[key]):,} {kind}; {_MORE}"


__all__ = ["info"]
