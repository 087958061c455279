"""What needs no array: checks of arguments, element types, sizes, files, the machine."""
