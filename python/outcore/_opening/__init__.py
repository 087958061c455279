"""Files as lazy arrays: the function `open`.

It uses arrays, dates and text. Start with `opening.py`; `kinds.py` tells formats by their first bytes, `records.py`
opens fields of records, `several.py` joins files that match a pattern.
"""
