"""All that rowq knows of Oracle; see docs/contributing.md, "Add an engine"."""
