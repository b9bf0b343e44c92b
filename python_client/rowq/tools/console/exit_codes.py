"""Exit statuses of the program. Imports only the standard library."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit statuses of `rowq`; `rowq --help` lists them."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    NO_CONNECTION = 3
    INCOMPLETE = 4
    BAD_INPUT = 5
    FAILED = 6
    NOT_INSTALLED = 7
    INTERRUPTED = 130
    BROKEN_PIPE = 141


MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.REFUSED: "refused, nothing changed; the error has a number (RQ...) or names a role",
    ExitCode.USAGE: "wrong usage",
    ExitCode.NO_CONNECTION: "cannot connect to the database, or connection lost",
    ExitCode.INCOMPLETE: "partly done, or a check failed; see the command's help",
    ExitCode.BAD_INPUT: "invalid input; the error has its position and what was already done",
    ExitCode.FAILED: "failed: a database error, a worker that cannot continue, a file error...",
    ExitCode.NOT_INSTALLED: "rowq or a package is not installed; the error explains how to",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.BROKEN_PIPE: "the reader closed standard output",
}
