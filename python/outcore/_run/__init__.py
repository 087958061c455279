"""From lazy arrays to results: `compute`, `store`, `persist`, `explain`, and loops.

It uses arrays, the session and `_show`. Start with `run.py`, which has the public functions, and `running.py`, to which
all of them come; `masks.py` makes arrays whose shape depends on data, `driver.py` and
`checkpoints.py` are for loops that outlive a kill: `iterate.py`, fits and solvers.
"""
