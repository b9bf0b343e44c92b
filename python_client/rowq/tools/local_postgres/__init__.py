"""A private PostgreSQL in a directory, for the demo, tests and benchmarks."""
