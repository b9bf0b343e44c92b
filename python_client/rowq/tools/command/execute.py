"""The handler behind `rowq work --exec`: one run of a command per message."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from rowq import tracing
from rowq.messages import Message
from rowq.tools.command.programs import Programs
from rowq.tools.console.errors import one_line
from rowq.tools.trace_headers import TRACEPARENT, TRACESTATE, trace_of
from rowq.worker import Fail, Retry, Snooze
from rowq.worker.claim import HeldMessage
from rowq.worker.context import log
from rowq.worker.handlers import Answer, GiveUp, OwnHandler, Release

# Secrets of rowq's own connection. A command that needs a database uses its own variable.
WITHHELD = ("ROWQ_URL", "PGPASSWORD", "MYSQL_PWD")

# Linux limits a variable to 128 KiB, and every system limits their sum.
_LONGEST_VARIABLE = 32 * 1024

_COMPLETED = 0
# EX_DATAERR and EX_TEMPFAIL of sysexits.h.
_DEAD, _LATER = 65, 75
# A shell's exit status if the command is not executable or not found.
_SHELL_CANNOT_RUN = {126, 127}
_INTERPRETER = re.compile(r"(python|perl|ruby|node|php|lua|sh|bash|dash|ksh|zsh)[\d.]*")
# After these options an interpreter expects code or a module name, not a script.
_CODE_OPTIONS = {"-c", "-m", "-e", "-E", "-r", "-p", "--eval", "--print"}
# A word that is, or ends in, a shell operator.
_OPERATOR = re.compile(r"\|\|?|&&?|[0-9]?>[>&]?.*|&>.*|<.*|(?:[^'\"\\]*[^'\"\\;])?;")
_ERROR_BYTES = 2000
_PART_BYTES = 65536

# Seconds between attempts to start a program: about 10 in total.
_PAUSES = (0.25, 0.5, 1.0, 2.0, 3.0, 3.0)
# A service manager that stops a worker also signals the program.
_STOP_SECONDS = 1.0
# SIGHUP, SIGINT, SIGKILL and SIGTERM. Windows does not define all of these names.
_ENDING_SIGNALS = {1, 2, 9, 15}


def facts_of(queue_name: str, message: Message) -> dict[str, Any]:
    """Return all facts about a message except its body."""
    return {
        "queue": queue_name,
        "message_id": message.message_id,
        "claim_id": message.claim_id,
        "attempt": message.attempt,
        "message_type": message.message_type,
        "headers": message.headers or {},
        "enqueued_at": message.enqueued_at.isoformat(),
        "last_error": message.last_error,
    }


def as_json(facts: Mapping[str, Any]) -> bytes:
    """Return facts as one JSON object in UTF-8."""
    return json.dumps(facts, ensure_ascii=False).encode("utf-8", "backslashreplace")


def environment(facts: Mapping[str, Any], file: Path) -> dict[bytes, bytes]:
    """Return a program's environment: the inherited one without secrets, plus the facts.

    A fact is named ROWQ_ and its name, in UTF-8 without NULs; empty if null, omitted if too long.
    TRACEPARENT and TRACESTATE come from the worker's span, else from the message, else inherited.
    """
    encoded = {f"ROWQ_{name.upper()}": _encoded(fact) for name, fact in facts.items()}
    hidden = {name.encode() for name in (*WITHHELD, *encoded)}
    traces = tracing.active
    trace = trace_of(traces.carrier() if traces else {}) or trace_of(facts["headers"])
    if trace:
        hidden |= {TRACEPARENT.upper().encode(), TRACESTATE.upper().encode()}
    encoded |= {name.upper(): value.encode() for name, value in trace.items()}
    inherited = {name: value for name, value in os.environb.items() if name not in hidden}
    fitting = {
        name.encode(): value for name, value in encoded.items() if len(value) <= _LONGEST_VARIABLE
    }
    return inherited | fitting | {b"ROWQ_MESSAGE_FILE": os.fsencode(file)}


def _encoded(fact: Any) -> bytes:
    match fact:
        case None:
            text = ""
        case dict():
            text = json.dumps(fact)
        case _:
            text = str(fact)
    return text.replace("\0", "").encode("utf-8", "backslashreplace")


class CannotRun(GiveUp):
    """The command cannot run for any message; ends the worker."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the command cannot run: {reason}")


