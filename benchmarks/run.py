"""Measures rowq beside other queues: `make bench`, or `python -m benchmarks.run --help`."""

if __name__ == "__main__":
    # Not at the top: each session is a process that imports this module anew.
    from benchmarks.studies.command import main

    main()
