"""The limit is the process's for estimators too: a child in a memory cgroup of the limit itself finishes a fit.

Tiles of the data fill the limit before scikit-learn is loaded. With OUTCORE_LARGE every estimator is fitted at four
limits.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import cgroup
from conftest import LARGE
from support.learn_children import ESTIMATORS

MEBIBYTE = 1 << 20
LIMITS = [400, 512, 768, 1024] if LARGE else [320]
NAMES = list(ESTIMATORS) if LARGE else ["LogisticRegression", "KMeans", "PCA"]
COLUMNS = 64
ROWS = (LIMITS[-1] * 5 // 4 if LARGE else 240) * MEBIBYTE // (8 * COLUMNS)
TIMEOUT_SECONDS = 300
NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"

pytestmark = pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)


@pytest.fixture(scope="module")
def folder(shared: Path) -> Path:
    """Data larger than every limit, labels, targets that follow from it, and codes of categories."""
    random = np.random.default_rng(0)
    x = np.lib.format.open_memmap(shared / "x.npy", "w+", np.float64, (ROWS, COLUMNS))
    goal = np.empty(ROWS)
    for start in range(0, ROWS, 100_000):
        part = random.random((min(100_000, ROWS - start), COLUMNS))
        x[start : start + len(part)] = part
        goal[start : start + len(part)] = part @ np.arange(COLUMNS) + random.normal(size=len(part))
    np.save(shared / "t.npy", goal)
    np.save(shared / "y.npy", (goal > goal.mean()).astype(np.int64))
    np.save(shared / "codes.npy", random.integers(0, 5, size=(ROWS, 3)))
    return shared


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("name", NAMES)
def test_a_fit_finishes_in_a_cgroup_of_the_limit_itself(name: str, limit: int, folder: Path) -> None:
    given = {"name": name, "folder": str(folder), "memory_limit": limit * MEBIBYTE, "filled": True}
    outcome = cgroup.run_limited("support.learn_children:fit", given, limit * MEBIBYTE, TIMEOUT_SECONDS)
    assert outcome.reason is None, outcome.stderr
    assert outcome.oom_kills == 0
    assert outcome.value > 0
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit * MEBIBYTE, f"{outcome.peak_rss_bytes / MEBIBYTE:.0f} MiB"


@pytest.mark.parametrize(("components", "limit"), [(None, 350), (5, 350)])
def test_components_of_a_product_stay_within_the_limit(components: int | None, limit: int, tmp_path: Path) -> None:
    """A product of a sparse matrix as data; the matrices of LAPACK's work are the process's too."""
    given = {"rows": 1200, "components": components, "memory_limit": limit * MEBIBYTE, "folder": str(tmp_path)}
    outcome = cgroup.run_limited(
        "support.learn_children:components_of_a_product", given, limit * MEBIBYTE, TIMEOUT_SECONDS
    )
    assert outcome.reason is None, outcome.stderr
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= limit * MEBIBYTE
