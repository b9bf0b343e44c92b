"""All that rowq knows of MariaDB and MySQL; see docs/contributing.md, "Add an engine"."""
