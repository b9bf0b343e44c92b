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
from rowq.worker import Fail, Retry
from rowq.worker.claim import HeldMessage
from rowq.worker.context import log
from rowq.worker.handlers import GiveUp, OwnHandler, Release

# These are secrets of rowq's own connection; a command that needs a database has its own variable.
WITHHELD = ("ROWQ_URL", "PGPASSWORD", "MYSQL_PWD")

# Linux takes no variable above 128 KiB, and the sum of all is limited everywhere.
_LONGEST_VARIABLE = 32 * 1024

_COMPLETED = 0
# These are EX_DATAERR and EX_TEMPFAIL of sysexits.h.
_DEAD, _RETRY = 65, 75
# A shell returns these for a command that is not executable, or not found.
_SHELL_CANNOT_RUN = {126, 127}
_INTERPRETER = re.compile(r"(python|perl|ruby|node|php|lua|sh|bash|dash|ksh|zsh)[\d.]*")
# Interpreters take code or a module's name after these options, and not a script.
_CODE_OPTIONS = {"-c", "-m", "-e", "-E", "-r", "-p", "--eval", "--print"}
# A word that a shell would take for an operator, or that ends in one.
_OPERATOR = re.compile(r"\|\|?|&&?|[0-9]?>[>&]?.*|&>.*|<.*|(?:[^'\"\\]*[^'\"\\;])?;")
_ERROR_BYTES = 2000
_PART_BYTES = 65536

# These seconds pass between attempts to start a program: about ten in all.
_PAUSES = (0.25, 0.5, 1.0, 2.0, 3.0, 3.0)
# A service manager that stops a worker signals the program at the same time.
_STOP_SECONDS = 1.0
# These are SIGHUP, SIGINT, SIGKILL and SIGTERM, which Windows does not all know by name.
_ENDING_SIGNALS = {1, 2, 9, 15}


def facts_of(queue_name: str, message: Message) -> dict[str, Any]:
    """Return what there is to know of a message, but for its body."""
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
    """Return a program's environment: this process's without secrets, facts, and their file.

    A fact is ROWQ_ and its name, empty when there is none, in UTF-8 and without NULs. One that is
    too long for a variable is left out. TRACEPARENT and TRACESTATE are those of the worker's span
    where it is traced, else the message's; without these they are inherited.
    """
    spelled = {f"ROWQ_{name.upper()}": _spelled(fact) for name, fact in facts.items()}
    hidden = {name.encode() for name in (*WITHHELD, *spelled)}
    traces = tracing.active
    trace = trace_of(traces.carrier() if traces else {}) or trace_of(facts["headers"])
    if trace:
        hidden |= {TRACEPARENT.upper().encode(), TRACESTATE.upper().encode()}
    spelled |= {name.upper(): value.encode() for name, value in trace.items()}
    inherited = {name: value for name, value in os.environb.items() if name not in hidden}
    fitting = {
        name.encode(): value for name, value in spelled.items() if len(value) <= _LONGEST_VARIABLE
    }
    return inherited | fitting | {b"ROWQ_MESSAGE_FILE": os.fsencode(file)}


def _spelled(fact: Any) -> bytes:
    match fact:
        case None:
            text = ""
        case dict():
            text = json.dumps(fact)
        case _:
            text = str(fact)
    return text.replace("\0", "").encode("utf-8", "backslashreplace")


