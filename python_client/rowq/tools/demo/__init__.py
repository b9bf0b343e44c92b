"""The demo: real orders through a queue while a worker is killed."""
