"""The functions of the array API standard, a file for each of its chapters.

It uses arrays and runs, and makes nodes of the core. Start with the chapter of a function: `creation.py`,
`manipulation.py`, `statistical.py`, …; `elements.py` has orders and equality of elements of every kind, which sorts
and sets stand on. Element-wise functions are in `outcore/elementwise.py`.
"""
