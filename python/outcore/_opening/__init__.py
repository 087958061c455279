"""Files as lazy arrays and groups: the functions `open` and `group`.

It uses arrays, dates and text. Start with `opening.py`; `kinds.py` tells formats by their first bytes, `records.py`
opens fields of records, `several.py` joins files that match a pattern, `group.py` has groups,
`conventions.py` the numbers behind packed ones. `tiff.py` and `references.py` list the chunks of files of other formats
(`places.py`), which the engine reads.
"""
