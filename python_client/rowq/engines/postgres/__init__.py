"""The PostgreSQL engine; see docs/contributing.md, "Add an engine"."""
