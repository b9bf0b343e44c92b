"""The command `rowq`."""
