"""NAS IS: the rank of every key, ten times over, by sorting (key, index), ranking in one scan and sorting back by index
(Vengroff and Vitter, 4.2.2); and NumPy's ranks by counting beside it, which the checks were proved with.

Key i is ⌊(x₄ᵢ + x₄ᵢ₊₁ + x₄ᵢ₊₂ + x₄ᵢ₊₃)·max_key/4⌋ over uniforms of `lcg`. Before iteration i, from 1, key[i] becomes i
and key[i + 10] becomes max_key − i; these stay. Each iteration compares the ranks of five keys (how many keys are
smaller) with published ones, which drift by a rule of each class as the two tails fill; the end checks the whole order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import lcg

SEED = 314159265
ITERATIONS = 10
BLOCK = 1 << 20
LOG2_KEYS = {"S": 16, "W": 20, "A": 23, "B": 25, "C": 27}
LOG2_MAX_KEY = {"S": 11, "W": 16, "A": 19, "B": 21, "C": 23}
TESTED = {
    "S": (48427, 17148, 23627, 62548, 4431),
    "W": (357773, 934767, 875723, 898999, 404505),
    "A": (2112377, 662041, 5336171, 3642833, 4250760),
    "B": (41869, 812306, 5102857, 18232239, 26860214),
    "C": (44172927, 72999161, 74326391, 129606274, 21736814),
}
RANKS = {
    "S": (0, 18, 346, 64917, 65463),
    "W": (1249, 11698, 1039987, 1043896, 1048018),
    "A": (104, 17523, 123928, 8288932, 8388264),
    "B": (33422937, 10244, 59149, 33135281, 99),
    "C": (61147, 882988, 266290, 133997595, 133525895),
}
# A tested key in the lower tail has one smaller key more with each iteration, one in the upper tail one fewer. The
# published ranks are those of another iteration in each class: (tested keys in the lower tail, and the iteration from
# which their ranks count; the same for the others).
DRIFT = {
    "S": ((0, 1, 2), 0, 0),
    "W": ((0, 1), 2, 0),
    "A": ((0, 1, 2), 1, 1),
    "B": ((1, 2, 4), 0, 0),
    "C": ((0, 1, 2), 0, 0),
}


def expected(size_class: str, iteration: int) -> list[int]:
    """How many keys are smaller than each of the five tested ones in an iteration."""
    lower, lower_from, upper_from = DRIFT[size_class]
    return [
        rank + (iteration - lower_from) if number in lower else rank - (iteration - upper_from)
        for number, rank in enumerate(RANKS[size_class])
    ]


def shift(size_class: str) -> int:
    """Four 46-bit states add up to a key after dropping this many bits."""
    return lcg.BITS + 2 - LOG2_MAX_KEY[size_class]


def altered(size_class: str, iteration: int) -> dict[int, int]:
    """The keys that an iteration replaces."""
    return {iteration: iteration, iteration + ITERATIONS: (1 << LOG2_MAX_KEY[size_class]) - iteration}


# -- checks -------------------------------------------------------------------------------------------------------


def partially_verified(size_class: str, iteration: int, smaller: Any, equal: Any, rank: Any) -> bool:
    """The five tested keys: how many are smaller, as published; and each one's place lies among its equals."""
    inside = all(low <= place < low + alike for low, alike, place in zip(smaller, equal, rank, strict=True))
    return inside and [int(value) for value in smaller] == expected(size_class, iteration)


def fully_verified(keys: Any, rank: Any) -> bool:
    """Every place is taken once, and the keys put into their places are sorted. For a process with memory."""
    if rank.min() < 0 or rank.max() >= rank.size:
        return False
    placed = np.full(keys.size, -1, keys.dtype)
    placed[rank] = keys
    return bool(placed[0] >= 0 and (placed[1:] >= placed[:-1]).all())


# -- NumPy --------------------------------------------------------------------------------------------------------


