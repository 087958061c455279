"""Sessions, and the progress and the records of their runs.

It uses `config`, `_base` and the Rust module. Start with `session.py`; `record.py` keeps the counters of runs,
`progress.py` draws the line on the terminal.
"""