@dataclass(frozen=True, slots=True)
class Ended:
    """A program's exit status, negative for a signal, and the end of its standard error."""

    status: int
    errors: str

    @property
    def reason(self) -> str:
        """The error text for the message."""
        return self.errors or self.status_text

    @property
    def status_text(self) -> str:
        """The exit status in words."""
        if self.status < 0:
            return f"killed by signal {-self.status}"
        return f"exit status {self.status}"

    @property
    def summary(self) -> str:
        """The exit status in words, and the last line of standard error."""
        return ": ".join([self.status_text, *self.errors.splitlines()[-1:]])

    @property
    def by_signal(self) -> bool:
        """Whether a signal ended it; a shell adds 128 to the signal of its command."""
        return self.status < 0 or self.status - 128 in _ENDING_SIGNALS

    def decision(self, snooze_seconds: float | None) -> Answer | None:
        """Return the outcome for the message; None completes it."""
        if self.status == _COMPLETED:
            return None
        if self.status == _LATER and snooze_seconds is not None:
            return Snooze(snooze_seconds)
        return Fail(self.reason) if self.status == _DEAD else Retry(error=self.reason)


class StartupCheck:
    """Detect a command that cannot run, from the first messages."""

    MESSAGES = 3
    PAUSE_SECONDS = 1.0
    # A released message is delivered first again, together with others.
    _RUNS = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._suspects: Counter[int] = Counter()

    @property
    def is_in_doubt(self) -> bool:
        """Whether it has run for no message so far, and more must be tried."""
        return bool(self._suspects) and not self._is_over

    def suspects(self, message_id: int, *, cannot_run: bool) -> int:
        """Record how a program ended; return for how many messages it could not run.

        Return 0 once it has run for any message, or if this message was tried twice: then the
        message itself may be the cause, and must not be released forever.
        """
        with self._lock:
            self._is_over = self._is_over or not cannot_run
            if self._is_over or self._suspects[message_id] >= self._RUNS:
                return 0
            self._suspects[message_id] += 1
            return len(self._suspects)


@dataclass(frozen=True, slots=True)
class Run:
    """A running program; close `files` after its end."""

    program: "subprocess.Popen[bytes]"
    errors: BinaryIO
    files: ExitStack


