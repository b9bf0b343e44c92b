"""Benchmarks; see README.md in this directory."""
