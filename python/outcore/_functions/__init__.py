"""Functions of the user's own over blocks, lanes, neighbourhoods and elements."""
