"""`python -m outcore` is the `outcore` command."""

from outcore._command.cli import main

main()
