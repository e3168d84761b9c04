"""Stands for the `pipeprof` command: answers as planned, notes how it was called; `render` is the real one."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path


def main():
    here = Path(__file__).parent
    verb = sys.argv[1]
    if verb == "render":
        sys.exit(render())
    with (here / "calls.jsonl").open("a") as stream:
        stream.write(json.dumps({"words": sys.argv[1:], "env": dict(os.environ)}) + "\n")
    plan = json.loads((here / "plan.json").read_text()).get(verb, {})
    sys.stderr.write(plan.get("stderr", ""))
    sys.stdout.write(plan.get("stdout", ""))
    sys.stdout.flush()
    if plan.get("leaves"):
        subprocess.Popen(["sh", "-c", plan["leaves"]])
    if plan.get("signal"):
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(plan.get("exit", 0))


def render():
    from pipeprof.cli.render import render as verb
    from pipeprof.errors import PipeprofError

    try:
        verb.main(sys.argv[2:], standalone_mode=False)
    except PipeprofError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return error.exit_code
    return 0


main()
