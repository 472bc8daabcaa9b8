"""An executor as the agent would run it, and a server that answers as those of models do, for tests and measurements."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Executor:
    """A running one."""

    def __init__(self, *command, environment=None):
        command = [sys.executable, *map(str, command)]
        self.place = tempfile.TemporaryDirectory()
        env = {"PATH": os.environ["PATH"], **(environment or {})}
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, bufsize=1)
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(command)} ended with {self.child.wait()} before it was ready")
        self.ready = json.loads(line)["ready"]
        self.count = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.ended = self.child.wait(120)
        self.child.stdout.close()
        self.place.cleanup()

    def run(self, kind, given, units=1, models=(), stream=False):
        """Its answer's name, and the result, or what it says instead; in `pieces` what it shows before, in `moments` when."""
        self.count += 1
        self.pieces, self.moments = [], []
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
            self.moments.append(time.monotonic())
        return (name, target.read_bytes()) if name == "done" else (said["fault"], said["reason"])


def golden(name):
    for path in sorted((HERE / name / "golden").glob("*.json")):
        task = json.loads(path.read_text())
        yield path.stem, (task["kind"], task["input"].encode(), task.get("units", 1), task.get("models", ()))


class LikeOpenAI:
    """A server of texts that checks requests as the real ones do. Its texts mean nothing; each token takes `pause` seconds."""

    def __init__(self, port=0, longest=100, pause=0.0, streams=None):
        self.asked, self.print, self.answers, self.streams, self.longest, self.pause = [], "fp_1", {}, streams, longest, pause
        like = self

        class Handler(BaseHTTPRequestHandler):
            server_version, sys_version, protocol_version = "like-vllm", "", "HTTP/1.1"

            def log_message(self, *_):
                pass

            def say(self, status, value):
                body = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                found = {"object": "list", "data": [{"id": "small", "object": "model", "created": 1, "owned_by": "us"}]}
                self.say(200, found) if self.path == "/v1/models" else self.say(404, {"error": {"message": "no such path"}})

            def stream(self, text):
                if like.streams == "refused":
                    return self.say(400, {"error": {"message": "no streams here"}})
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream; charset=utf-8")
                self.send_header("Connection", "close")
                self.end_headers()

                def event(value):
                    self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())

                for place, letter in enumerate(text):
                    time.sleep(like.pause)
                    said = {"text": letter} if self.path == "/v1/completions" else {"delta": {"content": letter}}
                    end = "length" if place == len(text) - 1 and like.streams != "cut" else None
                    event({"choices": [{"index": 0, "finish_reason": end, **said}], "system_fingerprint": like.print, "usage": None})
                    if like.streams == "fails":
                        return event({"error": {"message": "out of memory"}})
                event({"choices": [], "usage": {"completion_tokens": len(text)}})
                self.wfile.write(b"data: [DONE]\n\n")

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                like.asked.append((self.path, asked, self.headers.get("Authorization")))
                if self.path in like.answers:
                    return self.say(*like.answers[self.path])
                if asked["model"] != "small":
                    return self.say(404, {"error": {"message": "no such model"}})
                if asked["max_tokens"] > like.longest:
                    return self.say(400, {"error": {"message": "longer than the context", "type": "invalid_request_error"}})
                given = asked["prompt"] if self.path == "/v1/completions" else asked["messages"][-1]["content"]
                seed = json.dumps([given, asked["seed"], asked["temperature"]])
                text = hashlib.sha256(seed.encode()).hexdigest()
                while len(text) < asked["max_tokens"]:
                    text += hashlib.sha256(f"{seed} {len(text)}".encode()).hexdigest()
                text = text[: asked["max_tokens"]]
                said = {"text": text} if self.path == "/v1/completions" else {"message": {"role": "assistant", "content": text}}
                choice = {"index": 0, "finish_reason": "length", **said}
                if asked["stream"] and like.streams is not None:
                    return self.stream(text)
                time.sleep(like.pause * len(text))
                self.say(200, {"id": "x", "choices": [choice], "usage": {"completion_tokens": asked["max_tokens"]}, "system_fingerprint": like.print})

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
