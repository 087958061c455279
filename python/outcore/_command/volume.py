"""The command line of volumes: `outcore volume create | info | add | remove | rebalance | check`."""

from __future__ import annotations

import sys

import click

from outcore import _core
from outcore._base.sizes import format_size
from outcore._base.types import JSONObject
from outcore._command.shared import errors_in_one_line, json_option, main, parsed_size, show

_home = click.argument("home", type=click.Path(file_okay=False))
_find = click.option(
    "--find", multiple=True, type=click.Path(file_okay=False), metavar="DIR", help="Look for lost disks there, too."
)
_weight = click.option(
    "--weight", type=click.IntRange(0, 1000), default=1, show_default=True, help="Share of the blocks."
)


@main.group()
def volume() -> None:
    """Volumes: one logical file over several directories, which are on several disks."""


@volume.command()
@_home
@click.argument("directories", type=click.Path(file_okay=False), nargs=-1, required=True, metavar="DIR[=WEIGHT]...")
@click.option(
    "--layout", type=click.Choice(["striped", "rotated", "hashed"]), default="rotated", show_default=True,
    help="The order of the disks within a round of blocks.",
)  # fmt: skip
@click.option(
    "--block", metavar="SIZE", callback=parsed_size, default="1MiB", show_default=True, help="Bytes of a block."
)
@json_option
@errors_in_one_line
def create(home: str, directories: tuple[str, ...], layout: str, block: int, as_json: bool) -> None:
    """Makes HOME a volume: what is written below it lies in blocks in the directories, by their weights."""
    _core.volume_create(home, [_weighed(text) for text in directories], layout, block)
    _tell(home, (), as_json)


def _weighed(text: str) -> tuple[str, int]:
    path, equals, weight = text.rpartition("=")
    if not equals or not weight.isdecimal():
        return text, 1
    if int(weight) > 1000:
        raise click.BadParameter(f"{text!r}: weights go up to 1000")
    return path, int(weight)


@volume.command()
@_home
@_find
@click.option("--write", is_flag=True, help="Write down where the disks are now.")
@json_option
@errors_in_one_line
def info(home: str, find: tuple[str, ...], write: bool, as_json: bool) -> None:
    """The disks of the volume HOME: where they are, what they hold, what is free."""
    if write:
        _core.volume_record_places(home, list(find))
    _tell(home, find, as_json)


def _tell(home: str, find: tuple[str, ...], as_json: bool) -> None:
    content = _core.volume_info(home, list(find))
    block = format_size(content["block_bytes"])
    lines = [f"{content['home']}: volume {content['id']}, {content['layout']}, blocks of {block}"]
    members: list[JSONObject] = content["members"]
    total = sum(member["bytes"] for member in members)
    for member in members:
        share = f"{member['bytes'] / total:.1%}" if total else "-"
        missing = f"MISSING: {member['reason'] or 'mount it, or name where it is with `info --find DIR --write`'}"
        where = f"{format_size(member['free_bytes'])} free" if member["found"] else missing
        moved = f", was {member['recorded']}" if member["recorded"] else ""
        size = format_size(member["bytes"])
        lines.append(f"  {member['path']}: weight {member['weight']}, {size} ({share}), {where}{moved}  {member['id']}")
    show(content, as_json, "\n".join(lines))


@volume.command()
@_home
@click.argument("directory", type=click.Path(file_okay=False))
@_weight
@json_option
@errors_in_one_line
def add(home: str, directory: str, weight: int, as_json: bool) -> None:
    """Adds DIRECTORY to the volume HOME. New files use it; `rebalance` lays out those that are there."""
    _core.volume_add(home, directory, weight)
    _tell(home, (), as_json)


@volume.command()
@_home
@click.argument("disk", metavar="DISK")
@json_option
@errors_in_one_line
def remove(home: str, disk: str, as_json: bool) -> None:
    """Takes DISK, a directory or an identifier, out of the volume HOME. It may be gone.

    No file may be laid out on it: `rebalance --weight DISK=0` empties it.
    """
    _core.volume_remove(home, disk)
    _tell(home, (), as_json)


@volume.command()
@_home
@_find
@click.option("--weight", "weights", multiple=True, metavar="DISK=WEIGHT", help="Another weight; 0 empties a disk.")
@json_option
@errors_in_one_line
def rebalance(home: str, find: tuple[str, ...], weights: tuple[str, ...], as_json: bool) -> None:
    """Lays out the files of HOME that lie as they did before its disks or weights changed.

    Killed or stopped, it goes on where it was. Files that are written to meanwhile stay as they lie.
    """
    if find:
        _core.volume_record_places(home, list(find))
    if weights:
        changes = [_weighed(text) for text in weights]
        if any("=" not in text for text in weights):
            raise click.BadParameter("a change is DISK=WEIGHT", param_hint="--weight")
        _core.volume_set_weights(home, changes)
    done = _core.volume_rebalance(home)
    unmoved = f", {done['left']} left as they are" if done["left"] else ""
    show(done, as_json, f"{home}: {done['files']} files, {format_size(done['bytes'])} moved{unmoved}")


@volume.command()
@_home
@click.option(
    "--repair", is_flag=True, help="Remove parts that belong to no file; adopt names that were restored from a copy."
)
@json_option
@errors_in_one_line
def check(home: str, repair: bool, as_json: bool) -> None:
    """Looks whether every file of HOME has its parts, and every part its file.

    Status 1 where a file is damaged or a disk is missing.
    """
    report = _core.volume_check(home, repair)
    removed = "left over by processes that died; --repair removes them"
    if repair:
        removed = "removed" if report["repaired"] else "kept, as some of the damaged files may be theirs"
    lines = [f"{home}: {report['files']} files, {format_size(report['bytes'])}"]
    if report["older"]:
        lines.append(
            f"  {report['older']} lie as before a change of disks or weights; `outcore volume rebalance` moves them"
        )
    if report["orphans"]:
        lines.append(f"  {report['orphans']} parts without a file, {format_size(report['orphan_bytes'])}, {removed}")
    if report["adopted"]:
        lines.append(f"  {report['adopted']} copied names are those of their files now")
    lines += [f"  damaged: {path}: {reason}" for path, reason in report["damaged"]]
    show(report, as_json, "\n".join(lines))
    if report["damaged"]:
        sys.exit(1)
