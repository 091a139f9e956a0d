"""A server that follows orders: the first argument says how it starts, its tools say how it continues."""

import json
import os
import signal
import subprocess
import sys
import time

START = sys.argv[1]
OUT = sys.stdout.buffer


def write(message):
    OUT.write(json.dumps(message).encode() + b"\n")
    OUT.flush()


def answer(identifier, result):
    write({"jsonrpc": "2.0", "id": identifier, "result": result})


def said(identifier, text):
    answer(identifier, {"content": [{"type": "text", "text": text}]})


def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(method, params):
    """Asks the client and waits for its answer."""
    write({"jsonrpc": "2.0", "id": "asked", "method": method, "params": params})
    while True:
        message = read()
        if message.get("id") == "asked":
            return {key: message[key] for key in ("result", "error") if key in message}


def names():
    if START == "many":
        return [str(number) for number in range(2000)]
    if START == "double":
        return ["echo", "echo", "other"]
    return ["echo"]


def tools(cursor):
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names()]
    if START == "endless":
        number = int(cursor or 0)
        return {"tools": [{"name": f"t{number}", "inputSchema": {}}], "nextCursor": str(number + 1)}
    if START == "circle":
        return {"tools": listed, "nextCursor": "again"}
    if START == "odd":
        return {"tools": [{"name": 7}, {"name": "good", "inputSchema": {}, "_meta": {"a/b": 1}}, None]}
    return {"tools": listed}


def call(identifier, name, arguments, meta):
    if name == "echo":
        said(identifier, arguments.get("text", ""))
    elif name == "twice":
        said(identifier, "first")
        said(identifier, "second")
    elif name == "wrong":
        said(identifier + 1000, "not yours")
        said("x", "not yours either")
        answer(None, {})
        said(identifier, "yours")
    elif name == "noise":
        for number in range(arguments["lines"]):
            OUT.write(b"log line %d\n" % number)
        said(identifier, "still here")
    elif name == "crash":
        sys.stderr.write("boom\n")
        sys.stderr.flush()
        os._exit(3)
    elif name == "close":
        os.close(1)
        time.sleep(600)
    elif name == "huge":
        said(identifier, "x" * arguments["bytes"])
    elif name == "slow":
        for step in range(arguments["steps"]):
            time.sleep(arguments["pause"])
            write({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                "progressToken": meta.get("progressToken"), "progress": step + 1, "total": arguments["steps"]}})
        said(identifier, "done")
    elif name == "never":
        while True:
            message = read()
            if message.get("method") == "notifications/cancelled":
                with open(arguments["record"], "w") as record:
                    record.write(str(message["params"]["requestId"] == identifier))
                return
    elif name == "ask":
        said(identifier, json.dumps(ask(arguments["method"], arguments["params"])))
    elif name == "log":
        for number in range(arguments["count"]):
            write({"jsonrpc": "2.0", "method": "notifications/message", "params": {
                "level": "warning", "logger": "l", "data": "y" * 100000}})
        said(identifier, "logged")
    elif name == "change":
        for what in ("tools", "resources", "prompts"):
            write({"jsonrpc": "2.0", "method": f"notifications/{what}/list_changed"})
        write({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}})
        said(identifier, "changed")
    elif name == "environment":
        said(identifier, json.dumps({"variables": dict(os.environ), "cwd": os.getcwd()}))
    elif name == "child":
        started = subprocess.Popen(["sleep", "1000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        said(identifier, str(started.pid))
    elif name == "error":
        write({"jsonrpc": "2.0", "id": identifier, "error": {"code": -32099, "message": "refused"}})
    elif name == "odd_result":
        answer(identifier, {"content": "no list"})
    else:
        write({"jsonrpc": "2.0", "id": identifier, "error": {"code": -32601, "message": "unknown tool"}})


def handle(message):
    method, identifier = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method == "initialize":
        version = "1999-01-01" if START == "old" else params["protocolVersion"]
        if START == "refuse":
            return write({"jsonrpc": "2.0", "id": identifier, "error": {"code": -32000, "message": "go away"}})
        if START == "stranger":
            identifier = 99
        answer(identifier, {"protocolVersion": version, "capabilities": {"tools": {}},
                            "serverInfo": {"name": "hostile", "version": "1"}})
    elif method == "tools/list":
        answer(identifier, tools(params.get("cursor")))
    elif method == "tools/call":
        call(identifier, params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    elif identifier is not None and method:
        answer(identifier, {})


def main():
    if START == "exit":
        sys.stderr.write("no licence\n")
        sys.exit(7)
    if START == "silent":
        sys.stderr.write("waiting for something\n")
        sys.stderr.flush()
        time.sleep(600)
    if START == "nonsense":
        while True:
            OUT.write(b"all work and no play\n")
    if START == "flood":
        while True:
            OUT.write(b"x" * 65536)
    if START == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    while True:
        try:
            handle(read())
        except SystemExit:
            if START != "stubborn":
                raise
            time.sleep(600)


try:
    main()
except (BrokenPipeError, KeyboardInterrupt):
    pass
