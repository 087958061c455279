"""Data eight times as large as the memory of a real group, some of what `make test-eightfold` does all of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup, eightfold, eightfold_xarray

needs_group = pytest.mark.skipif(
    not cgroup.is_real(), reason="no memory cgroup can be made here (it needs root), and no other limit is as strict"
)
LIMIT = 108 << 20


def outcomes(part: str, name: str, folder: Path, limit: int) -> list[dict[str, Any]]:
    cases = eightfold.CASES[part](eightfold.emptied(folder / "files"), limit, lambda label: label == name)
    return [eightfold.outcome_of(case, eightfold.emptied(folder / "out"), limit) for case in cases]


@needs_group
def test_compressed_chunks_of_eight_times_the_memory_are_read_and_copied(tmp_path: Path) -> None:
    (outcome,) = outcomes("arrays", "Zarr v3, blosc, read", tmp_path, LIMIT)
    assert outcome["fault"] is None, outcome["stderr"]
    assert outcome["data_bytes"] == 8 * LIMIT
    assert outcome["peak_bytes"] <= LIMIT
    assert outcome["forecast"] is True


def test_lines_of_the_record_tell_sizes_and_the_first_line_of_a_fault() -> None:
    sizes = dict.fromkeys(("data_bytes", "limit_bytes", "peak_bytes", "read_bytes", "written_bytes"), 1 << 20)
    line = eightfold.row_of(sizes | {"name": "x", "seconds": 1.0, "forecast": True, "fault": "wrong: 3\nis not 4"})
    assert line == ["x", *["1.00 MiB"] * 3, "1.0", *["1.00 MiB"] * 2, "exact", "wrong: 3"]


def test_methods_are_checked_by_what_xarray_gives_of_a_part(tmp_path: Path) -> None:
    """At a small size: an anomaly is right, and another total is not."""
    field = eightfold_xarray.Field(1, 400)
    path = eightfold_xarray.make(tmp_path / "era.zarr", field)
    (out := tmp_path / "out").mkdir()
    arguments = {"name": "anomaly", "door": "engine", "path": str(path), "out": str(out), "limit": 1 << 30}
    ran = cgroup.run_limited("benchmarks.eightfold_xarray:method", arguments)
    assert ran.reason is None, ran.stderr
    eightfold_xarray.check("anomaly", field, out, ran.value["shape"])
    np.save(out / "t total.npy", 1e9)
    with pytest.raises(AssertionError, match="total"):
        eightfold_xarray.check("anomaly", field, out, ran.value["shape"])
