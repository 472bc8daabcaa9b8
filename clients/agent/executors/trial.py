"""An executor as the agent would run it, for tests and measurements."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Executor:
    """A running one."""

    def __init__(self, *command, environment=None):
        command = [sys.executable, *map(str, command)]
        self.place = tempfile.TemporaryDirectory()
        env = {"PATH": os.environ["PATH"], **(environment or {})}
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, bufsize=1)
        self.ready = json.loads(self.child.stdout.readline())["ready"]
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.ended = self.child.wait(120)
        self.child.stdout.close()
        self.place.cleanup()

    def run(self, kind, given, units=1, models=(), stream=False):
        """Its answer's name, and the result, or its error; `pieces` has the text streamed before."""
        self.count += 1
        self.pieces = []
        place = Path(self.place.name)
        source, target = place / f"{self.count}.in", place / f"{self.count}.out"
        source.write_bytes(given if isinstance(given, bytes) else json.dumps(given).encode())
        task = {"id": str(self.count), "kind": kind, "units": units, "models": list(models), "deadline": 1_790_000_000, **({"stream": True} if stream else {})}
        line = json.dumps({"run": {**task, "input": str(source), "output": str(target)}})
        self.child.stdin.write(f"{line}\n")
        while True:
            ((name, said),) = json.loads(self.child.stdout.readline()).items()
            assert said["id"] == str(self.count), said
            if name != "piece":
                break
            self.pieces.append(said["text"])
        return (name, target.read_bytes()) if name == "done" else (said["fault"], said["reason"])


def golden(name):
    for path in sorted((HERE / name / "golden").glob("*.json")):
        task = json.loads(path.read_text())
        yield path.stem, (task["kind"], task["input"].encode(), task.get("units", 1), task.get("models", ()))
