"""All that rowq knows of PostgreSQL; see sql/README.md, "Adding an engine"."""
