"""NAS CG with the matrix on disk: zeta as published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import nas_cg
from support.running import session

import outcore as oc


@pytest.mark.parametrize("name", nas_cg.CLASSES)
def test_zeta_is_the_published_one(name: str, data: Path, scratch: Path) -> None:
    with session(scratch):
        matrix = oc.sparse.from_scipy(nas_cg.matrix(name), data / "cg.ocs")

        def solve(x: Any) -> Any:
            z, _ = oc.sparse.linalg.cg(matrix, x, rtol=0.0, maxiter=25)
            along, size = oc.compute(oc.sum(z * x), oc.sqrt(oc.sum(z * z)))
            return z.compute(), float(along), float(size)

        assert abs(nas_cg.zeta(name, solve) - nas_cg.CLASSES[name][-1]) <= 1e-10
