"""From lazy arrays to results: `run.py` has the public functions, `running.py` what all of them come to."""
