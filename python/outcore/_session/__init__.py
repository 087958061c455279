"""Sessions, the progress and the records of their runs."""
