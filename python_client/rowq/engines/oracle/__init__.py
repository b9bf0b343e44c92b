"""The Oracle engine; see docs/contributing.md, "Add an engine"."""
