"""Studies: each has its kinds of scenario, systems and report."""
