"""The command `rowq`: one module per group of commands."""
