"""All that rowq knows of Oracle; see sql/README.md, "Adding an engine"."""
