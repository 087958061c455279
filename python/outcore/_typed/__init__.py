"""Dates and text over arrays of integers: what `dates.py` and `text.py` are made of."""
