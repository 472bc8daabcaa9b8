"""A card at work for Muster: `gpu.sh work`. A development node, a contract, and an agent with fourteen nodes on one card: seven share a process that
writes texts, seven one that draws images. Nodes have to join as what NVIDIA's tools say of the card. Tasks of both kinds run under all four
policies, whose results have to be the executor's own; a text is read while it is made; then comes a queue of long texts, whose seconds and tokens
are compared with those of the same executor asked directly. It prints its tables, and keeps its numbers in docs/research/cards.json.

Without a card the agent is told of one by the tests' substitute of NVIDIA's library (tests/nvml.c), and executors run on the processor; with
--plain they are `images`, and `openai` before a small server of its own, which need no torch.
"""

import argparse
import hashlib
import itertools
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE))

from determinism import CARDS, at_work, hashes  # noqa: E402

# The key of every nitro development chain, which is public.
OWNER = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659"
POLICIES = ("single", "sampled", "replicated", "rated")
# Milliseconds between two blocks, as on Arbitrum.
BLOCK = 0.25
# Tasks of each kind: the fewest that a rated task asks for.
SHARERS = 7
SUBSTITUTE = "GPU-11111111-1111-1111-1111-111111111111|Substitute of a card|24564|1024|41|73|0\n"


def serve(port):
    """A server of texts for --plain, at whose words one can look."""
    from trial import LikeOpenAI

    LikeOpenAI(int(port), longest=4_096, pause=0.02, streams="as it is made")
    threading.Event().wait()


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def record(file, command):
    """An executor's lines passed on, with the moments at which tasks began and ended put into a file."""
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def note(what, line):
        with open(file, "a") as opened:
            opened.write(json.dumps({"at": time.time(), what: json.loads(line)}) + "\n")

    def answers():
        for line in child.stdout:
            note("said", line)
            print(line, end="", flush=True)

    passing = threading.Thread(target=answers)
    passing.start()
    for line in sys.stdin:
        note("asked", line)
        child.stdin.write(line)
    child.stdin.close()
    passing.join()
    return child.wait()


def spans(file):
    """Seconds of each task that an executor ran, golden ones too: begun, ended."""
    begun, found = {}, []
    for line in file.read_text().splitlines():
        noted = json.loads(line)
        if "asked" in noted:
            begun[noted["asked"]["run"]["id"]] = noted["at"]
        elif "done" in noted["said"]:
            found.append((begun[noted["said"]["done"]["id"]], noted["at"]))
    return found


