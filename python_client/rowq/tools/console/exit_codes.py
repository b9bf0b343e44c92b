"""What the exit status of the program means; needs no package but Python's own."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit status of `rowq` means; `rowq --help` prints this list."""

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
    ExitCode.REFUSED: "refused, nothing changed; the error has a number, RQ..., or names a role",
    ExitCode.USAGE: "wrong usage",
    ExitCode.NO_CONNECTION: "no connection to the database, or it broke",
    ExitCode.INCOMPLETE: "done in part, or not as it should be; see the command's help",
    ExitCode.BAD_INPUT: "the input has a fault; the error says where and what is in already",
    ExitCode.FAILED: "failed: an error of the database, a worker that gave up, a file...",
    ExitCode.NOT_INSTALLED: "not installed: rowq in the database, or a package; the error says how",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.BROKEN_PIPE: "whoever read standard output has gone; nothing is said",
}
