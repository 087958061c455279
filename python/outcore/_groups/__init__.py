"""Groups of rows by labels: `groups.py` holds `GroupBy`."""
