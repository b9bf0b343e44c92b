"""The parts that run every study and write its report; see ../README.md."""
