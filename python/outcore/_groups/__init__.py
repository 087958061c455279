"""Groups of rows by labels, and their results by group and by row.

It uses arrays, sorts and the NumPy-like functions. Start with `groups.py`, which holds `GroupBy` and results by tables;
`sorted.py` groups by sorting, `rows.py` and `order.py` give results for each row.
"""
