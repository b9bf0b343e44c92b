"""Run a program until the parent process ends: `python watchdog.py <directory> <command>`.

It prints the program's pid. When its standard input ends, because the parent closed it or died, it
stops the program and removes the directory.
"""

import shutil
import subprocess
import sys
import threading

STOP_SECONDS = 20.0


def main() -> None:
    """Run the program."""
    directory, *command = sys.argv[1:]
    program = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    print(program.pid, flush=True)
    # Reap the program when it ends: the parent checks whether its pid is free.
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
