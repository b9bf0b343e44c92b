"""Code shared by all commands."""
