"""An executor for the agent's tests: answers its input turned round, or misbehaves as a file tells it to."""
import json, os, signal, struct, sys, time, zlib

behaviour = sys.argv[1]
runs, starts = (os.path.join(os.path.dirname(behaviour), name) for name in ("runs", "starts"))


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def picture(note):
    """A grey PNG of 8 by 8 pixels, whose hash is 1, with a note in it."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head, rows = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0), zlib.compress((b"\0" + b"\x80" * 24) * 8)
    chunks = chunk(b"IHDR", head) + chunk(b"tEXt", b"note\0" + note) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunks


with open(starts, "a") as file:
    file.write(f"{os.getpid()}\n")
while "loads" in open(behaviour).read().split():
    # A model that takes its time.
    time.sleep(0.1)
assert not any("KEY" in name for name in os.environ), "the agent's keys are not an executor's"
say({"ready": {"name": "reverse", "version": "1", "kinds": ["gpt", "images"], "stack": "python", "streams": True}})
for line in sys.stdin:
    run = json.loads(line)["run"]
    does = open(behaviour).read().strip()
    if not run["id"].startswith("golden-"):
        with open(runs, "a") as file:
            file.write(run["id"] + "\n")
        if does == "hangs":
            time.sleep(3600)
        if does == "stays":
            # A child that looks at nobody, and its own child.
            child = os.fork()
            with open(runs + ".pids", "a") as file:
                file.write(f"{os.getpid()}\n")
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE})
            time.sleep(3600)
        if does == "ends":
            sys.exit(3)
        if does.split()[0] in ("fails", "refuses"):
            fault = "node" if does.split()[0] == "fails" else "task"
            say({"failed": {"id": run["id"], "fault": fault, "reason": "as it was told"}})
            continue
        if does == "makes a directory":
            os.mkdir(run["output"])
            say({"done": {"id": run["id"]}})
            continue
        if does == "goes on writing":
            with open(run["output"], "w") as file:
                file.write("begun")
                file.flush()
                say({"done": {"id": run["id"]}})
                while open(behaviour).read().strip() == does:
                    file.write(", and more")
                    file.flush()
            continue
        if does == "replaces its input":
            os.remove(run["input"])
            os.mkdir(run["input"])
            say({"failed": {"id": run["id"], "fault": "task", "reason": "as it was told"}})
            continue
        if does.startswith("slow"):
            time.sleep(float(does.split()[1]))
        if does == "cheats":
            does = "differs"
    with open(run["input"], encoding="utf-8") as file:
        text = file.read()
    if text == "what no executor survives":
        sys.exit(3)
    if does.startswith("differs on ") and does.removeprefix("differs on ") in text:
        does = "differs"
    answer = (text[::-1] + {"differs": "!", "rolls": os.urandom(8).hex()}.get(does, "")).encode()
    if does.startswith("shows") and run.get("stream"):
        # The first half, then the other when it is told to go on; or text that it does not answer.
        shown = answer.decode() if does == "shows" else "another text"
        say({"piece": {"id": run["id"], "text": shown[: len(shown) // 2]}})
        while open(behaviour).read().strip() == does:
            time.sleep(0.02)
        say({"piece": {"id": run["id"], "text": shown[len(shown) // 2 :]}})
    if run["kind"] == "images":
        answer = b"".join(picture(answer) for _ in range(run["units"]))
    with open(run["output"], "wb") as file:
        file.write(answer)
    say({"done": {"id": run["id"]}})
