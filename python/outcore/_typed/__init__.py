"""Dates and text over arrays of integers: the parts of `outcore/dates.py` and `outcore/text.py`.

It uses arrays and the standard's functions. Start with `formulas.py`, NumPy's functions of dates as formulas of
integers, and `calendar.py`, units and their conversions; `operators.py` has the operators of dates.
"""
