"""From lazy arrays to results: compute, store, persist, explain, visualize."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Never, TypeAlias, TypeVar, overload

from outcore import _core
from outcore._base.files import write_whole
from outcore._base.sizes import parse_size
from outcore._base.types import NDArray
from outcore._base.urls import refuse_url
from outcore._lazy.array import Array
from outcore._lazy.hooks import above, functions
from outcore._lazy.node import Operand, expr_dtype, node
from outcore._lazy.preview import borrowed
from outcore._lazy.typed import Item, Typed, carried, decoded
from outcore._lazy.variables import variables
from outcore._objects.mounting import StorageOptions
from outcore._run.chunk_shapes import (
    ChunkShapes,
    ShardShape,
    chunk_lengths,
    naming_shards,
    shapes_by_path,
    shard_layout,
    with_shards,
)
from outcore._run.codecs import Compression, by_target, codecs_of, codecs_text
from outcore._run.foresight import UnforeseenError, for_all
from outcore._run.group_files import as_zarr, is_group, staged_groups, store_groups, tell_groups_above
from outcore._run.hdf5_files import hdf5_place, planned_hdf5, store_hdf5
from outcore._run.kept import InterruptedOutputs, noting
from outcore._run.object_files import TargetLayout, has_urls, store_objects
from outcore._run.parts import PartUpdate, region_update
from outcore._run.running import plan_and_run
from outcore._run.typed_files import store_typed
from outcore._session import replaced
from outcore._session.record import Outcome
from outcore._session.session import current
from outcore._session.trace import points
from outcore._show.explanation import Explanation, renamed
from outcore._show.picture import Picture
from outcore._show.sweep import LimitSweep, default_limits, smallest_limit
from outcore.errors import (
    ArgumentError,
    OutcoreError,
    ShapeError,
    UnsupportedFormatError,
)

# A limit that no computation comes near.
_ROOMY, _MEBIBYTE = 1 << 50, 1 << 20
_ENDINGS = (".npy", ".zarr", ".ocs")
AnyPath: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"
Asked: TypeAlias = "tuple[list[_core.Expr], list[_core.Target | None]]"
Named = TypeVar("Named", bound="tuple[Any, ...]")
Targets: TypeAlias = "Mapping[Any, Item]"  # keys are paths, or paths and indices; mappings are invariant in their keys


def _targets(
    targets: Targets,
    overwrite: bool,
    chunks: ChunkShapes | None,
    resume: bool = False,
    compression: Compression = None,
) -> tuple[list[_core.Expr], list[_core.Target | None]]:
    if not isinstance(targets, Mapping):
        raise ShapeError(f"store: takes a mapping of paths to arrays, {{'y.zarr': y}}, not {type(targets).__name__}")
    asked = shapes_by_path(chunks)
    encoded_as = by_target(compression, (os.fsdecode(path) for path in targets if not isinstance(path, tuple)))
    _check_compression(targets, compression)
    planned: list[_core.Target | None] = []
    exprs: list[_core.Expr] = []
    for path, array in targets.items():
        if isinstance(path, tuple):
            update = _part(path, array, resume)
            if update is not None:
                exprs.append(update.expr)
                planned.append(update.target)
            continue
        refuse_url(path, "plans are for files; explain a path in scratch")
        name = os.fsdecode(path)
        if resume and isinstance(array, above.SparseMatrix):
            raise ArgumentError(f"store: resume=True, and {name} is a sparse matrix, which is written in one go")
        if isinstance(array, above.SparseMatrix) and not name.endswith(".ocs"):
            raise UnsupportedFormatError(
                f"store: {name} is a sparse matrix, and its name does not end in .ocs; outcore.sparse.to_npz, to_mtx "
                f"and their like write other formats"
            )
        if not name.rstrip("/.").endswith(_ENDINGS) and not _is_zarr(name):
            raise UnsupportedFormatError(
                f"{name}: outputs end in .npy or .zarr, sparse matrices in .ocs; an array in HDF5 or NetCDF-4 is named "
                f"a.h5/x, and outcore.to_parquet stores tables",
                {"path": name},
            )
        expr, shape = _planned(array), asked.pop(name, None)
        if expr is None:
            continue
        planned.append(_file_target(name, overwrite, resume, shape, encoded_as.get(name), expr))
        exprs.append(expr)
    if asked:
        raise ShapeError(f"store: chunks name {', '.join(map(repr, asked))}, which nothing is stored to")
    return exprs, planned


def _file_target(
    name: str,
    overwrite: bool,
    resume: bool,
    layout: Sequence[int] | None,
    compression: Compression,
    expr: _core.Expr,
) -> _core.Target:
    """The target of an array in a file or folder. Raises ShapeError, ArgumentError, UnsupportedFormatError."""
    shape, dtype = tuple(expr.shape), expr_dtype(expr)
    target: _core.Target = {"path": name, "overwrite": overwrite, "chunks": None, "resume": resume}
    codecs = codecs_text(compression, dtype)
    if codecs is not None and name.endswith(".npy"):
        raise UnsupportedFormatError(f"store: compression, and {name} has no codecs; .zarr and HDF5 have")
    if isinstance(layout, ShardShape):
        if name.endswith(".ocs"):
            raise ShapeError(f"store: shards for {name}, and a sparse matrix has none")
        target["chunks"], codecs = shard_layout(name, layout, shape, dtype.itemsize, codecs_of(compression, dtype))
    elif layout is not None:
        target["chunks"] = chunk_lengths(name, layout, shape)
    if codecs is not None:
        target["codecs"] = codecs
    return target


def _check_compression(targets: Targets, compression: Compression) -> None:
    """Raises ArgumentError for compression of what has codecs already, or none."""
    if compression is None:
        return
    for path, array in targets.items():
        if isinstance(path, tuple):
            raise ArgumentError(f"store: compression, and {path[0]} has its codecs already; regions keep them")
        if isinstance(array, above.SparseMatrix):
            raise ArgumentError(
                f"store: compression, and {os.fsdecode(path)} is a sparse matrix, which is packed as it is"
            )


def _part(path: tuple[Any, ...], array: Item, resume: bool) -> PartUpdate | None:
    """The update of a region; None where only a run can tell what it is."""
    if len(path) != 2:
        raise ArgumentError(f"store: a region is named by a path and an index, not by {path!r}")
    name = os.fsdecode(path[0])
    if resume:
        raise ArgumentError(f"store: resume=True, and a region of {name} is written in one go")
    try:
        return region_update(name, path[1], array)
    except UnforeseenError:
        return None


@overload
def compute(array: Item, /) -> NDArray: ...
@overload
def compute(named: Named, /) -> Named: ...
@overload
def compute(array: Item, second: Item, /) -> tuple[NDArray, NDArray]: ...
@overload
def compute(array: Item, second: Item, third: Item, /) -> tuple[NDArray, NDArray, NDArray]: ...
@overload
def compute(*arrays: Item) -> Any: ...  # one gives values, and how many a list holds is not known here
def compute(*arrays: Any) -> Any:
    """The values of lazy arrays as NumPy arrays: one gives an array, several a tuple, from one common program.

    A tuple with names, as `oc.linalg.svd` and `oc.stats.summary` give, keeps them.

    Shared parts are read and computed once. Results must fit the memory limit beside the work; raises MemoryLimitError
    before anything starts when they do not. I/O: as `explain(*arrays)` says.

    The session remembers small results, and values of arrays that you still hold and that this program computes on its
    way, where computing them again would read much more than they take: a later program that needs one starts from it.

    >>> import outcore as oc
    >>> x = oc.arange(4)
    >>> oc.compute(x.min(), x.max())
    (array(0), array(3))
    """
    if not arrays:
        return ()
    if len(arrays) == 1 and isinstance(arrays[0], tuple) and hasattr(arrays[0], "_fields"):
        named: Any = arrays[0]
        return named.compute() if hasattr(named, "compute") else type(named)._make(compute(*named))
    computed, _ = plan_and_run(*_asked(lambda: _in_memory(arrays)))
    results = tuple(decoded(array, value) for array, value in zip(arrays, computed, strict=True))
    return results[0] if len(arrays) == 1 else results


def _in_memory(arrays: Sequence[Item]) -> Asked:
    if any(isinstance(array, above.SparseMatrix) for array in arrays):
        raise ArgumentError(
            "compute: a sparse matrix is no array; outcore.store({'a.ocs': A}) or A.copy(path=) stores it, and "
            "A.to_scipy() is it in memory"
        )
    exprs = [expr for expr in map(_planned, arrays) if expr is not None]
    return exprs, [None] * len(exprs)


def _planned(array: Item) -> _core.Expr | None:
    """The node of an array, or of a sparse matrix that is stored; None where programs are planned without running and
    only a run can tell what it is."""
    try:
        if isinstance(array, above.SparseMatrix):
            made: _core.Expr = array._to_store()
            return made
        return node(carried(array))
    except UnforeseenError:
        return None


def _asked(ask: Callable[[], Asked]) -> Asked:
    """Nodes and targets; where a run is refused that counts for them, the refusal is for all."""
    return for_all(ask, lambda: current().plan(*ask()))


def store(
    targets: Targets,
    *arrays: Never,
    overwrite: bool = False,
    chunks: ChunkShapes | None = None,
    shards: ChunkShapes | None = None,
    compression: Compression = None,
    resume: bool = False,
    progress: bool | None = None,
    storage_options: StorageOptions | None = None,
) -> Outcome:
    """Writes lazy arrays to paths that end in `.npy` or `.zarr` (version 3), sparse matrices to `.ocs`, all from one
    common program; arrays and groups to HDF5 and NetCDF-4 files (`.h5`, `.hdf5`, `.nc`).

    Outputs are written beside their names and renamed when all are complete, synced and still as they were written:
    nothing half-done carries a name, and all outputs appear or none. Links are followed; what is replaced leaves its
    permissions to the new. An array made of a file that its own call replaces is read from its target from then on;
    other arrays of that file tell to open it again.
    `chunks` gives the Zarr chunk shape of a path; the planner chooses it otherwise. `shards` gives the shape of the
    files of a path, each of whole chunks with an index (`sharding_indexed`), for fewer files than chunks; chunks have
    1 MiB at most then unless they are chosen. A shard is written in one go and must fit the memory limit.
    `progress=None` shows a line only where someone watches.

    `compression` has the chunks of Zarr encoded, in many threads: "zstd", "gzip", "blosc" (zstd behind a shuffle), a
    pair of one and its level, `("zstd", 9)`, a codec in Zarr's notation or of zarr-python, or a list of those, which
    may have "shuffle" and "crc32c" as well; for all targets, or by path, where the path of a group stands for its
    members. How long chunks become is known when they are written: forecasts have bounds then, and the outcome counts.

    With `resume=True` a run that was killed, interrupted or out of room is gone on with by the same call, also under
    another memory limit, number of threads or policy. Tiles are recorded in a journal beside the output (folder
    `.outcore-resume-<name>`) when they are durable; the next call reads them, checks their checksums, and computes only
    what else is needed. Where the arrays or their files changed it begins anew, and warns. A call that finds its output
    complete, made by the same computation and not written to since, is done; an extended attribute of the output tells,
    where the file system keeps such. `outcore clean` lists what can be gone on with.

    A key may be a region of an existing Zarr v3 array, `oc.region("x.zarr", np.s_[100:200])`, to which values are
    broadcast; from Python 3.12 on a pair of a path and an index is one. As for `append`, the path leads to the old
    array until the new one is complete, only chunks around the region are read and written, and types, errors and I/O
    are the same; IndexingError for a region outside of the array, ArgumentError with `resume`.

    `s3://…/x.zarr` and `gs://…/x.zarr` take arrays and groups: Zarr is written in scratch, which needs room for it, and
    put into the store when it is complete, chunks first and `zarr.json` last. `storage_options` are as for `open`.
    Forecast and outcome count the bytes in scratch. A call that fails may leave chunks, which nothing tells of.

    Raises UnsupportedFormatError for another ending, ShapeError for chunks that do not go with their array,
    TargetExistsError without `overwrite`, MemoryLimitError, StorageError. I/O: as `explain(targets)` says.
    Returns what the run did.

    A `Group` goes to one `.zarr` folder, with its groups, all attributes and names of axes, which appears when all of
    it is there; axes without a name are called dim_0, dim_1 and so on, those of one length alike, so that xarray opens
    it; arrays do too, under a name in the folder of a group that is there. Groups cannot be resumed, and stand
    alone in their call. Dates become numbers since 1970 in Zarr, with attributes that say so (CF conventions), which
    `open` and xarray read as dates again; in `.npy` files, dates and text keep their type, and all else in their call
    goes to `.npy` as well: UnsupportedFormatError for other endings, ArgumentError with `resume`, which sparse matrices
    raise too.

    A key in HDF5 goes on behind the name of the file, `"a.h5/group/x"`, but for a group, which is all of a file; a file
    is written whole, through h5py, and stands alone in its call with others of its kind. Names of axes become dimension
    scales. Elements lie in one piece unless `chunks` or `compression` ask for chunks: 'gzip', also behind 'shuffle'.

    >>> import numpy as np, outcore as oc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     did = oc.store({f"{folder}/x.npy": oc.arange(3)})
    ...     np.load(f"{folder}/x.npy")
    array([0, 1, 2])
    """
    if arrays:
        known = [type(array).__name__ for array in (targets, *arrays)]
        raise ArgumentError(
            f"store: takes one mapping of paths to arrays, store({{'y.zarr': y}}), not {' and '.join(known)}"
        )
    outputs = InterruptedOutputs(targets, resumes=resume)
    with noting(outputs):
        if has_urls(targets):
            if resume:
                raise ArgumentError("store: resume=True, and what goes to a URL is written in one go")
            layout = TargetLayout(with_shards(chunks, shards), compression)
            return store_objects(store, targets, overwrite, layout, progress, storage_options, outputs.uploads)
        if storage_options is not None:
            raise ArgumentError("store: storage_options are for URLs")
        return _store_files(targets, overwrite, with_shards(chunks, shards), compression, resume, progress)


def _store_files(
    targets: Targets,
    overwrite: bool,
    chunks: ChunkShapes | None,
    compression: Compression,
    resume: bool,
    progress: bool | None,
) -> Outcome:
    """`store` to files and folders."""
    if isinstance(targets, Mapping) and any(hdf5_place(path) for path in targets):
        return store_hdf5(targets, overwrite, resume, chunks, compression, progress)
    if isinstance(targets, Mapping) and any(is_group(part) for part in targets.values()):
        return store_groups(store, targets, overwrite, resume, chunks, compression, progress)
    targets = _with_encoded(targets)
    if isinstance(targets, Mapping) and any(isinstance(array, Typed) for array in targets.values()):
        if compression is not None:
            raise ArgumentError("store: compression, and dates and text go to .npy, which has none; store to .zarr")
        outcome = store_typed(store, targets, overwrite, resume, chunks, progress)
    else:
        with naming_shards(chunks):
            asked = _asked(lambda: _targets(targets, overwrite, chunks, resume, compression))
            outcome = plan_and_run(*asked, progress)[1]
    if isinstance(targets, Mapping):
        tell_groups_above(os.fsdecode(path) for path in targets if not isinstance(path, tuple))
    if overwrite:
        _read_back(targets)
    return outcome


def _with_encoded(targets: Targets) -> Targets:
    """Arrays and dates that go to Zarr as Zarr has them: see `as_zarr`."""
    if not isinstance(targets, Mapping):
        return targets
    numbers: dict[Any, Item] = dict(targets)
    for path, array in targets.items():
        if isinstance(path, tuple) or not _is_zarr(os.fsdecode(path)):
            continue
        if isinstance(array, Array) or (isinstance(array, Typed) and array.dtype.kind in "mM"):
            numbers[path] = as_zarr(array)
    return numbers


def _is_zarr(name: str) -> bool:
    """Whether an array goes to Zarr by its name, or as a member of a group that is there."""
    if name.endswith((".npy", ".ocs")):
        return False
    is_member = any((above / "zarr.json").is_file() for above in Path(os.path.abspath(name)).parents)
    return name.rstrip("/").endswith(".zarr") or is_member


def _read_back(targets: Targets) -> None:
    """Has arrays whose own files were just replaced be read from where they were stored."""
    outputs = {os.fsdecode(path): array for path, array in targets.items() if not isinstance(path, tuple)}
    names = list(outputs)
    for name, array in outputs.items():
        if isinstance(array, above.SparseMatrix):
            continue
        expr = node(carried(array))
        if replaced.is_gone(expr, names):
            with suppress(OutcoreError):  # another process may have replaced it by now, which later reads will tell
                replaced.remember(expr, node(carried(functions.open(name))))


@overload
def persist(array: Operand, /, *, directory: AnyPath | None = None) -> Array: ...
@overload
def persist(array: Operand, second: Operand, /, *, directory: AnyPath | None = None) -> tuple[Array, Array]: ...
@overload
def persist(*arrays: Item, directory: AnyPath | None = None) -> Any: ...
def persist(*arrays: Item, directory: AnyPath | None = None) -> Any:
    """The same arrays with their values computed: in memory, or as Zarr arrays in `directory`, which stay yours.

    One argument gives an array, several a tuple. Values in memory must fit the memory limit. Raises MemoryLimitError
    where they do not; errors with `directory` as `store`. I/O: as `explain` says.

    >>> import outcore as oc
    >>> held = oc.persist(oc.arange(1000) ** 2)
    >>> held[:3].compute()
    array([0, 1, 4])
    """
    numbers = [carried(array) for array in arrays]
    if directory is None:
        values: Sequence[NDArray] = compute(*numbers) if len(arrays) != 1 else (compute(*numbers),)
        made = [Array(borrowed(value)) for value in values]
    else:
        refuse_url(directory, "persist writes files, not objects")
        paths = [Path(os.fsdecode(directory)) / f"persist-{os.urandom(16).hex()}.zarr" for _ in arrays]
        store(dict(zip(paths, numbers, strict=True)))
        made = [Array(_core.open(current()._core, str(path))) for path in paths]
    pairs = zip(arrays, made, strict=True)
    held = tuple(array._like(part) if isinstance(array, Typed) else part for array, part in pairs)
    return held[0] if len(arrays) == 1 else held


@contextmanager
def _planned_targets(
    arrays: tuple[Any, ...], overwrite: bool, chunks: ChunkShapes | None = None, compression: Compression = None
) -> Iterator[tuple[_core.Program, Callable[[Explanation], Explanation]]]:
    """The program of what `explain` takes, and what its forecast becomes for all that the call does."""
    session = current()
    session._core.settle_ahead()
    targets = arrays[0] if len(arrays) == 1 and isinstance(arrays[0], Mapping) else None
    if targets is None:
        if compression is not None or chunks is not None:
            raise ArgumentError(
                "explain: chunks, shards and compression go with a mapping of paths, as `store` takes it"
            )
        if any(isinstance(array, above.SparseMatrix) for array in arrays):
            raise ArgumentError(
                "explain: a sparse matrix is no array, so it is stored rather than computed: "
                "outcore.store({'a.ocs': A}) stores it, and outcore.explain({'a.ocs': A}) tells what that takes"
            )
        yield session.plan(*_asked(lambda: _in_memory(arrays))), lambda said: said
    elif any(hdf5_place(path) for path in targets):
        with planned_hdf5(targets, overwrite, chunks, compression) as (request, assembly):
            yield session.plan(*request), assembly.forecast
    elif any(is_group(part) for part in targets.values()):
        planned = staged_groups(targets, overwrite, chunks, compression, is_planned=True)
        with planned as (outputs, staged, shapes, codecs):
            names = {path: name for output in outputs for name, path in output.names.items()}
            program = session.plan(*_asked(lambda: _targets(staged, False, shapes, compression=codecs)))
            yield program, lambda said: said.followed_by("rename", [], 0, names)
    else:
        asked = _asked(lambda: _targets(targets, overwrite, chunks, compression=compression))
        yield session.plan(*asked), lambda said: said


def explain(
    *arrays: Item | Targets,
    overwrite: bool = False,
    chunks: ChunkShapes | None = None,
    shards: ChunkShapes | None = None,
    compression: Compression = None,
    sweep: bool | Sequence[int | str] = False,
) -> Explanation:
    """The plan of computing the arrays, before anything runs: passes, bytes read and written, peak memory.

    Takes what `compute` takes, or one mapping of paths as `store` does, with its `chunks`, `shards` and
    `compression`, of which bytes are bounds. No I/O, and nothing is made. Tiles that are still in memory from
    earlier runs are counted as there. Once runs of the session moved 16 MiB and more, `seconds` is a band of the time
    that this one takes, by the slowest and the fastest of the last sixteen. Raises MemoryLimitError when it cannot fit,
    naming the smallest limit that would.

    With `sweep=True` it is planned under sixteen memory limits as well, between the least that may do and what keeps
    everything; a list of limits, in bytes or as "4GiB", is those. `Explanation.sweep` has the forecasts, and is printed
    with it: bytes under each limit, with the knee and the smallest limit that works. They are those of a session that
    keeps nothing yet.

    >>> import numpy as np, outcore as oc, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/x.npy", np.zeros((100, 10)))
    ...     oc.explain(oc.open(f"{folder}/x.npy").mean()).bytes_read
    8128
    """
    for argument in arrays:
        if isinstance(getattr(argument, "_core", None), _core.Graph):
            raise ArgumentError(
                "explain: a graph is no expression; outcore.graph.explain(function, G) tells what a function takes"
            )
    chunks = with_shards(chunks, shards)
    with naming_shards(chunks), _planned_targets(arrays, overwrite, chunks, compression) as (program, whole):
        said = Explanation.of(program)
        swept = None if sweep is False else _swept(program, said, sweep)
        return renamed(whole(said.with_sweep(swept)), variables())


def _limits(sweep: object) -> Sequence[int | str]:
    if isinstance(sweep, str) or not isinstance(sweep, Sequence) or not sweep:
        raise ArgumentError(f"explain: sweep={sweep!r}, which is True, or a list of limits as 4294967296 or '4GiB'")
    return sweep


def _limit(size: int | str) -> int:
    """A memory limit of a sweep. Raises ArgumentError for another thing."""
    try:
        limit = parse_size(size)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"explain: sweep has {size!r}, which is no memory limit: {error}") from None
    if not _MEBIBYTE <= limit <= _ROOMY:
        raise ArgumentError(f"explain: sweep has {size!r}, and limits are from 1 MiB to 1 PiB")
    return limit


_DRAWINGS: dict[str, Callable[[Picture], bytes]] = {
    ".svg": lambda picture: picture.svg().encode(),
    ".html": lambda picture: picture.html().encode(),
    ".png": Picture.png,
    ".dot": lambda picture: picture.dot.encode(),
}


def _swept(program: _core.Program, forecast: Explanation, sweep: bool | Sequence[int | str]) -> LimitSweep:
    """The forecasts of a program under memory limits that are given, or under sixteen."""
    in_force = current().options["memory_limit"]
    if isinstance(sweep, bool):
        roomy = points(program.sweep([_ROOMY]))[0]
        enough = forecast.overhead_bytes + round(1.1 * (roomy.peak_bytes or roomy.need)) + _MEBIBYTE
        limits = default_limits(forecast.overhead_bytes + 16 * _MEBIBYTE, enough, in_force)
    else:
        limits = sorted({_limit(limit) for limit in _limits(sweep)})
    swept = points(program.sweep(limits))
    smallest = smallest_limit(swept, forecast.overhead_bytes, lambda between: points(program.sweep(between)))
    pool = current().options["pool_limit"]
    binding = None if pool is None else (pool, forecast.overhead_bytes + pool)
    return LimitSweep(swept, in_force, smallest or None, binding)


def visualize(*arrays: Item | Targets, filename: AnyPath | None = None, overwrite: bool = True) -> Picture:
    """The plan as a picture; notebooks show it. With a filename ending in `.svg`, `.html`, `.png` or `.dot`, also
    writes it.

    Passes stand above, in their order, each as wide as the part of the plan in which it runs and as large as the bytes
    that it moves; arrays below, each as high as the share of it that is in memory, with marks where it is read, read
    again, spilled and written. Lines between them are as wide as what flows. Passes that repeat are one. `.html` has
    the details of each; `.png` needs the package cairosvg; `.dot` is the source for Graphviz, which `Picture.dot` has
    as text. Printed, a picture is a line for each pass.

    Raises ShapeError for another ending, ImportError for `.png` without that package, errors else as `explain`. I/O:
    that file only.

    >>> import outcore as oc
    >>> oc.visualize(oc.arange(4).sum()).dot.startswith("digraph")
    True
    """
    path = None if filename is None else Path(os.fsdecode(filename))
    if path is not None and path.suffix not in _DRAWINGS:
        raise ShapeError(f"visualize: {path.name} ends in none of {', '.join(_DRAWINGS)}")
    with _planned_targets(arrays, overwrite) as (program, _):
        names = variables()
        picture = Picture(program.dot(), json.loads(program.explain()), program.occupancy(), names)
    if path is not None:
        write_whole(path, (_DRAWINGS[path.suffix](picture),))
    return picture


__all__ = ["compute", "explain", "persist", "store", "visualize"]
