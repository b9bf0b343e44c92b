"""Runs one program until whoever started this is gone: `python keeper.py <directory> <command>`.

It answers with the program's pid. Its standard input is a pipe that nobody writes to: when that
ends, because the starter closed it or died, the program is stopped and the directory removed.
"""

import shutil
import subprocess
import sys
import threading

STOP_SECONDS = 20.0


def main() -> None:
    """Keep the program."""
    directory, *command = sys.argv[1:]
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    print(program.pid, flush=True)
    # When it ends by itself, its pid must be free: the starter looks at that.
    threading.Thread(target=program.wait, daemon=True).start()
    sys.stdin.buffer.read()
    program.terminate()
    try:
        program.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait()
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
