"""The transaction of a worker's handlers on each engine."""
