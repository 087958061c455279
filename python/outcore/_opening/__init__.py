"""Files as lazy arrays: `opening.py` holds `open`."""
