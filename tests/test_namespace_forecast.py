"""Every public function: what is forecast is what is done. New functions join the table, or say why they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.calls import CALLS, MAKES_NO_ARRAY
from support.namespace import Given, public_functions, save, targets_of
from support.running import FIGURES, session

import outcore as oc
from outcore.errors import MemoryLimitError

POOL = 16 << 20
# What the first stage finds says how large the next ones are; figures of the others are exact.
STAGED = {
    *("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile", "stats.iqr"),
    *(
        "apply_along_axis",
        "lexsort",
        "permute",
        "permute_inverse",
        "categories",
        "searchsorted",
        "sort_by",
        "sort_complex",
    ),
    *(f"GroupBy.{name}" for name in ("cumcount", "cummax", "cummin", "cumprod", "cumsum", "median", "rank")),
    *("take", "take_along_axis", "top_k", "unique_all", "unique_inverse"),
    "map_overlap",  # of a reshape, which goes by way of a file where it does not fit
}


@pytest.fixture(scope="module")
def stored(shared: Path) -> Path:
    save(shared, 9)
    return shared


def test_every_public_function_is_called_or_makes_no_array() -> None:
    assert not set(CALLS) & set(MAKES_NO_ARRAY)
    assert set(CALLS) | set(MAKES_NO_ARRAY) == public_functions()
    assert set(CALLS) >= STAGED


def told_and_done(name: str, pool: int, stored: Path, out: Path, scratch: Path) -> tuple[Any, Any]:
    with session(scratch, pool_limit=pool) as current:
        targets = targets_of(CALLS[name](Given(stored)), out)
        assert targets, "makes no array"
        for array in targets.values():
            _ = array.shape  # what is counted for it first is a run of its own
        current.clear()
        return oc.explain(targets), oc.store(targets)


def with_a_pool_that_works(name: str, stored: Path, out: Path, scratch: Path) -> tuple[Any, Any, int]:
    """In the small pool, or, when that is refused, in the smallest that is named: by this stage, then by the next."""
    pools = [POOL]
    for _ in range(3):
        try:
            return *told_and_done(name, pools[-1], stored, out, scratch), pools[-1]
        except MemoryLimitError as refused:
            pools.append(refused.smallest or 0)
        assert pools[-1] > pools[-2], f"{name} names no larger pool"
    pytest.fail(f"{name} is refused with every pool that its refusals name: {pools}")


@pytest.mark.parametrize("name", CALLS)
def test_outcome_is_as_forecast(name: str, stored: Path, out: Path, scratch: Path) -> None:
    told, done, pool = with_a_pool_that_works(name, stored, out, scratch)
    forecast = {figure: getattr(told, figure) for figure in FIGURES}
    counted = {figure: getattr(done, figure) for figure in FIGURES}
    if told.exact:
        assert counted == forecast
    else:
        assert name in STAGED
        assert all(counted[figure] <= forecast[figure] for figure in FIGURES), (counted, forecast)
    assert counted["peak_bytes"] <= pool
    assert counted["bytes_written"] > 0
