"""Forecasts, plans and profiles as text, HTML and pictures.

It uses `_session` and `_base`, and plans as the Rust module describes them; it runs nothing. Start with
`explanation.py` and `profile.py`. The page of a profile is `page.py`, each run on it `run.py`, its sentences
`verdict.py`, its charts `memory.py`, `timeline.py` and `charts.py`; events of a trace wait in `events.py`; plans are
drawn by `picture.py`, limits by `sweep.py`. Data is drawn by `plots.py` in SVG and by `terminal.py` in text, between
the axes of `axes.py`.
"""
