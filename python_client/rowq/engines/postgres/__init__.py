"""All that rowq knows of PostgreSQL; see docs/contributing.md, "Add an engine"."""
