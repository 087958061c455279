"""Helpers of the tests: programs with their inputs and oracles, sessions, and stored results."""
