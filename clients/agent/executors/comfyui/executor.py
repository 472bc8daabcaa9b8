"""Images by a ComfyUI that runs on this machine, by a workflow of the operator's. docs/executors.md has its input and output.

    executor.py --url http://127.0.0.1:8188 --workflow workflow.json --name NAME [--needs GIB] [-- COMMAND THAT SERVES ...]

The workflow is what ComfyUI exports for its API, with "$prompt", "$negative_prompt", "$seed", "$steps", "$guidance", "$width" and "$height" as
values where a task's go. A command behind `--` is started, belongs to the executor's process group, and ends with it. Standard library alone.
"""

import argparse
import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))

import cards  # noqa: E402
from lines import Bound, serve  # noqa: E402
from pictures import picture  # noqa: E402
from started import Started, divided  # noqa: E402

# The longest answer of the server that is read, in bytes.
LONGEST = 256 << 20
# The chunks that determine an image: ComfyUI adds its workflow, which is unique to each request.
LOOKS = (b"IHDR", b"IDAT", b"IEND")


class Server:
    def __init__(self, url):
        self.url = url.rstrip("/")

    def ask(self, path, value=None):
        """The bytes of its answer."""
        asked = urllib.request.Request(f"{self.url}/{path}", None if value is None else json.dumps(value).encode(), {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answered:
                return answered.read(LONGEST)
        except urllib.error.HTTPError as error:
            said = error.read(2_000).decode("utf-8", "replace").replace("\n", " ")
            # Tasks only choose values within bounds, so a refusal concerns the operator's workflow.
            raise RuntimeError(f"ComfyUI answers {error.code}: {said}") from None
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeError(f"ComfyUI does not answer: {error}") from None

    def json(self, path, value=None):
        try:
            return json.loads(self.ask(path, value))
        except ValueError as error:
            raise RuntimeError(f"ComfyUI answers no JSON: {error}") from None


def plain(png):
    """The image of a PNG file, as tasks' results are: red, green and blue of 8 bits, and nothing beside it."""
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise RuntimeError("the workflow saves no PNG")
    if png[24:26] != b"\x08\x02":
        raise RuntimeError("the workflow saves other images than of red, green and blue with 8 bits each")
    at, kept = 8, [png[:8]]
    while at + 12 <= len(png):
        end = at + 12 + int.from_bytes(png[at : at + 4], "big")
        if png[at + 4 : at + 8] in LOOKS:
            kept.append(png[at:end])
        at = end
    return b"".join(kept)


def filled(part, values):
    """A workflow with a task's values in it."""
    if isinstance(part, dict):
        return {key: filled(inner, values) for key, inner in part.items()}
    if isinstance(part, list):
        return [filled(inner, values) for inner in part]
    return values.get(part, part) if isinstance(part, str) else part


def wait(server, until, started):
    """Its system, once it answers."""
    while True:
        try:
            return server.json("system_stats")
        except RuntimeError as error:
            if started.ended() is not None:
                sys.exit(f"ComfyUI's command ended with {started.ended()}")
            if time.monotonic() > until:
                sys.exit(f"{server.url}: {error}")
        time.sleep(0.2)


def main():
    own, command = divided(sys.argv[1:])
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("--url", required=True)
    given.add_argument("--workflow", required=True, type=Path, help="as ComfyUI exports it for its API, with $prompt and the others in it")
    given.add_argument("--name", required=True, help="the model's name in tasks")
    given.add_argument("--needs", type=float, default=0, help="GiB that the workflow takes of the card")
    given.add_argument("--largest", type=int, default=1_024, help="pixels of a side at most")
    given.add_argument("--ready-within", type=float, default=600, help="seconds until ComfyUI must answer")
    given.add_argument("--request-within", type=float, default=3_600, help="seconds that one image may take")
    given.add_argument("--output", type=Path, help="ComfyUI's output folder; images are removed from it, which stay for ever otherwise")
    given = given.parse_args(own)
    workflow = json.loads(given.workflow.read_text())
    text = json.dumps(workflow)
    missing = [name for name in ("prompt", "seed", "width", "height") if f'"${name}"' not in text]
    if missing:
        sys.exit(f"{given.workflow} has no place for {', '.join(missing)}: write \"${missing[0]}\" as a value")
    saves = [key for key, part in workflow.items() if part.get("class_type") == "SaveImage"]
    if len(saves) != 1:
        sys.exit(f"{given.workflow} has {len(saves)} nodes SaveImage, and one saves the result")
    server = Server(given.url)
    started = Started(command)
    about = wait(server, time.monotonic() + given.ready_within, started)
    device = (about.get("devices") or [{}])[0]
    if device.get("vram_free") is not None:
        instead = "take a smaller model, or a card with more memory that nothing else uses"
        cards.or_exit(lambda: cards.fits({"--needs": int(given.needs * cards.GIB)}, device["vram_free"], device.get("name", "the card"), instead), given.name)
    system = about.get("system", {})
    told = {name: system.get(name) for name in ("comfyui_version", "pytorch_version", "python_version")} | {"card": device.get("name")}

    def draw(values):
        here = filled(workflow, values)
        # Saved anew each time, even if everything before it is cached.
        here[saves[0]]["inputs"]["filename_prefix"] = f"muster-{uuid.uuid4().hex}"
        asked = server.json("prompt", {"prompt": here, "client_id": "muster"})
        which, until = asked["prompt_id"], time.monotonic() + given.request_within
        while not (done := server.json(f"history/{which}").get(which)):
            if time.monotonic() > until:
                raise RuntimeError(f"ComfyUI has not drawn it in {given.request_within:.0f} s")
            time.sleep(0.05)
        server.ask("history", {"delete": [which]})
        images = done.get("outputs", {}).get(saves[0], {}).get("images", [])
        if len(images) != 1:
            raise RuntimeError(f"the workflow came to {len(images)} images, not one: {json.dumps(done.get('status'))[:500]}")
        where = {name: images[0].get(name, "") for name in ("filename", "subfolder", "type")}
        image = plain(server.ask(f"view?{urllib.parse.urlencode(where)}"))
        if given.output:
            try:
                (given.output / where["subfolder"] / where["filename"]).unlink()
            except OSError as error:
                raise RuntimeError(f"the image cannot be removed from ComfyUI's output folder: {error}") from None
        return image

    def run(task):
        others = [other for other in task["models"] if other != given.name]
        if others:
            raise RuntimeError(f"this executor has {given.name} alone, not {', '.join(others)}")
        values, named = picture(task, given.largest)
        values["negative_prompt"] = values["negative_prompt"] or ""
        for name in ("negative_prompt", "steps", "guidance"):
            # Another node's workflow may have a place for it.
            if name in named and f'"${name}"' not in text:
                raise Bound(f"`{name}` is fixed by this node's workflow")
        seed = values["seed"]
        drawn = [draw({f"${name}": one for name, one in {**values, "seed": (seed + at) % 2**32}.items()}) for at in range(task["units"])]
        Path(task["output"]).write_bytes(b"".join(drawn))

    serve("comfyui", "1", ["images"], f"{given.name}, {cards.in_words(told)}: {cards.fingerprint({**told, 'workflow': workflow})}", run)
    started.end()


main()
