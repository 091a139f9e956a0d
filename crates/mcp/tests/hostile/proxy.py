"""Stands between a client and a server on pipes, and does one thing wrong at one message: the arguments are the number of
the message, what happens to it, and the command of the server."""

import subprocess
import sys
import threading
import time

AT, FAULT, COMMAND = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
SERVER = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
LOCK = threading.Lock()
COUNT = 0


def carry(source, target):
    global COUNT
    for line in iter(source.readline, b""):
        with LOCK:
            number = COUNT
            COUNT += 1
        copies = 1
        if number == AT:
            if FAULT == "drop":
                copies = 0
            elif FAULT == "delay":
                time.sleep(0.3)
            elif FAULT == "twice":
                copies = 2
            elif FAULT == "garble":
                line = line[: len(line) // 2] + b"\n"
            elif FAULT == "close":
                SERVER.kill()
                sys.stdout.flush()
                # No clean-up: the other thread may hold any lock.
                import os

                os._exit(1)
        for _ in range(copies):
            target.write(line)
            target.flush()


def main():
    threading.Thread(target=carry, args=(SERVER.stdout, sys.stdout.buffer), daemon=True).start()
    try:
        carry(sys.stdin.buffer, SERVER.stdin)
        SERVER.stdin.close()
        SERVER.wait(timeout=5)
    except (BrokenPipeError, subprocess.TimeoutExpired):
        SERVER.kill()


main()
