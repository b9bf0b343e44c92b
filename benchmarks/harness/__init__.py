"""The parts of the benchmark harness; see ../README.md."""
