"""Functions that NumPy has beside the standard, a file for each family."""