@dataclass(frozen=True, slots=True)
class Command(OwnHandler):
    """Handler that runs a program: body on standard input, facts in the environment.

    Exit status 0 completes the message, 65 makes it dead, 75 snoozes it for `snooze_seconds` if
    given, anything else retries it after the queue's backoff with the end of standard error as the
    reason. If a signal ends the program
    while the worker stops, the attempt is not counted. A command that cannot run ends the worker.
    """

    arguments: tuple[str, ...]
    programs: Programs
    snooze_seconds: float | None = None
    startup_check: StartupCheck = field(default_factory=StartupCheck)

    def __call__(self, message: HeldMessage) -> None:
        """Run the program; raise an Answer, Release or CannotRun unless it exits with 0."""
        run = self._start_with_retries(message)
        with run.files:
            status = self.programs.wait(
                run.program, lambda: message.lost or message.cancelled or message.timed_out
            )
            ended = Ended(status, _end_of(run.errors))
            decision = ended.decision(self.snooze_seconds)
            _forward(run.errors)
        if suspects := self.startup_check.suspects(
            message.message_id, cannot_run=self._cannot_run(ended)
        ):
            if suspects >= StartupCheck.MESSAGES:
                raise CannotRun(f"the first {suspects} messages ended with {ended.summary}")
            message.is_stopping(StartupCheck.PAUSE_SECONDS)
            raise Release
        if isinstance(decision, Retry | Snooze) and message.timed_out:
            raise Retry(error=f"the command exceeded its timeout: {ended.reason}")
        if ended.by_signal and message.is_stopping(_STOP_SECONDS):
            raise Release
        if decision is not None:
            raise decision

    def least_batch(self) -> int:
        """Return the minimum batch that tests whether the command can run at all."""
        return StartupCheck.MESSAGES if self.startup_check.is_in_doubt else 1

    def _start_with_retries(self, message: HeldMessage) -> Run:
        """Start the program; retry, because a new version may be replacing it right now."""
        for pause in (*_PAUSES, None):
            try:
                return self._start(message)
            except OSError as error:
                text = one_line(error)
                if pause is None:
                    raise CannotRun(text) from error
                log.warning("the command cannot run, retrying in %.2f s: %s", pause, text)
            if message.is_stopping(pause) or message.lost:
                break
        raise Release

    def _start(self, message: HeldMessage) -> Run:
        with ExitStack() as files:
            errors = files.enter_context(tempfile.TemporaryFile())
            # Use a file: with a pipe, a program that does not read it would block the worker.
            body = files.enter_context(tempfile.TemporaryFile())
            body.write(_body(message))
            body.seek(0)
            facts = facts_of(message.stripe.queue_name, message)
            file = files.enter_context(self.programs.new_file(as_json(facts)))
            program = self.programs.start(self.arguments, environment(facts, file), body, errors)
            return Run(program, errors, files.pop_all())

    def _cannot_run(self, ended: Ended) -> bool:
        """Whether a shell could not run the program, or an interpreter did not find its script.

        An interpreter then exits with 1 or 2, as programs do for many reasons. So its standard
        error must name the script, and the script must be missing.
        """
        if ended.status in _SHELL_CANNOT_RUN:
            return True
        if ended.status in {_COMPLETED, _DEAD, _LATER} or ended.by_signal:
            return False
        script = self._script()
        return script is not None and script.name in ended.errors and not script.exists()

    def _script(self) -> Path | None:
        """Return the script that the command passes to an interpreter, if any."""
        if not _INTERPRETER.fullmatch(Path(self.arguments[0]).name):
            return None
        for word in self.arguments[1:]:
            if not word.startswith("-"):
                return Path(word)
            if word in _CODE_OPTIONS:
                break
        return None


def parse(line: str, *, by_shell: bool = False) -> tuple[str, ...]:
    """Split a command as a shell does, or return the call of a shell that runs it.

    Raises ValueError if the command is not found, or uses shell operators without --shell.
    """
    if not hasattr(os, "killpg"):
        raise ValueError("commands require Unix")
    arguments = shlex.split(line)
    if not arguments:
        raise ValueError("the command is empty")
    if by_shell:
        return ("sh", "-c", line)
    # With posix=False a quoted word keeps its quotes, so it does not match an operator.
    for word in shlex.split(line, posix=False):
        if _OPERATOR.fullmatch(word):
            raise ValueError(
                f"{word} would be an argument of {arguments[0]}, because no shell runs the command;"
                " use --shell, or quote it"
            )
    if shutil.which(arguments[0]) is None:
        raise ValueError(f"program {arguments[0]} not found")
    return tuple(arguments)


def _body(message: Message) -> bytes:
    if message.body_binary is not None:
        return message.body_binary
    return (message.body or "").encode()


def _end_of(errors: BinaryIO) -> str:
    """Return the end of the program's standard error.

    pread keeps the file's position, where processes it left running may still write.
    """
    size = os.fstat(errors.fileno()).st_size
    end = os.pread(errors.fileno(), _ERROR_BYTES, max(0, size - _ERROR_BYTES))
    return end.decode(errors="replace").strip()


def _forward(errors: BinaryIO) -> None:
    """Copy the program's standard error to our own; ignore write errors."""
    position = 0
    with suppress(OSError, ValueError, AttributeError):
        size = os.fstat(errors.fileno()).st_size
        while position < size and (part := os.pread(errors.fileno(), _PART_BYTES, position)):
            sys.stderr.buffer.write(part)
            position += len(part)
        sys.stderr.flush()
