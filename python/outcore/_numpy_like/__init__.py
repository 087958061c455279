"""Functions that NumPy has beside the standard, a file for each family.

It uses the standard's functions, and builds no nodes of its own where these do. Start with the file of a family: each
is a few lines of array expressions; `arranging.py` and `missing.py` show the manner.
"""
