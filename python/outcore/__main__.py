"""`python -m outcore` is the `outcore` command."""

from outcore.cli import main

main()
