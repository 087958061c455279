"""Loop programs: functions of plain Python loops over arrays, read from their source and handed to the core as trees.

It uses arrays (`_lazy`), the standard's functions and compiled ones (`_functions`). Start with `decorator.py`, which
users call. `syntax.py` reads and checks the source, `checking.py` and `ranks.py` without arguments; `binding.py` makes
the tree of `program.py` of the source and arguments, by expressions (`values.py`, `functions.py`), conditions
(`conditions.py`) and ranges of subscripts (`bounds.py`, `linear.py`). Numbers that loops carry are webs of definitions
(`reaching.py`), held in arrays (`scalars.py`) of one type (`kinds.py`, `turns.py`). `affine.py` and `refusal.py` stand
below all.
"""
