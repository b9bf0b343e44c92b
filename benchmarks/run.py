"""Compares rowq with other queues: `make bench`, or `python -m benchmarks.run --help`."""

if __name__ == "__main__":
    # Import here: each session is a process that imports this module again.
    from benchmarks.studies.command import main

    main()
