"""rowq work --exec: the body and the facts that a program receives."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import rowq
from rowq.tools.command.execute import WITHHELD
from tests.cli.working import counts, script, work

pytestmark = pytest.mark.slow("starts a program for each fact")

# Writes the body, the environment as JSON, and the message file.
WITNESS = """
import json, os, sys
from pathlib import Path

records = Path(sys.argv[1])
(records / "body").write_bytes(sys.stdin.buffer.read())
variables = {os.fsdecode(k): v.decode() for k, v in os.environb.items()}
(records / "variables").write_text(json.dumps(variables))
(records / "facts").write_bytes(Path(os.environ["ROWQ_MESSAGE_FILE"]).read_bytes())
"""


@pytest.fixture
def witness(tmp_path: Path) -> str:
    """Return a command that writes what it receives to files of the test's directory."""
    (tmp_path / "witness.py").write_text(WITNESS)
    return f"{sys.executable} {tmp_path}/witness.py {tmp_path}"


def recorded(tmp_path: Path, name: str) -> Any:
    """Return what the witness has received."""
    return json.loads((tmp_path / name).read_text())


def test_program_receives_body_and_facts(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, witness: str
) -> None:
    sent = queue.enqueue(made, {"n": "é€"}, message_type="bezahlt €", headers={"a": ["ä", 1]})
    done = work(database_url, made, "--exec", witness, "--drain", "--json", TMPDIR=str(tmp_path))
    assert (done.returncode, counts(done)) == (0, {"processed": 1}), done.stderr
    assert (tmp_path / "body").read_text() == '{"n":"é€"}'

    facts = recorded(tmp_path, "facts")
    assert facts.pop("enqueued_at").endswith("+00:00")
    claim_id = facts.pop("claim_id")
    assert facts == {
        "queue": made,
        "message_id": sent.message_id,
        "attempt": 1,
        "message_type": "bezahlt €",
        "headers": {"a": ["ä", 1]},
        "last_error": None,
    }
    variables = recorded(tmp_path, "variables")
    passed = {k: v for k, v in variables.items() if k.startswith("ROWQ_") and k not in os.environ}
    assert not Path(passed.pop("ROWQ_MESSAGE_FILE")).exists()
    assert passed.pop("ROWQ_ENQUEUED_AT").endswith("+00:00")
    assert passed == {
        "ROWQ_QUEUE": made,
        "ROWQ_MESSAGE_ID": str(sent.message_id),
        "ROWQ_CLAIM_ID": str(claim_id),
        "ROWQ_ATTEMPT": "1",
        "ROWQ_MESSAGE_TYPE": "bezahlt €",
        "ROWQ_HEADERS": '{"a": ["\\u00e4", 1]}',
        "ROWQ_LAST_ERROR": "",
    }


def test_missing_facts_are_empty(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, witness: str
) -> None:
    queue.enqueue(made)
    done = work(database_url, made, "--exec", witness, "--drain", "--json")
    assert counts(done) == {"processed": 1}
    assert (tmp_path / "body").read_bytes() == b""
    variables = recorded(tmp_path, "variables")
    assert [variables[f"ROWQ_{name}"] for name in ("MESSAGE_TYPE", "HEADERS")] == ["", "{}"]
    facts = recorded(tmp_path, "facts")
    assert (facts["message_type"], facts["headers"]) == (None, {})


def test_long_headers_are_only_in_message_file(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, witness: str
) -> None:
    headers = {"k": "x" * 65_000}
    queue.enqueue(made, b"\0\xff", headers=headers)
    done = work(
        database_url, made, "--exec", witness, "--drain", "--json", ROWQ_HEADERS="another's"
    )
    assert counts(done) == {"processed": 1}
    assert (tmp_path / "body").read_bytes() == b"\0\xff"
    assert recorded(tmp_path, "facts")["headers"] == headers
    assert "ROWQ_HEADERS" not in recorded(tmp_path, "variables")


def test_program_environment_has_no_secrets(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, witness: str
) -> None:
    queue.enqueue(made, 1)
    secrets = {name: "s3cret" for name in WITHHELD if name != "ROWQ_URL"}
    done = work(database_url, made, "--exec", witness, "--drain", "--json", MINE="1", **secrets)
    assert counts(done) == {"processed": 1}
    variables = recorded(tmp_path, "variables")
    assert set(WITHHELD) & variables.keys() == set()
    assert database_url not in variables.values()
    assert (variables["MINE"], variables["PATH"]) == ("1", os.environ["PATH"])


def test_program_inherits_trace_of_message(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path, witness: str
) -> None:
    inherited = {"TRACEPARENT": "another's", "TRACESTATE": "another=1"}
    sent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for headers, expected in (({"traceparent": sent}, {"TRACEPARENT": sent}), (None, inherited)):
        queue.enqueue(made, 1, headers=headers)
        done = work(database_url, made, "--exec", witness, "--drain", "--json", **inherited)
        assert counts(done) == {"processed": 1}
        variables = recorded(tmp_path, "variables")
        assert {name: variables[name] for name in inherited if name in variables} == expected


def test_program_environment_is_utf8_in_any_locale(
    database_url: str, queue: rowq.Queue, made: str, tmp_path: Path
) -> None:
    queue.enqueue(made, {"n": "€"}, message_type="€")
    command = script(tmp_path / "run", f'echo "$ROWQ_MESSAGE_TYPE $(cat)" > "{tmp_path}/out"')
    latin = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "POSIX"}
    done = work(database_url, made, "--exec", command, "--drain", "--json", **latin)
    assert counts(done) == {"processed": 1}, done.stderr
    assert (tmp_path / "out").read_text() == '€ {"n":"€"}\n'
