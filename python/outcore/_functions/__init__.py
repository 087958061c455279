"""Functions of the user's own over blocks, lanes, neighbourhoods and elements.

It uses arrays (`_lazy`), the standard's functions and the NumPy-like ones. Start with `blocks.py`, on which the others
stand: `overlap.py` adds neighbours to blocks, `lanes.py` calls along an axis, `aggregating.py` folds, `compiled.py`
compiles with numba, `pyramids.py` makes images smaller.
"""