def key_blocks(size_class: str) -> Iterator[Any]:
    """The keys before the first iteration, in order."""
    count = 1 << LOG2_KEYS[size_class]
    rows, columns = lcg.tables(SEED, max(1, count // BLOCK), min(count, BLOCK), stride=4)
    for row in rows:
        total = np.zeros(columns.size, np.uint64)
        state = columns * row
        for _ in range(4):
            total += state & np.uint64(lcg.MASK)
            state *= np.uint64(lcg.MULTIPLIER)
        yield (total >> np.uint64(shift(size_class))).astype(np.int32)


def counted(size_class: str) -> dict[str, Any]:
    """Everything in memory: ranks by counting, for all iterations."""
    keys = np.concatenate(list(key_blocks(size_class)))
    started = time.perf_counter()
    passed = 0
    for iteration in range(1, ITERATIONS + 1):
        for place, key in altered(size_class, iteration).items():
            keys[place] = key
        counts = np.bincount(keys, minlength=1 << LOG2_MAX_KEY[size_class])
        below = np.cumsum(counts) - counts
        rank = below[keys]
        tested = list(TESTED[size_class])
        found = rank[tested]
        passed += partially_verified(size_class, iteration, found, counts[keys[tested]], found)
    seconds = time.perf_counter() - started
    order = np.argsort(keys, kind="stable")
    rank[order] = np.arange(keys.size)
    return {"seconds": seconds, "partial": passed, "full": fully_verified(keys, rank)}


# -- outcore ------------------------------------------------------------------------------------------------------

LOW_BITS = 32


def by_records(keys: Any) -> tuple[Any, Any]:
    """The paper's way, on records of 8 bytes: sort (key, index), make (index, rank) of them in one scan, sort back."""
    import outcore as oc

    place = oc.arange(keys.shape[0], dtype=oc.int64)
    low = (1 << LOW_BITS) - 1
    ordered = oc.sort((oc.astype(keys, oc.int64) << LOW_BITS) | place)
    back = oc.sort(((ordered & low) << LOW_BITS) | place)
    return ordered >> LOW_BITS, back & low


def by_columns(keys: Any) -> tuple[Any, Any]:
    """The same with key and index in columns of 4 bytes each; the scan that ranks is a column of places."""
    import outcore as oc

    place = oc.arange(keys.shape[0], dtype=oc.int32)
    ordered, order = oc.sort_by(keys, place)
    return ordered, oc.sort_by(order, place)[1]


def by_argsort(keys: Any) -> tuple[Any, Any]:
    """The same in two words: the order of the keys, and the place of each key in it."""
    import outcore as oc

    return oc.sort(keys), oc.argsort(oc.argsort(keys, stable=True), stable=True)


METHODS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "records": by_records,
    "columns": by_columns,
    "argsort": by_argsort,
}


def make_keys(size_class: str, path: str) -> None:
    """Writes the keys before the first iteration, as int32, in one pass over nothing."""
    import outcore as oc

    count = 1 << LOG2_KEYS[size_class]
    rows, columns = lcg.tables(SEED, max(1, count // BLOCK), min(count, BLOCK), stride=4)
    state = oc.asarray(rows)[:, None] * oc.asarray(columns)[None, :]
    total = state & lcg.MASK
    for _ in range(3):
        state = state * lcg.MULTIPLIER
        total = total + (state & lcg.MASK)
    oc.store({path: oc.reshape(oc.astype(total >> shift(size_class), oc.int32), (-1,))}, overwrite=True)


def alter(path: str, size_class: str, iteration: int) -> dict[int, int]:
    """Replaces an iteration's two keys in the file, as NPB does in its array; what the tested keys are then."""
    keys = np.load(path, mmap_mode="r+")
    for place, key in altered(size_class, iteration).items():
        keys[place] = key
    keys.flush()
    return {place: int(keys[place]) for place in TESTED[size_class]}


def ranked(
    size_class: str, out: str, method: str = "records", session: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """All iterations from keys on disk to ranks on disk. Leaves keys.npy and ranks.npy of the last one in `out`."""
    import outcore as oc

    keys_path, ranks_path, tails_path = (f"{out}/{name}.npy" for name in ("keys", "ranks", "tails"))
    with oc.Session(progress=False, **(session or {})) as current:
        make_keys(size_class, keys_path)
        before = current.counters()
        seconds, passed = 0.0, 0
        for iteration in range(1, ITERATIONS + 1):
            tested = alter(keys_path, size_class, iteration)
            started = time.perf_counter()
            ordered, rank = METHODS[method](oc.open(keys_path))
            # The five counts come from the sorted keys while these pass by; they are never stored.
            smaller = [oc.count_nonzero(ordered < key) for key in tested.values()]
            equal = [oc.count_nonzero(ordered == key) for key in tested.values()]
            oc.store({ranks_path: rank, tails_path: oc.stack([*smaller, *equal])}, overwrite=True)
            seconds += time.perf_counter() - started
            tails = np.load(tails_path)
            places = np.load(ranks_path, mmap_mode="r")[list(tested)]
            passed += partially_verified(size_class, iteration, tails[:5], tails[5:], places)
        counted = current.counters()
    moved = {name: counted[name] - before[name] for name in ("bytes_read", "bytes_written")}
    return {"seconds": seconds, "partial": passed, "peak_bytes": counted["peak_bytes"]} | moved


def check(out: str) -> bool:
    """Full verification of what `ranked` left, by NumPy in this process."""
    keys, rank = (np.load(Path(out) / f"{name}.npy") for name in ("keys", "ranks"))
    return fully_verified(keys, rank)
