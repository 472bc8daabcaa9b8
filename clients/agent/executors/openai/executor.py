"""Texts by any server that speaks OpenAI's API: vLLM, SGLang, llama.cpp, Ollama, LM Studio. docs/executors.md says for which tasks.

    executor.py --url http://127.0.0.1:8000/v1 --model NAME [--name NAME] [-- COMMAND THAT SERVES ...]

A command behind `--` is started, belongs to the executor's process group, and ends with it. Standard library alone.
"""

import argparse
import contextlib
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import cards  # noqa: E402
from lines import Bound, serve  # noqa: E402
from started import Started, divided  # noqa: E402
from texts import Growing, answer, requests  # noqa: E402

# The longest answer of the server that is read, in bytes.
LONGEST = 64 << 20


class Server:
    def __init__(self, url, key, within):
        self.url, self.within = url.rstrip("/"), within
        self.head = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def ask(self, path, value=None):
        """The server's answer, and its name."""
        with self.answering(path, value) as answered:
            return json.loads(answered.read(LONGEST)), answered.headers.get("Server", "")

    def hear(self, path, value):
        """The server's answer piece by piece; in one piece, if it does not stream."""
        with self.answering(path, value) as answered:
            if not answered.headers.get("Content-Type", "").startswith("text/event-stream"):
                yield json.loads(answered.read(LONGEST))
                return
            left = LONGEST
            while left > 0 and (line := answered.readline(left)):
                left -= len(line)
                said = line.decode("utf-8", "replace").strip()
                if said == "data: [DONE]":
                    return
                if said.startswith("data:"):
                    yield json.loads(said[5:])

    @contextlib.contextmanager
    def answering(self, path, value):
        asked = urllib.request.Request(f"{self.url}/{path}", None if value is None else json.dumps(value).encode(), self.head)
        try:
            with urllib.request.urlopen(asked, timeout=self.within) as answered:
                yield answered
        except urllib.error.HTTPError as error:
            said = error.read(2_000).decode("utf-8", "replace").replace("\n", " ")
            # The request is beyond the server's bounds. 401, 404 and 429 are troubles of the server itself.
            if error.code in (400, 413, 422):
                raise Bound(f"the server refuses the request: {said}") from None
            raise RuntimeError(f"the server answers {error.code}: {said}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RuntimeError(f"the server does not answer: {error}") from None


def wait(server, model, until, started):
    """Waits until the server has the model."""
    while True:
        try:
            listed, kind = server.ask("models")
            names = [one["id"] for one in listed["data"]]
            if model in names:
                return next(one for one in listed["data"] if one["id"] == model), kind
            trouble = f"the server has {', '.join(names) or 'no model'}, and not {model}: name one of them by --model"
        except (RuntimeError, Bound, KeyError, TypeError) as error:
            trouble = str(error)
        if started.ended() is not None:
            sys.exit(f"the server's command ended with {started.ended()}")
        if time.monotonic() > until:
            sys.exit(f"{server.url}: {trouble}")
        time.sleep(0.2)


def main():
    own, command = divided(sys.argv[1:])
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--url", required=True, help="up to and with /v1")
    given.add_argument("--model", required=True, help="the model's name on the server")
    given.add_argument("--name", help="its name in tasks, if different")
    given.add_argument("--key-env", help="the environment variable that holds the server's key")
    given.add_argument("--ready-within", type=float, default=600, help="seconds until the server must have the model")
    given.add_argument("--request-within", type=float, default=3_600, help="seconds that one request may take")
    given.add_argument("--extra", default="{}", help="fields for every request, as JSON: the server's own beside OpenAI's, such as top_k")
    given = given.parse_args(own)
    name, extra = given.name or given.model, json.loads(given.extra)
    key = os.environ.get(given.key_env) if given.key_env else None
    if given.key_env and not key:
        sys.exit(f"the variable {given.key_env} of --key-env is not set: set it in the node's `environment`, or leave --key-env out")
    server = Server(given.url, key, given.request_within)
    started = Started(command)
    about, kind = wait(server, given.model, time.monotonic() + given.ready_within, started)
    told = {"model": given.model, "server": kind, "root": about.get("root"), "owner": about.get("owned_by"), "extra": extra}

    def asked(request, **how):
        """The path and body of a request."""
        path, given_as = ("completions", "prompt") if request["messages"] is None else ("chat/completions", "messages")
        fields = {field: request[field] for field in ("max_tokens", "temperature", "top_p", "seed", given_as)}
        return path, {**extra, "model": given.model, **fields, "n": 1, **how}

    def complete(request):
        answered, _ = server.ask(*asked(request, stream=False))
        try:
            choice = answered["choices"][0]
            text = choice["message"]["content"] if request["messages"] is not None else choice["text"]
            if not isinstance(text, str):
                raise TypeError
            tokens = (answered.get("usage") or {}).get("completion_tokens")
            end = "length" if choice.get("finish_reason") == "length" else "stop"
        except (KeyError, IndexError, TypeError):
            raise RuntimeError(f"the server's answer is no completion: {json.dumps(answered)[:200]}") from None
        # A server that names its stack counts as another one when the name changes.
        return {"text": text, "tokens": tokens, "end": end}, answered.get("system_fingerprint")

    def grow(request, result, prints):
        """The same request, shown as it is answered."""
        text, tokens, end = "", None, None
        try:
            for said in server.hear(*asked(request, stream=True, stream_options={"include_usage": True})):
                # The result names the stack before its texts, and the server names it with the first of them.
                prints.setdefault("first", cards.fingerprint({**told, "prints": sorted(filter(None, [said.get("system_fingerprint")]))}))
                tokens = (said.get("usage") or {}).get("completion_tokens", tokens)
                for choice in said.get("choices") or []:
                    part = choice.get("delta") or choice.get("message") or {}
                    more = (choice.get("text") if request["messages"] is None else part.get("content")) or ""
                    text += more
                    result.say(more, prints["first"])
                    end = choice.get("finish_reason") or end
                if said.get("error"):
                    raise RuntimeError(f"the server fails: {json.dumps(said['error'])[:200]}")
        except Bound:
            # It refuses the request, or only to stream it.
            one, mark = complete(request)
            prints.setdefault("first", cards.fingerprint({**told, "prints": [mark] if mark else []}))
            return result.end(one["text"], one["tokens"], one["end"], prints["first"])
        if end is None:
            raise RuntimeError("the server stops before its answer ends")
        result.end(text, tokens, "length" if end == "length" else "stop", prints["first"])

    def run(task):
        others = [other for other in task["models"] if other != name]
        if others:
            raise RuntimeError(f"this executor has {name} alone, not {', '.join(others)}")
        if started.ended() is not None:
            raise RuntimeError(f"the server's command ended with {started.ended()}")
        if task["show"]:
            result, prints = Growing(task, name), {}
            for request in requests(task):
                grow(request, result, prints)
            return result.done()
        done = [complete(request) for request in requests(task)]
        prints = sorted({mark for _, mark in done if mark})
        answer(task, name, cards.fingerprint({**told, "prints": prints}), [one for one, _ in done])

    serve("openai", "1", ["gpt"], f"{name} by {kind or 'a server'} at {server.url}", run, streams=True)
    started.end()


main()