def programs():
    """The folder of the programs: BUILT, or cargo's."""
    place = Path(os.environ.get("BUILT") or Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug")
    found = {name: place / name for name in ("muster", "muster-agent", "muster-dev", "muster-devnode")}
    missing = [name for name, file in found.items() if not file.is_file()]
    if missing:
        sys.exit(f"gpu.sh work: {', '.join(missing)} not in {place}: cargo build --workspace --bins, or BUILT=...")
    if not (ROOT / "build/manifest.json").is_file():
        sys.exit("gpu.sh work: there is no contract to deploy: script/build")
    return found


class Network:
    """A chain, a contract on it, and accounts with ether."""

    def __init__(self, place):
        self.place, self.built, self.children = place, programs(), []
        with open(place / "node.log", "w") as log:
            self.children.append(subprocess.Popen([self.built["muster-devnode"], "--port", "0"], stdout=log, stderr=log))
        self.url = self.until("the chain's node", lambda: next((line.split()[2] for line in (place / "node.log").read_text().splitlines() if line.startswith("Listening on")), None))
        settings = {"MIN_PRICE": "1", "MIN_STAKE": "0.0000000004", "STAKE_UNIT": "1000000", "DEPLOYMENTS": str(place / "deployments")}
        self.say("muster-dev", "deploy", key=OWNER, **settings)
        (deployed,) = (place / "deployments").glob("*.json")
        self.muster = json.loads(deployed.read_text())["address"]
        threading.Thread(target=self.blocks, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The agent before the chain, to which it still sends calls.
        for child in reversed(self.children):
            child.terminate()
            try:
                child.wait(60)
            except subprocess.TimeoutExpired:
                child.kill()
        self.children = []

    def rpc(self, method, *given):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given}).encode()
        asked = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answered:
            return json.loads(answered.read())["result"]

    def blocks(self):
        while self.children:
            time.sleep(BLOCK)
            try:
                self.rpc("evm_mine")
            except OSError:
                continue

    def until(self, what, look, within=600):
        """Waits for the result of `look`."""
        end = time.monotonic() + within
        while not (found := look()):
            ended = [child.args[0] for child in self.children if child.poll() is not None]
            if ended or time.monotonic() > end:
                logs = "\n".join("".join(file.read_text().splitlines(True)[-20:]) for file in self.place.glob("*.log"))
                sys.exit(f"gpu.sh work: waited in vain for {what}; ended: {ended}\n{logs}")
            time.sleep(0.1)
        return found

    def environment(self, key, **environment):
        more = {"RPC_URL": self.url, "ETH_RPC_URL": self.url, "MUSTER": getattr(self, "muster", ""), "MUSTER_HOME": str(self.place / "home")}
        return {"PATH": os.environ["PATH"], "HOME": str(self.place), "NO_COLOR": "1", "PRIVATE_KEY": key, **more, **environment}

    def hear(self, program, *arguments, key):
        """What a program prints, by the seconds since it began."""
        begun, heard = time.monotonic(), []
        child = subprocess.Popen([self.built[program], *arguments], cwd=ROOT, env=self.environment(key), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while said := os.read(child.stdout.fileno(), 1 << 16):
            heard.append((time.monotonic() - begun, said))
        _, told = child.communicate()
        if child.returncode:
            sys.exit(f"gpu.sh work: {program} {' '.join(map(str, arguments))}: {told.decode()}")
        return heard, time.monotonic() - begun

    def joined(self):
        """The number of nodes; None while the chain's node does not answer, since executors that load their models leave it little time."""
        asked = subprocess.run([self.built["muster"], "network", "--json"], cwd=ROOT, env=self.environment(OWNER), capture_output=True, text=True)
        return json.loads(asked.stdout)["nodesJoined"] if asked.returncode == 0 else None

    def say(self, program, *arguments, key, **environment):
        """What a program prints."""
        env = self.environment(key, **environment)
        ended = subprocess.run([self.built[program], *arguments], cwd=ROOT, env=env, capture_output=True, text=True)
        if ended.returncode:
            sys.exit(f"gpu.sh work: {program} {' '.join(map(str, arguments))}: {ended.stdout}{ended.stderr}")
        return ended.stdout

    def account(self):
        key = "0x" + secrets.token_hex(32)
        address = json.loads(self.say("muster", "account", "show", "--json", key=key))["address"]
        self.rpc("anvil_setBalance", address, hex(10**21))
        return key


class Card:
    """The card's and the machine's figures while it works."""

    def __init__(self, place):
        self.real = shutil.which("nvidia-smi") is not None
        self.environment, self.place, self.child = {}, place, None
        if self.real:
            ask = ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu,memory.used,temperature.gpu,power.draw", "--format=csv,noheader,nounits", "-l", "1"]
            self.child = subprocess.Popen(ask, stdout=open(place / "nvidia-smi", "w"))
            ask = ["nvidia-smi", "--id=0", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
            self.name, mib = subprocess.run(ask, check=True, capture_output=True, text=True).stdout.strip().rsplit(", ", 1)
        else:
            subprocess.run(["cc", "-shared", "-fPIC", "-o", place / "libnvidia-ml.so.1", ROOT / "clients/agent/tests/nvml.c"], check=True)
            (place / "card").write_text(SUBSTITUTE)
            _, self.name, mib = SUBSTITUTE.split("|")[:3]
            self.environment = {"LD_LIBRARY_PATH": str(place), "NVML_CARDS": str(place / "card")}
        self.mib = int(mib)

    def is_joined(self, told):
        """Ends, unless a node has joined as this card: by its name, with all its memory to the GiB."""
        name, vram = told["gpu"].split("+")[0], told["vram"]
        if name != self.name or abs(vram * 1024 - self.mib) >= 1024:
            sys.exit(f"gpu.sh work: the node has joined as {name!r} of {vram} GiB, and the card is {self.name!r} of {self.mib} MiB")

    def processes(self):
        """Memory of each process on the card, in MiB."""
        ask = ["nvidia-smi", "--id=0", "--query-compute-apps=used_memory", "--format=csv,noheader,nounits"]
        return [line.strip() for line in subprocess.run(ask, capture_output=True, text=True).stdout.splitlines()] if self.real else []

    def told(self):
        """Means and maxima of nvidia-smi's figures."""
        if self.child is None:
            return None
        self.child.terminate()
        self.child.wait()
        rows = []
        for line in (self.place / "nvidia-smi").read_text().splitlines():
            try:
                rows.append([float(part) for part in line.split(",")])
            except ValueError:
                continue
        return {name: [sum(column) / len(column), max(column)] for name, column in zip(("busy", "mib", "degrees", "watts"), zip(*rows, strict=True), strict=False)}


def executors(place, given):
    """By kind: the command, its golden tasks, an input, and long ones."""
    if given.plain:
        url, served = "http://127.0.0.1:{port}/v1", [sys.executable, "-B", __file__, "serve", "{port}"]
        texts = [sys.executable, "-B", __file__, "at", sys.executable, "-B", HERE / "openai/executor.py", "--url", url, "--model", "small", "--", *served]
        images = [sys.executable, "-B", HERE / "images/executor.py"]
        golden = place / "golden"
        golden.mkdir()
        written = {"prompt": "The sea today:", "max_tokens": 64}
        (golden / "one.json").write_text(json.dumps({"kind": "gpt", "input": json.dumps({**written, "seed": 7})}))
        drawn = {"prompt": "hills", "seed": 3, "width": 64, "height": 64}

        def plain(tokens):
            return [{"prompt": f"{at}: the sea today", "max_tokens": tokens, "seed": at} for at in range(given.queue)]

        return {"gpt": (texts, golden, written), "images": (images, HERE / "images/golden", drawn)}, plain
    import seeded
    import torch

    import cards

    device = cards.device_of(torch, "auto")
    card = device == "cuda"
    size, shape = given.llama or ("1b" if card else "small"), given.diffusion or ("sdxl" if card else "tiny")
    print(f"making models: llama {size}, diffusion {shape}", file=sys.stderr, flush=True)
    seeded.llama(size, place / "llama", dtype=torch.bfloat16 if card else torch.float32)
    seeded.diffusion(shape, place / "diffusion")
    python, largest = [sys.executable, "-B"], "1024" if card else "64"
    common = ["--device", device]
    texts = [*python, HERE / "transformers/executor.py", "--model", place / "llama", "--name", "us/llama", "--context", "4352", *common]
    images = [*python, HERE / "diffusers/executor.py", "--model", place / "diffusion", "--name", "us/diffusion", "--largest", largest, *common]
    golden = place / "golden"
    golden.mkdir()
    side = int(largest)
    drawn = {"prompt": "a lighthouse", "seed": 7, "steps": 4, "width": side, "height": side}
    (golden / "one.json").write_text(json.dumps({"kind": "images", "units": 1, "input": json.dumps(drawn)}))
    written = {"prompt": "The sea today:", "max_tokens": 64}

    def long(tokens):
        return [{"prompt": f"{at}: the sea today", "max_tokens": tokens, "temperature": 1, "seed": at} for at in range(given.queue)]

    return {"gpt": (texts, HERE / "transformers/golden", written), "images": (images, golden, {**drawn, "seed": 3})}, long


def configuration(network, place, kinds, keys, ports):
    """The agent's: a node for each kind on the card, and more that share its executor."""
    metrics, shown = ports
    text = f'home = "{place}/state"\nrpc = ["{network.url}"]\nmuster = "{network.muster}"\nlisten = "127.0.0.1:{metrics}"\ndrive_within = 2\n'
    text += f'[stream]\nlisten = "127.0.0.1:{shown}"\nurl = "http://127.0.0.1:{shown}/stream"\n'
    text += f'[store]\nget = ["{place}/store"]\nput = ["{place}/store"]\n'
    for kind, (command, golden, _) in kinds.items():
        whole = [sys.executable, "-B", __file__, "record", place / f"{kind}.spans", *command]
        common = 'stake = "0.000000004 ether"\n'
        text += f'[[node]]\nname = "{kind}"\nkey_env = "KEY_{kind}_0"\ngpu = "0"\nbeside = true\n{common}[node.executor]\n'
        text += f"command = {json.dumps([str(part) for part in whole])}\ngolden = {json.dumps(str(golden))}\nready_within = 1800\n"
        for at in range(1, SHARERS):
            text += f'[[node]]\nname = "{kind}{at}"\nkey_env = "KEY_{kind}_{at}"\nshares = "{kind}"\n{common}'
    (place / "agent.toml").write_text(text)
    return {f"KEY_{kind}_{at}": key for (kind, at), key in keys.items()}


def read_along(network, place, group, text, key):
    """Has a text made, and reads it meanwhile: how many parts came before its end, and when."""
    (place / "story").write_text(json.dumps(text))
    out = place / "story.out"
    task = ["task", "run", "--stream", "--inside", "--kind", "gpt", "--gpu", str(group), "--input", place / "story", "--store", place / "store", "--out", out]
    heard, whole = network.hear("muster", *task, key=key)
    said, result = b"".join(part for _, part in heard), json.loads(out.read_bytes())
    texts = "".join(answer["text"] for answer in result["answers"])
    # The command passes on no signs that would steer a terminal.
    told = "".join("\ufffd" if unicodedata.category(sign) == "Cc" and sign not in "\n\t" else sign for sign in texts).encode() + b"\n"
    # The report of the task's creation comes before its text.
    report = len(said) - len(told)
    if not said.endswith(told) or not said.startswith(b"task for ") or said[report - 1 : report] != b"\n":
        sys.exit(f"gpu.sh work: what was shown is not the answer: {said!r}, {texts!r}")
    ends = itertools.accumulate(len(part) for _, part in heard)
    times = [at for (at, _), end in zip(heard, ends) if end > report]
    parts, first, last = len(times), times[0], times[-1]
    if parts < 4 or last - first < 0.2:
        sys.exit(f"gpu.sh work: the text did not come bit by bit: {parts} parts within {last - first:.2f} s")
    return {"parts": parts, "first": first, "last": last, "whole": whole}


def measured(port):
    """Of the agent's metrics those of cards and of streams."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answered:
        lines = [line.split() for line in answered.read().decode().splitlines() if line.startswith("muster_agent_")]
    found = {}
    for name, value in lines:
        name = name.removeprefix("muster_agent_").split("{")[0]
        if name.startswith(("gpu_", "stream")):
            found[name] = float(value)
    return found


def work(arguments):
    given = argparse.ArgumentParser(prog="gpu.sh work")
    given.add_argument("--plain", action="store_true", help="executors that need no torch, and no numbers kept: a test of this program")
    given.add_argument("--dry", action="store_true", help="small models, a short queue, and no numbers kept: all that a card is asked, on a processor in minutes")
    given.add_argument("--llama", help="as of gpu.sh determinism")
    given.add_argument("--diffusion", help="as of gpu.sh determinism")
    given.add_argument("--queue", type=int, default=6, help="long texts")
    given.add_argument("--seconds", type=float, default=10, help="what each of them takes, about")
    given = given.parse_args(arguments)
    if given.dry:
        # The tiny model of texts says single bytes, of which a stream shows none before the next space.
        given.llama, given.diffusion = given.llama or "small", given.diffusion or "tiny"
    from trial import Executor

    zero = time.monotonic()

    def say(text):
        print(f"{time.monotonic() - zero:.0f} s: {text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "store").mkdir()
        kinds, long = executors(place, given)
        # Without Muster first: each executor's answers, and their speed.
        direct, alone = {}, []

        def start(kind):
            return kind, Executor(*kinds[kind][0][1:], environment={"HOME": folder})

        with ThreadPoolExecutor() as pool, ExitStack() as running:
            started = {kind: running.enter_context(executor) for kind, executor in list(pool.map(start, kinds))}
            say("executors are ready")
            for kind, executor in started.items():
                name, direct[kind] = executor.run(kind, kinds[kind][2])
                assert name == "done", direct[kind]
            writer, words, wanted = started["gpt"], 64 if given.dry or given.plain else 256, []
            # The first of a length loads code into the card.
            for _ in range(2):
                begun = time.monotonic()
                name, result = writer.run("gpt", long(words)[0])
                assert name == "done", result
                tokens = min(4_096, max(16, round(words * given.seconds / (time.monotonic() - begun))))
            for one in long(tokens):
                begun = time.monotonic()
                name, result = writer.run("gpt", one)
                assert name == "done", result
                alone.append(time.monotonic() - begun)
                wanted.append(result)
            say(f"{given.queue} texts of {tokens} tokens without Muster: {alone}")
        card = Card(place)
        with Network(place) as network:
            said = network.say("muster-agent", "init", "--config", str(place / "init.toml"), "--rpc", network.url, "--muster", network.muster, key=OWNER, **card.environment)
            if not any(line.startswith("gpu0 ") and f" {card.name} of " in line for line in said.splitlines()):
                sys.exit(f"gpu.sh work: init does not know the card {card.name!r}: {said}")
            keys = {(kind, at): network.account() for kind in kinds for at in range(SHARERS)}
            application = network.account()
            ports = free_port(), free_port()
            env = {"PATH": os.environ["PATH"], "HOME": folder, **card.environment, **configuration(network, place, kinds, keys, ports)}
            agent = [network.built["muster-agent"], "run", "--config", place / "agent.toml"]
            network.children.append(subprocess.Popen(agent, env=env, stderr=open(place / "agent.log", "w")))
            node = lambda kind: json.loads(network.say("muster", "node", "status", "--json", key=keys[kind, SHARERS - 1]))  # noqa: E731
            network.until("all nodes", lambda: network.joined() == 2 * SHARERS, 1_800)
            say("all nodes have joined")
            told = {kind: node(kind) for kind in kinds}
            for one in told.values():
                card.is_joined(one)
            groups = {kind: {"number": one["gpuGroup"], "name": one["gpu"]} for kind, one in told.items()}
            network.say("muster", "admin", "list-gpu", str(groups["gpt"]["number"]), key=OWNER)
            rows = []
            for kind, (_, _, asked) in kinds.items():
                (place / "input").write_text(json.dumps(asked))
                for policy in POLICIES:
                    begun = time.monotonic()
                    out = place / f"{kind}-{policy}"
                    gpu = ["--gpu", str(groups[kind]["number"])]
                    network.say("muster", "task", "run", "--kind", kind, "--policy", policy, *gpu, "--input", str(place / "input"), "--store", str(place / "store"), "--out", str(out), key=application)
                    rows.append({"kind": kind, "policy": policy, "seconds": time.monotonic() - begun})
                    if out.read_bytes() != direct[kind]:
                        sys.exit(f"gpu.sh work: {kind} under {policy} came to another result than the executor's own")
                    say(f"{kind}, {policy}: {rows[-1]['seconds']:.1f} s")
            processes = card.processes()
            shown = read_along(network, place, groups["gpt"]["number"], long(tokens)[0], application)
            say(f"read while it was made: {shown['parts']} parts, {shown['first']:.1f} to {shown['last']:.1f} s")
            # A queue of long texts, with an image now and then beside them left out: the card is theirs.
            for at, one in enumerate(long(tokens)):
                (place / f"long{at}").write_text(json.dumps(one))
            before = len(spans(place / "gpt.spans"))
            begun = time.monotonic()
            inputs = [part for at in range(given.queue) for part in ("--input", str(place / f"long{at}"))]
            network.say("muster", "task", "create", "--kind", "gpt", "--gpu", str(groups["gpt"]["number"]), *inputs, "--store", str(place / "store"), key=application)
            stored = [place / "store" / hashlib.sha256(result).hexdigest() for result in wanted]
            network.until("the queue's end", lambda: len(spans(place / "gpt.spans")) >= before + given.queue and all(file.exists() for file in stored), 3_600)
            whole = time.monotonic() - begun
            ran = spans(place / "gpt.spans")[before:]
            metrics = measured(ports[0])
            errors = [line for line in (place / "agent.log").read_text().splitlines() if " ERROR " in line]
        busy, span = sum(end - start for start, end in ran), ran[-1][1] - ran[0][0]
        numbers = {
            "stack": writer.ready.get("stack"), "card": groups["gpt"]["name"], "nvidia_smi": card.told(), "processes": processes, "policies": rows, "errors": len(errors),
            "vram": told["gpt"]["vram"], "stream": shown, "metrics": metrics,
            "queue": {
                "texts": given.queue, "tokens": tokens, "alone": sum(alone) / len(alone), "through": busy / len(ran),
                "of_the_card": busy / span, "whole": whole,
            },
        }  # fmt: skip
        print(json.dumps(numbers, indent=1))
        name = card.name if card.real else "processor"
        print("\n\n".join(at_work({name: numbers})), flush=True)
        if not (given.plain or given.dry):
            kept = json.loads(CARDS.read_text()) if CARDS.exists() else {}
            kept[name] = numbers
            CARDS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
        if errors:
            sys.exit("\n".join([f"gpu.sh work: the agent's log has errors, {len(errors)} of them:", *errors[:20]]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["record"]:
        sys.exit(record(sys.argv[2], sys.argv[3:]))
    if sys.argv[1:] == ["check"]:
        programs()
        hashes([])
        sys.exit()
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    if sys.argv[1:2] == ["at"]:
        port = free_port()
        os.execv(sys.argv[2], [part.replace("{port}", str(port)) for part in sys.argv[2:]])
    work(sys.argv[1:])
