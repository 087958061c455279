"""The functions of the array API standard, a file for each of its chapters."""
