"""What dates came to, held against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

import outcore as oc
from outcore.errors import OutcoreError


def same(found: Any, expected: Any) -> None:
    """The same type and elements; NaT is NaT, NaN is NaN."""
    if isinstance(expected, Exception):
        assert isinstance(found, OutcoreError), found
        return
    assert isinstance(found, (oc.Dates, oc.Array)), found
    value, expected = found.compute(), np.asarray(expected)
    assert value.dtype == expected.dtype == found.dtype
    np.testing.assert_array_equal(value, expected, strict=True)
