"""Forecasts, plans and profiles as text, HTML and pictures.

It uses `_session` and `_base`, and plans as the Rust module describes them; it runs nothing. Start with
`explanation.py` and `profile.py`; `page.py`, `charts.py` and `markup.py` are HTML and SVG. Data is drawn by `plots.py`
in SVG and by `terminal.py` in text, between the axes of `axes.py`.
"""
