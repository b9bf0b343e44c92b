"""All that rowq knows of MariaDB and MySQL; see sql/README.md, "Adding an engine"."""
