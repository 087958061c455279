"""`append` to files and `region`: arrays that are stored grow, or are written in parts."""

from __future__ import annotations

import os
from typing import SupportsIndex, overload

from outcore import _core
from outcore._base.types import PathLike
from outcore._base.urls import refuse_url
from outcore._lazy.array import Array
from outcore._lazy.hooks import functions
from outcore._lazy.indexing import Index
from outcore._lazy.node import Operand
from outcore._lazy.typed import Item
from outcore._run.foresight import for_all
from outcore._run.group_files import consolidated_apart
from outcore._run.kept import NamedOutput, noting
from outcore._run.parts import Region, append_update
from outcore._run.running import plan_and_run
from outcore._session.record import Outcome
from outcore._session.session import current


def _append_stored(path: PathLike, array: Item, axis: SupportsIndex | str | None, progress: bool | None) -> Outcome:
    """`append` to a stored array. Raises what that says."""
    name = os.fsdecode(path)

    def make() -> tuple[list[_core.Expr], list[_core.Target | None]]:
        update = append_update(name, array, axis)
        return [update.expr], [update.target]

    with consolidated_apart(name):
        exprs, targets = for_all(make, lambda: current().plan(*make()))
        return plan_and_run(exprs, targets, progress)[1]


@overload
def append(x: Operand, values: Operand, /, *, axis: int | None = None) -> Array: ...
@overload
def append(
    x: PathLike, values: Item, /, *, axis: SupportsIndex | str | None = None, progress: bool | None = None
) -> Outcome: ...
def append(
    x: Operand | PathLike,
    values: Item,
    /,
    *,
    axis: SupportsIndex | str | None = None,
    progress: bool | None = None,
) -> Array | Outcome:
    """`values` behind `x` along an axis, in one row for axis None; a stored array, which a path names, grows by them.

    Arrays give a lazy one, without I/O of its own. A path leads to a Zarr v3 array, which grows at once, along an axis
    that is a number or the name of one: all or nothing, and beside readers. The path leads to the old array until the
    new one is complete and durable, also when the process is killed. Chunks that stay are not copied: their files get a
    second name (a hard link), and those of the old array go at the end. But for its shape the document of the array
    stays as it is: attributes, names of axes, fill value. Values are the stored ones: attributes like `scale_factor`
    are not applied. `values` have the shape of the array but along `axis`, and are cast to its type. Arrays that were
    opened before tell to open them again. `store` writes to a `region` the same way.
    New chunks are encoded as the array's others are. A shard that changes is written whole, and must fit the memory
    limit.

    Raises for a path UnsupportedFormatError for other formats, for codecs that are not written, and for volumes;
    ShapeError, AxisError or ArgumentError where shapes or the axis do not fit; DTypeError for another kind of type;
    StorageError while another update of the array is under way, and on a file system without hard links;
    SourceChangedError when others wrote to the array meanwhile. I/O: reads the chunks at the end that are not full,
    writes these and the new ones; some `stat` calls and a link for each of its files.

    >>> import numpy as np, outcore as oc, tempfile
    >>> oc.append(np.asarray([1, 2]), 3).compute()
    array([1, 2, 3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     did = oc.store({f"{folder}/x.zarr": oc.arange(3)}, chunks={f"{folder}/x.zarr": (2,)})
    ...     did = oc.append(f"{folder}/x.zarr", np.array([7, 8]), axis=0)
    ...     oc.open(f"{folder}/x.zarr").compute()
    array([0, 1, 2, 7, 8])
    """
    if isinstance(x, (str, os.PathLike)):
        refuse_url(x, "append writes files, not objects")
        output = NamedOutput(x)
        with noting(lambda: [output.updated_note()]):
            return _append_stored(x, values, axis, progress)
    made: Array = functions.concat([x, values], axis=axis)
    return made


def region(path: PathLike, index: Index, /) -> Region:
    """A region of the array at a path, to be a target of `store`: slices of step 1 and integers, as `np.s_` makes them.

    The pair of both is the same; as a key of a mapping it needs Python 3.12, where slices have a hash. No I/O; `store`
    raises the errors.

    >>> import numpy as np, outcore as oc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     did = oc.store({f"{folder}/x.zarr": oc.zeros(4, dtype="int64")})
    ...     did = oc.store({oc.region(f"{folder}/x.zarr", np.s_[1:3]): np.array([7, 8])})
    ...     oc.open(f"{folder}/x.zarr").compute()
    array([0, 7, 8, 0])
    """
    refuse_url(path, "a region is written in files, not in objects")
    return Region(path, index)


__all__ = ["append", "region"]
