"""Tables: named columns of equal length over arrays, dates, text and labels, and the files that hold them.

It uses arrays, sorts, groups and sessions. Start with `table.py`, which holds `Table`; `columns.py` says what a column
is, `categorical.py` has columns of labels, `joining.py` joins by sorting. `arrow.py` is the one place where Arrow's
types and columns meet; `parquet.py`, `stream.py`, `output.py`, `ipc.py` and `csv.py` read and write by it, `stored.py`
keeps columns in a folder.
"""
