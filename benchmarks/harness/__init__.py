"""Shared code that runs studies and writes their reports."""