class CannotRun(GiveUp):
    """The command cannot run, whatever the message; raised by the handler, it ends the worker."""

    def __init__(self, why: str) -> None:
        """Name the reason in `why`."""
        super().__init__(f"the command cannot run: {why}")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit status, negative for a signal, and the end of its errors."""

    status: int
    errors: str

    @property
    def reason(self) -> str:
        """Why the message is not done."""
        return self.errors or self.how

    @property
    def how(self) -> str:
        """The exit status in words."""
        if self.status < 0:
            return f"killed by signal {-self.status}"
        return f"exit status {self.status}"

    @property
    def summary(self) -> str:
        """The exit status in words, and the last line of the errors."""
        return ": ".join([self.how, *self.errors.splitlines()[-1:]])

    @property
    def by_signal(self) -> bool:
        """Whether a signal ended it; a shell whose command was ended so adds 128."""
        return self.status < 0 or self.status - 128 in _ENDING_SIGNALS

    @property
    def verdict(self) -> Retry | Fail | None:
        """What the exit status says of the message."""
        if self.status == _COMPLETED:
            return None
        return Fail(self.reason) if self.status == _DEAD else Retry(error=self.reason)


class StartupCheck:
    """Whether a command can run at all, as far as the first messages of a worker tell."""

    MESSAGES = 3
    PAUSE_SECONDS = 1.0
    # A message that was given back comes first again, with others behind it.
    _RUNS = 2

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_over = False
        self._suspects: Counter[int] = Counter()

    @property
    def is_in_doubt(self) -> bool:
        """Whether it could not run for any message so far, and more of them have to be tried."""
        return bool(self._suspects) and not self._is_over

    def suspects(self, message_id: int, *, cannot_run: bool) -> int:
        """Note how a program ended; return for how many messages it could not run, this included.

        It is 0 as soon as it has run for any message; and for a message that comes a third time,
        which is not to be given back for ever: it may be at fault itself.
        """
        with self._lock:
            self._is_over = self._is_over or not cannot_run
            if self._is_over or self._suspects[message_id] >= self._RUNS:
                return 0
            self._suspects[message_id] += 1
            return len(self._suspects)


@dataclass(frozen=True, slots=True)
class Run:
    """A program that has been started; `files` are to be closed after its end."""

    program: "subprocess.Popen[bytes]"
    errors: BinaryIO
    files: ExitStack


@dataclass(frozen=True, slots=True)
class Command(OwnHandler):
    """Runs a program with a message's body on standard input and its facts in the environment.

    Exit status 0 completes the message, 65 declares it dead, anything else means another attempt
    after the queue's backoff; the end of what the program wrote to standard error is the reason. A
    program that is ended by a signal while the worker stops has spent no attempt. One that takes
    longer than the worker's timeout_seconds is ended. A command that cannot run ends the worker,
    see CannotRun.
    """

    arguments: tuple[str, ...]
    programs: Programs
    startup_check: StartupCheck = field(default_factory=StartupCheck)

    def __call__(self, message: HeldMessage) -> None:
        """Run the program; raises Retry, Fail, Release or CannotRun unless it ends with 0."""
        run = self._start_patiently(message)
        with run.files:
            status = self.programs.wait(run.program, lambda: _is_to_end(message))
            ended = Ended(status, _end_of(run.errors))
            verdict = ended.verdict
            _pass_on(run.errors)
        if suspects := self.startup_check.suspects(
            message.message_id, cannot_run=self._cannot_run(ended)
        ):
            if suspects >= StartupCheck.MESSAGES:
                raise CannotRun(f"the first {suspects} messages ended with {ended.summary}")
            message.is_stopping(StartupCheck.PAUSE_SECONDS)
            raise Release
        if isinstance(verdict, Retry) and message.timed_out:
            raise Retry(error=f"the command took longer than its time: {ended.reason}")
        if ended.by_signal and message.is_stopping(_STOP_SECONDS):
            raise Release
        if verdict is not None:
            raise verdict

    def least_batch(self) -> int:
        """Return how many messages are needed to see whether the command can run at all."""
        return StartupCheck.MESSAGES if self.startup_check.is_in_doubt else 1

    def _start_patiently(self, message: HeldMessage) -> Run:
        """Start the program, in a few tries: it may be replaced by another version just now."""
        for pause in (*_PAUSES, None):
            try:
                return self._start(message)
            except OSError as error:
                text = one_line(error)
                if pause is None:
                    raise CannotRun(text) from error
                log.warning("trying again in %.2f s: the command cannot run: %s", pause, text)
            if message.is_stopping(pause) or message.lost:
                break
        raise Release

    def _start(self, message: HeldMessage) -> Run:
        with ExitStack() as files:
            errors = files.enter_context(tempfile.TemporaryFile())
            # The body goes by a file: a program that does not read a pipe would hold up the worker.
            body = files.enter_context(tempfile.TemporaryFile())
            body.write(_body(message))
            body.seek(0)
            facts = facts_of(message.stripe.queue_name, message)
            file = files.enter_context(self.programs.new_file(as_json(facts)))
            program = self.programs.start(self.arguments, environment(facts, file), body, errors)
            return Run(program, errors, files.pop_all())

    def _cannot_run(self, ended: Ended) -> bool:
        """Whether a shell could not run the program, or an interpreter not find its script.

        Interpreters then end with 1 or 2, as programs do for many reasons. So it is only believed
        of one that complains of its script, when the script is not there.
        """
        if ended.status in _SHELL_CANNOT_RUN:
            return True
        if ended.status in {_COMPLETED, _DEAD, _RETRY} or ended.by_signal:
            return False
        script = self._script()
        return script is not None and script.name in ended.errors and not script.exists()

    def _script(self) -> Path | None:
        """Return the file that the command has an interpreter run, None when there is none."""
        if not _INTERPRETER.fullmatch(Path(self.arguments[0]).name):
            return None
        for word in self.arguments[1:]:
            if not word.startswith("-"):
                return Path(word)
            if word in _CODE_OPTIONS:
                break
        return None


def parse(line: str, *, by_shell: bool = False) -> tuple[str, ...]:
    """Return a command's words as a shell would split them, or those that have a shell run it.

    Raises ValueError if nothing can run, or if the command is meant for a shell.
    """
    if not hasattr(os, "killpg"):
        raise ValueError("commands can be run on Unix only")
    arguments = shlex.split(line)
    if not arguments:
        raise ValueError("the command is empty")
    if by_shell:
        return ("sh", "-c", line)
    # Here a quoted word keeps its quotation marks, so it is no operator.
    for word in shlex.split(line, posix=False):
        if _OPERATOR.fullmatch(word):
            raise ValueError(
                f"no shell runs the command, so {word} would be an argument of {arguments[0]}: add"
                " --shell, or put it in quotes if it is one"
            )
    if shutil.which(arguments[0]) is None:
        raise ValueError(f"there is no program {arguments[0]}")
    return tuple(arguments)


def _is_to_end(message: HeldMessage) -> bool:
    """Whether a message's program is to be ended."""
    return message.lost or message.cancelled or message.timed_out


def _body(message: Message) -> bytes:
    if message.body_binary is not None:
        return message.body_binary
    return (message.body or "").encode()


def _end_of(errors: BinaryIO) -> str:
    """Return the end of what the program wrote to standard error.

    What it has left running may still write at the file's position, which pread leaves alone.
    """
    size = os.fstat(errors.fileno()).st_size
    end = os.pread(errors.fileno(), _ERROR_BYTES, max(0, size - _ERROR_BYTES))
    return end.decode(errors="replace").strip()


def _pass_on(errors: BinaryIO) -> None:
    """Write the program's standard error to our own, as far as that can be written."""
    position = 0
    with suppress(OSError, ValueError, AttributeError):
        size = os.fstat(errors.fileno()).st_size
        while position < size and (part := os.pread(errors.fileno(), _PART_BYTES, position)):
            sys.stderr.buffer.write(part)
            position += len(part)
        sys.stderr.flush()
