"""Counts the statements that one call runs in the server, and what they read: no clock is needed.

course.py makes the calls; traces.py notes what a server ran for each. Where an engine is not at
hand, path.py counts in the text of its SQL, along the way that path.toml says. report.py writes the
table into benchmarks/README.md.
"""
