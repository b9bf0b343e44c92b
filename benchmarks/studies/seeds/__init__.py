"""The question of each of five documents that describe queues in databases, as an experiment."""
