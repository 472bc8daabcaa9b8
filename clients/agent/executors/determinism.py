"""Which settings give identical answers? Measures on this machine, and writes docs/research/determinism.md: `gpu.sh determinism`, `gpu.sh page`.

Compares texts of 1,000 tokens and images by models with seeded weights under one setting after another with the executors' own setting:
one request at a time, torch's choice of attention, deterministic algorithms. docs/research/determinism.json keeps digests of the answers
by device, number type and setting, so that a run only adds its own settings, and runs of several machines are combined.
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
# MEASURED names another folder for what a trial finds.
PAGE, NUMBERS, CARDS = (Path(os.environ.get("MEASURED") or ROOT / "docs/research") / name for name in ("determinism.md", "determinism.json", "cards.json"))
LENGTHS = (1, 100, 1_000)
# Of Parameters: docs/parameters.md.
HAMMING, SLASH = 8, 20
# The part of a fee that an honest node can lose for each judged answer and still work.
BEARABLE = 0.01
SHARED = 4
# The columns of the page, measured or not: the device, and the size of the model of texts.
COLUMNS = ("processor, small", "H100, 1b", "H100, 8b", "H200, 1b", "H200, 8b")

TEXTS = {
    "again": "the same process again",
    "process": "another process, beside a third one at work",
    "batch": f"a batch shared with {SHARED - 1} others of one length",
    "ragged": f"a batch shared with {SHARED - 1} longer ones",
    "eager": "attention: eager",
    "flash": "attention: torch's flash kernel alone",
    "graphs": "compiled by torch: fused kernels, CUDA graphs, a static cache",
    "threads": "a thread more",
}
IMAGES = {
    "again": "the same process again",
    "process": "another process, beside a third one at work",
    "batch": "two prompts in a batch",
    "eager": "attention: eager",
    "threads": "a thread more",
    "dtype": "the other 16-bit type",
}
# Settings that only one kind of device has.
ONLY = {"graphs": "cuda", "threads": "cpu"}


# Measuring


def settled(device, threads=1):
    os.environ.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    sys.path.append(str(HERE))
    import torch

    import cards

    device = cards.device_of(torch, device)
    cards.settle(torch, device, threads)
    return torch, cards, device


class Writer:
    """Texts by a model: the executor's loop, without a tokenizer and without an end."""

    def __init__(self, torch, place, device, dtype):
        from transformers import AutoModelForCausalLM

        self.torch, self.device = torch, device
        self.model = AutoModelForCausalLM.from_pretrained(place, dtype=getattr(torch, dtype), local_files_only=True).to(device).eval()
        self.words = self.model.config.vocab_size

    def prompt(self, at, length=32):
        chance = self.torch.Generator("cpu").manual_seed(1_000 + at)
        return self.torch.randint(4, self.words, (length,), generator=chance)

    def noise(self, at, place):
        """Of every second text: the others are greedy."""
        if at % 2 == 0:
            return None
        chance = self.torch.Generator("cpu").manual_seed(at * 100_003 + place)
        return -self.torch.log(-self.torch.log(self.torch.rand(self.words, generator=chance, dtype=self.torch.float64).clamp_min(1e-300)))

    def write(self, at, length, attention="sdpa", batch=None, graphs=False):
        """The tokens of one text of a batch."""
        import contextlib

        from torch.nn.attention import SDPBackend, sdpa_kernel

        torch = self.torch
        self.model.set_attn_implementation("eager" if attention == "eager" else "sdpa")
        kernel = sdpa_kernel(SDPBackend.FLASH_ATTENTION) if attention == "flash" else contextlib.nullcontext()
        rows, mask = [self.prompt(at)], None
        if batch:
            longer = 17 if batch == "ragged" else 0
            rows = [torch.cat([torch.full((longer,), 3), rows[0]])] + [self.prompt(5_000 + at * 10 + n, 32 + longer) for n in range(SHARED - 1)]
            mask = torch.ones((SHARED, 32 + longer), dtype=torch.long)
            mask[0, :longer] = 0
        tokens = torch.stack(rows).to(self.device)
        if graphs:
            return self.compiled(tokens, at, length)
        mask = torch.ones_like(tokens) if mask is None else mask.to(self.device)
        said, past, places = [], None, (mask.cumsum(-1) - 1).clamp_min(0)
        with torch.inference_mode(), kernel:
            for place in range(length):
                more = {} if batch != "ragged" else {"attention_mask": mask, "position_ids": places[:, -tokens.shape[1] :]}
                out = self.model(tokens, past_key_values=past, use_cache=True, logits_to_keep=1, **more)
                past, tokens = out.past_key_values, self.pick(out.logits[:, -1], at, place)
                said.append(int(tokens[0]))
                mask = torch.cat([mask, torch.ones_like(mask[:, :1])], 1)
                places = torch.cat([places, places[:, -1:] + 1], 1)
        return said

    def pick(self, logits, at, place):
        noise = self.noise(at, place)
        best = logits.argmax(-1, keepdim=True)
        if noise is not None:
            best[0] = (logits[0].to("cpu", self.torch.float64) + noise).argmax().to(self.device)
        return best

    def compiled(self, tokens, at, length):
        from transformers import LogitsProcessorList

        writer, start = self, tokens.shape[1]

        def choose(given, scores):
            chosen = writer.pick(scores, at, given.shape[1] - start)
            return writer.torch.full_like(scores, -writer.torch.inf).scatter_(1, chosen, 0.0)

        with self.torch.inference_mode():
            whole = self.model.generate(
                tokens, attention_mask=self.torch.ones_like(tokens), max_new_tokens=length, min_new_tokens=length, do_sample=False,
                cache_implementation="static", logits_processor=LogitsProcessorList([choose]), pad_token_id=3, eos_token_id=None,
            )  # fmt: skip
        return whole[0, start:].tolist()


class Painter:
    """Images by a model, as the executor draws them."""

    PROMPTS = ("a lighthouse in the evening", "seven words for snow", "a horse on the moon", "a street in the rain, from above")

    def __init__(self, torch, place, device, dtype):
        from diffusers import AutoPipelineForText2Image

        self.torch = torch
        self.pipe = AutoPipelineForText2Image.from_pretrained(place, torch_dtype=getattr(torch, dtype), local_files_only=True).to(device)
        self.pipe.set_progress_bar_config(disable=True)

    def draw(self, at, side, steps, attention="sdpa", batch=False):
        from diffusers.models.attention_processor import AttnProcessor, AttnProcessor2_0

        self.pipe.unet.set_attn_processor(AttnProcessor() if attention == "eager" else AttnProcessor2_0())
        count = len(self.PROMPTS)
        prompts = [self.PROMPTS[at % count]] + ([self.PROMPTS[(at + 1) % count]] if batch else [])
        noise = [self.torch.Generator("cpu").manual_seed(at + 100 * n) for n in range(len(prompts))]
        with self.torch.inference_mode():
            drawn = self.pipe(prompts, num_inference_steps=steps, width=side, height=side, generator=noise, guidance_scale=5.0)
        return drawn.images[0].convert("RGB")


def work(asked):
    """One process's work: the settings of each number type, one answer of each in turn, so that what a limit of time cuts off is missing evenly."""
    torch, cards, device = settled(asked["device"], asked["threads"])
    found, out = {}, Path(asked["out"])

    def each(kind, count, make, answer):
        made = {} if time.time() > asked["until"] else {dtype: make(dtype) for dtype in asked[kind]}
        answers = found[kind] = {dtype: {setting: [] for setting in settings} for dtype, settings in asked[kind].items()}
        took = dict.fromkeys(((dtype, setting) for dtype, settings in asked[kind].items() for setting in settings), 0.0)
        for at, (dtype, setting) in itertools.product(range(count), list(took)):
            if time.time() > asked["until"] or isinstance(answers[dtype][setting], str):
                continue
            torch.set_num_threads(asked["threads"] + (setting == "threads"))
            begun = time.monotonic()
            try:
                answers[dtype][setting].append(answer(made[dtype], dtype, setting, at))
            except torch.OutOfMemoryError:
                # Of a card that others use, too: no finding.
                print(f"  {kind}, {dtype}, {setting}: out of memory", file=sys.stderr, flush=True)
            except Exception as error:  # noqa: BLE001
                words = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
                if answers[dtype][setting] or re.search(r"CUDA error|CUBLAS_STATUS|CUDNN_STATUS", str(error)):
                    # The card's own trouble, or one after answers that went well, is no finding, and perhaps nothing works after it.
                    found["trouble"], asked["until"] = f"{kind}, {dtype}, {setting}: {words}", 0
                else:
                    # Unsupported settings are found by trying, and each library has its own error for them.
                    answers[dtype][setting] = words
            took[dtype, setting] += time.monotonic() - begun
        torch.set_num_threads(asked["threads"])
        for (dtype, setting), seconds in took.items():
            said = answers[dtype][setting]
            print(f"  {kind}, {dtype}, {setting}: {said if isinstance(said, str) else len(said)}, {seconds:.0f} s", file=sys.stderr, flush=True)
        made.clear()
        if device == "cuda" and "trouble" not in found:
            torch.cuda.empty_cache()

    def write(writer, _, setting, at):
        settings = {
            "eager": {"attention": "eager"}, "flash": {"attention": "flash"}, "batch": {"batch": "even"}, "ragged": {"batch": "ragged"},
            "graphs": {"graphs": True},
        }.get(setting, {})  # fmt: skip
        return prints(writer.write(at, asked["tokens"], **settings))

    def draw(painter, dtype, setting, at):
        settings = {"eager": {"attention": "eager"}, "batch": {"batch": True}}.get(setting, {})
        file = str(out / f"{asked['name']}-{dtype}-{setting}-{at}.png")
        painter.draw(at, asked["side"], asked["steps"], **settings).save(file)
        return file

    each("text", asked["prompts"], lambda dtype: Writer(torch, asked["llama"], device, dtype), write)
    each("image", asked["pictures"], lambda dtype: Painter(torch, asked["diffusion"], device, dtype), draw)
    found["stack"] = {**cards.stack(torch, device), **({"driver": driver()} if device == "cuda" else {})}
    return found


def prints(tokens):
    """Digests of a text's beginnings, of all lengths that it has."""
    return [hashlib.sha256(str(tokens[:length]).encode()).hexdigest()[:8] for length in LENGTHS if length <= len(tokens)]


def driver():
    """The driver's version, which torch does not tell."""
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def begin(asked):
    return subprocess.Popen([sys.executable, "-B", __file__, "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True), json.dumps(asked)


def ended(children):
    """The results of processes that run concurrently: None of one that failed."""
    for process, asked in children:
        process.stdin.write(asked)
        process.stdin.close()
    said = [process.stdout.read() for process, _ in children]
    return [json.loads(text) if process.wait() == 0 else None for (process, _), text in zip(children, said, strict=True)]


def hashes(files):
    """By the crate that nodes hash with. Without files it only shows that the tool is there."""
    command = os.environ.get("MUSTER_HASH")
    command = [command] if command else ["cargo", "run", "--quiet", "-p", "muster-hashes", "--example", "hash", "--"]
    try:
        return subprocess.run([*command, *files], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{' '.join(command)} hashes no images: {getattr(error, 'stderr', None) or error}")


def measure(arguments):
    given = argparse.ArgumentParser(prog="gpu.sh determinism")
    given.add_argument("--device", default="auto")
    given.add_argument("--llama", help="tiny, small, 1b or 8b; 1b on a card, small elsewhere")
    given.add_argument("--diffusion", help="tiny, small or sdxl; sdxl on a card, small elsewhere")
    given.add_argument("--prompts", type=int, default=8, help="texts")
    given.add_argument("--tokens", type=int, default=LENGTHS[-1])
    given.add_argument("--dtypes", help="number types, with commas between them; bfloat16,float16 on a card, float32 too elsewhere")
    given.add_argument("--texts", default=",".join(TEXTS), help="settings of texts, with commas between them; none for no texts")
    given.add_argument("--images", default=",".join(IMAGES), help="settings of images")
    given.add_argument("--pictures", type=int, default=8, help="images")
    given.add_argument("--at-once", type=int, default=1, help="processes that share the settings among themselves, beside the two of `process`")
    given.add_argument("--minutes", type=float, default=math.inf, help="begin nothing later than that; earlier measurements are kept")
    given = given.parse_args(arguments)
    until = time.time() + 60 * given.minutes if given.minutes < math.inf else 1e18
    torch, _, device = settled(given.device)
    card = device == "cuda"
    sys.path.append(str(HERE))
    import seeded

    size, shape = given.llama or ("1b" if card else "small"), given.diffusion or ("sdxl" if card else "small")
    dtypes = given.dtypes.split(",") if given.dtypes else ["bfloat16", "float16"] + ([] if card else ["float32"])

    def there(asked, known):
        asked = [name for name in asked.split(",") if name not in ("", "none")]
        unknown = sorted(set(asked) - set(known))
        if unknown:
            sys.exit(f"gpu.sh determinism: {', '.join(unknown)}: there are {', '.join(known)}")
        return [name for name in asked if ONLY.get(name, device) == device and name != "dtype"]

    asked = {"text": there(given.texts, TEXTS), "image": there(given.images, IMAGES)}
    if asked["image"]:
        hashes([])
    with tempfile.TemporaryDirectory() as place:
        print(f"making models: llama {size}, diffusion {shape}", file=sys.stderr, flush=True)
        common = {
            "device": device, "threads": 1, "out": place, "tokens": given.tokens, "prompts": given.prompts, "pictures": given.pictures,
            "side": 1_024 if shape == "sdxl" else 128, "steps": 4, "until": until, "llama": f"{place}/llama", "diffusion": f"{place}/diffusion",
        }  # fmt: skip
        if asked["text"]:
            seeded.llama(size, common["llama"], dtype=torch.bfloat16 if card else torch.float32)
        if asked["image"]:
            seeded.diffusion(shape, common["diffusion"])

        def started(name, parts):
            """A process for settings, given as kind, number type, name."""
            own = {"text": {}, "image": {}}
            for kind, dtype, setting in parts:
                own[kind].setdefault(dtype, []).append(setting)
            return begin({**common, "name": name, **own})

        kinds = [kind for kind in asked if asked[kind]]
        twice = [(kind, dtype, "reference") for kind in kinds if "process" in asked[kind] for dtype in dtypes]
        two = [started(name, twice) for name in ("one", "two") if twice]
        # "The same process again" is that of the reference.
        parts = [
            part for kind in kinds for dtype in dtypes
            for part in ([(kind, dtype, name) for name in ("reference", "again") if name in ("reference", *asked[kind])],
                         *([(kind, dtype, name)] for name in asked[kind] if name not in ("again", "process")))
        ]  # fmt: skip
        shares = [[one for part in parts[at :: given.at_once] for one in part] for at in range(given.at_once)]
        main = [started(f"main{at}", share) for at, share in enumerate(shares) if share]
        found = ended(two + main) if given.at_once > 1 else ended(two) + ended(main)
        ran = [one for one in found if one]
        if not ran:
            sys.exit("gpu.sh determinism: no process came to its end")
        whole = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
        column = column_of(ran[0]["stack"], size)
        same = {"device": ran[0]["stack"], "diffusion": shape, "tokens": given.tokens}
        kept = whole.get(column)
        # Another stack, or other tasks, begin anew.
        numbers = kept if kept and all(kept[name] == value for name, value in same.items()) else {**same, "commands": [], "texts": {}, "images": {}}
        numbers["commands"] = sorted({*numbers["commands"], " ".join(["gpu.sh determinism", *arguments])})
        for part, kind, read in (("texts", "text", lambda found: found), ("images", "image", hashes)):
            for dtype in dtypes:
                into = numbers[part].setdefault(dtype, {})
                for one in filter(None, found[len(two) :]):
                    for name, said in one.get(kind, {}).get(dtype, {}).items():
                        if said:
                            into[name] = said if isinstance(said, str) else read(said)
                pair = [read(said) for one in filter(None, found[: len(two)]) if isinstance(said := one.get(kind, {}).get(dtype, {}).get("reference"), list) and said]
                if len(pair) == 2:
                    # Of the two, one that differs.
                    other = [one for one in pair if any(mine != its for mine, its in zip(into.get("reference", ()), one, strict=False))]
                    into["process"] = (other or pair)[0]
            # Texts are kept before images are hashed, which may fail.
            whole[column] = numbers
            NUMBERS.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
            page()
    troubles = [one["trouble"] for one in ran if "trouble" in one]
    if troubles:
        sys.exit(f"gpu.sh determinism: ended early, and what came before is kept: {'; '.join(troubles)}")
    if len(ran) < len(found):
        sys.exit(f"gpu.sh determinism: {len(found) - len(ran)} of {len(found)} processes failed; the others' results are kept")


def column_of(stack, size):
    card = stack.get("card", "")
    return f"{next((name for name in ('H100', 'H200') if name in card), card or 'processor')}, {size}"


# The page


def rule(differ, of):
    """The upper bound of the rate, with 95 % confidence, for this many differences, by Clopper and Pearson."""
    if differ >= of:
        return 1.0
    low, high = differ / of, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chance = sum(math.comb(of, n) * rate**n * (1 - rate) ** (of - n) for n in range(differ + 1))
        low, high = (rate, high) if chance > 0.05 else (low, rate)
    return high


def share(one, other):
    """Equal texts, by length, out of all, as the page prints it."""
    equal = alike(one, other)
    return f"{' / '.join(map(str, equal))} of {min(len(one), len(other))}" if equal else NOT_RUN


def alike(one, other):
    """The number of equal texts among those that both have, by length."""
    both = list(zip(one, other, strict=False))
    lengths = min((min(len(a), len(b)) for a, b in both), default=0)
    return [sum(a[n] == b[n] for a, b in both) for n in range(lengths)]


def apart(one, other):
    """Bits in which hashes of images differ."""
    return [(int(a, 16) ^ int(b, 16)).bit_count() for a, b in zip(one, other, strict=False)]


def changed(images, setting):
    """Bits in which images of a setting differ from the executor's own, of all number types."""
    if setting == "dtype":
        pairs = [(images.get("float16", {}).get("reference"), images.get("bfloat16", {}).get("reference"))]
    else:
        pairs = [(one.get("reference"), one.get(setting)) for one in images.values()]
    return [bit for one, other in pairs if isinstance(one, list) and isinstance(other, list) for bit in apart(one, other)]


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


NOT_RUN = "not run"


def at_work(kept, there=()):
    """What `gpu.sh work` has measured, by device; a row for each that is to be there, measured or not."""
    queues, policies, smi, streams = [], [], [], []
    for name in [*there, *sorted(kept)]:
        numbers = next((numbers for card, numbers in kept.items() if name in card), None)
        if name not in kept and numbers is not None:
            continue
        if numbers is None:
            queues.append([name] + [NOT_RUN] * 6)
            policies.append([name, ""] + [NOT_RUN] * 4)
            smi.append([name] + [NOT_RUN] * 5)
            streams.append([name] + [NOT_RUN] * 4)
            continue
        queue, tokens = numbers["queue"], numbers["queue"]["tokens"]
        rates = [f"{tokens / queue[which]:.1f}" for which in ("alone", "through")]
        cost = 100 * (1 - queue["alone"] / queue["through"] * queue["of_the_card"])
        queues.append([name, f"{queue['texts']} of {tokens:,} tokens", f"{queue['alone']:.2f} s, {rates[0]}", f"{queue['through']:.2f} s, {rates[1]}", f"{100 * queue['of_the_card']:.2f} %", f"{cost:.1f} %", f"{queue['whole']:.1f} s"])
        for kind, words in (("gpt", "texts"), ("images", "images")):
            policies.append([name, words] + [f"{row['seconds']:.1f}" for row in numbers["policies"] if row["kind"] == kind])
        seen = numbers["nvidia_smi"]
        smi.append([name, str(len(numbers["processes"]))] + [f"{seen[what][0]:.0f}, {seen[what][1]:.0f}" for what in ("busy", "mib", "degrees", "watts")] if seen else [name] + ["-"] * 5)
        shown = numbers["stream"]
        streams.append([name, str(shown["parts"]), f"{shown['first']:.1f}", f"{shown['last']:.1f}", f"{shown['whole']:.1f}"])
    return [
        table(["device", "queue", "alone: a text, tokens a second", "through Muster: a text, tokens a second", "of the queue's time a text was written", "lost in all", "from creation to the last result"], queues),
        table(["device", "", "single", "sampled", "replicated", "rated"], policies),
        table(["device", "processes on the card", "busy, %", "memory, MiB", "degrees", "watts"], smi),
        table(["device", "parts", "the first", "the last", "proven, and in a file"], streams),
    ]


def page():
    whole = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    columns = list(COLUMNS) + sorted(name for name in whole if name not in COLUMNS)
    cards = [name for name in columns if name in whole and whole[name]["device"]["device"] == "cuda"]

    def compared(part, settings, dtype, where, cell):
        """A row for each setting, a column for each device and model."""
        rows = []
        for setting, words in settings.items():
            cells = []
            for name in where:
                here = "cpu" if name.startswith("processor") else "cuda"
                if ONLY.get(setting, here) != here:
                    cells.append("-")
                    continue
                by_type = whole.get(name, {}).get(part, {})
                found, reference = by_type.get(dtype, {}).get(setting), by_type.get(dtype, {}).get("reference")
                if setting == "dtype":
                    found = by_type.get({"bfloat16": "float16", "float16": "bfloat16"}.get(dtype), {}).get("reference")
                if isinstance(found, str) or isinstance(reference, str):
                    cells.append(f"it cannot: {found if isinstance(found, str) else reference}")
                else:
                    cells.append(cell(reference, found) if found and reference else NOT_RUN)
            rows.append([words, *cells])
        return rows

    def distance(reference, found):
        bits = apart(reference, found)
        return f"{sum(bits) / len(bits):.1f}, {max(bits)}; {sum(one > HAMMING for one in bits)} of {len(bits)}"

    def parts(part, settings, head, cell):
        said = []
        for dtype in ("float32", "bfloat16", "float16"):
            # Cards do not serve in 32 bits.
            where = columns if dtype != "float32" else [name for name in columns if name.startswith("processor")]
            rows = compared(part, settings, dtype, where, cell)
            rows = [row for row in rows if dtype != "float32" or row[0] != IMAGES["dtype"]]
            said.append(f"### {'Texts' if part == 'texts' else 'Images'} in {dtype}\n\n" + table([head, *where], rows) + "\n")
        return "\n".join(said)

    ran = []
    for name in columns:
        numbers = whole.get(name)
        if numbers is None:
            ran.append([name, NOT_RUN, "", "", "", ""])
            continue
        told = ", ".join(f"{key} {value}" for key, value in numbers["device"].items() if key != "device")
        count = max((len(one) for by in numbers["texts"].values() for one in by.values() if not isinstance(one, str)), default=0)
        pictured = max((len(one) for by in numbers["images"].values() for one in by.values() if not isinstance(one, str)), default=0)
        commands = "; ".join(f"`{command}`" for command in numbers["commands"])
        ran.append([name, commands, told, f"`{numbers['diffusion']}`", f"{count} of {numbers['tokens']:,} tokens", str(pictured)])

    rates, bounds = [], {}
    for kind in ("processor", "card"):
        for setting in TEXTS:
            differ = of = 0
            for name, numbers in whole.items():
                if name.startswith("processor") != (kind == "processor"):
                    continue
                for one in numbers["texts"].values():
                    found, reference = one.get(setting), one.get("reference")
                    if isinstance(found, list) and isinstance(reference, list) and (equal := alike(reference, found)):
                        texts = min(len(reference), len(found))
                        differ, of = differ + texts - equal[-1], of + texts
            if of:
                high = bounds[kind, setting] = rule(differ, of)
                rates.append([kind, TEXTS[setting], f"{differ} of {of}", f"{100 * differ / of:.0f} %", f"{100 * high:.1f} %", f"{SLASH * high:.1f}", f"{BEARABLE / high:.2f}"])
    shown = any(kind == "card" and setting in ("again", "process") and high <= BEARABLE / SLASH for (kind, setting), high in bounds.items())
    drawn = []
    for setting in IMAGES:
        bits = [bit for name in cards for bit in changed(whole[name]["images"], setting)]
        if bits:
            above = sum(one > HAMMING for one in bits)
            drawn.append([IMAGES[setting], f"{above} of {len(bits)}", f"{100 * rule(above, len(bits)):.1f} %"])
    pairs = []
    for at, one in enumerate(cards):
        for two in cards[at + 1 :]:
            if one.split(", ")[-1] == two.split(", ")[-1] and whole[one]["tokens"] == whole[two]["tokens"]:
                for dtype in ("bfloat16", "float16"):
                    here, there = (whole[name]["texts"].get(dtype, {}).get("reference") for name in (one, two))
                    if isinstance(here, list) and isinstance(there, list):
                        pairs.append([f"{one} against {two}", dtype, share(here, there)])
    whole_cards = json.loads(CARDS.read_text()) if CARDS.exists() else {}
    queues, policies, smi, streams = at_work(whole_cards, ("H100", "H200"))
    notes = "".join(f"{name}: {numbers['note']}\n\n" for name, numbers in whole_cards.items() if "note" in numbers)
    pinned = re.search(r"^torch==(\S+)", (HERE / "requirements-torch.lock").read_text(), re.MULTILINE)[1]
    ran_torch = {name: whole[name]["device"]["torch"] for name in cards}
    older = "".join(f" {name} ran torch {ran}; `requirements-torch.lock` pins {pinned}, which was not measured there." for name, ran in ran_torch.items() if ran != pinned)
    needed = math.ceil(math.log(0.05) / math.log(1 - BEARABLE / SLASH))
    text = f"""# Determinism

[All pages](../README.md)

Under [validation](../validation.md) answers of texts are compared bit by bit, and a node whose answer differs from those of two others is slashed. So nodes of one GPU group must answer alike. This page has the measurements of that.

## What to take from it

- {"**No card has been measured.** The processor's results say nothing about a card's kernels." if not cards else "**Cards that were measured**, besides the processor: " + "; ".join(cards) + ". Where the columns say that a command left off after minutes, a few texts are all there is."}{older}
- **List a GPU group only if its nodes share the card and every setting.** Batches, attention, number type and versions all count: [Consequences](#consequences).
- **Never list servers that share batches among requests.**
- **A rate of wrong answers that looks small is expensive.** The [consequences](#consequences) have the `slashTimes` that each setting can bear.

## The measurements

`clients/agent/executors/gpu.sh determinism` measures on the machine that it runs on. It adds its results to [determinism.json](determinism.json), and writes this page. Columns that say "{NOT_RUN}" wait for that command on such a card.

Models have the shape of Llama and of Stable Diffusion, and weights that are drawn from a seed. They need no download, and their answers mean nothing. The first text is greedy, the second sampled by a seed at temperature 1, and so on in turn. A trained model is surer of its next word, so it differs less often. How much less is not known. Where a command says `--at-once`, its settings ran beside each other on the card.

{table(["device, model of texts", "command", "stack", "model of images", "texts", "images"], ran)}

## Texts

How many answers of 1 / 100 / 1,000 tokens (fewer values where a run had fewer tokens) are equal to those of the executor's own setting, of how many texts. That setting is one request at a time, torch's own choice of attention, deterministic algorithms, and the same number type.

{parts("texts", TEXTS, "against one request at a time", share)}
### One card against another

{table(["cards", "number type", "equal answers of 1 / 100 / 1,000 tokens, of how many"], pairs) if pairs else "H100 against H200, and one driver against another: " + NOT_RUN + ". Run `gpu.sh determinism` on both, with the same `docs/research/determinism.json`: this table is then made from both parts."}

## Images

A cell first says how many bits of the perceptual hash differ from the executor's own setting: mean, most. Then it counts the images that differ in more than `hammingMost`, {HAMMING}. The images of such a model are close to noise, the hardest case for [the hash](images.md).

{parts("images", IMAGES, "against one image at a time", distance)}
## A card at work for Muster

`gpu.sh work` measures it: a chain, a contract, and an agent with seven nodes for texts and seven for images, which share two processes on one card. Each result must equal, byte for byte, the answer of the executor when it is asked directly. It keeps its numbers in `docs/research/cards.json`. On a processor the agent is told of a card by the tests' substitute of NVIDIA's library, and models are small.

{queues}

{notes}Two things are lost: the time in which the card could have written but did not, and the time that each text took longer than alone. **The aim is below 2 % for texts of ten seconds.**

Seconds from the command to the result's file, with nothing else to do, by policy:

{policies}

The readings of `nvidia-smi` meanwhile, each second: mean, most.

{smi}

A text of the queue under the policy "single", [read while it is made](../streams.md) by `muster task run --stream`: in how many parts it came, and seconds from the command on.

{streams}

## Consequences

**How often an honest node would be slashed.** Two nodes have one setting, the third the other: it is alone as often as the texts differ. The table is of the longest answers that were measured, of all models and number types together. "At most" is the highest rate that so few texts do not exclude with a certainty of 95 %. The loss is that of each answer that a group judges, in fees, at `slashTimes` {SLASH}. The last column is the `slashTimes` at which that loss is a hundredth of a fee.

{table(["of a", "one of three has", "differ", "as measured", "at most", "loss at most", "bearable `slashTimes`"], rates)}

- A node can bear a loss of a hundredth of a fee for each judged answer. At `slashTimes` {SLASH} that is one wrong answer in {SLASH / BEARABLE:,.0f}. To show so little, {needed:,} answers in a row must agree: `gpu.sh determinism --prompts {needed}`. {"" if shown else "**Nobody has shown that on a card**, so `slashTimes` above 0 for texts is a decision without a measurement behind it."}
- At rate r of wrong answers, `slashTimes` is bearable up to {BEARABLE} / r: at 1 in 100 that is 1, which {math.ceil(math.log(0.05) / math.log(1 - BEARABLE))} equal answers in a row show. At 1 in 10 it cannot be borne at all.

**Not seen to differ, in few texts**: one request at a time, one number type, one choice of attention, one version of everything, on one model of card. Groups of any other kind are not for `listGpuGroup`. The table has the number of texts, and how little so few show.

**Never list**: servers that share batches among requests (vLLM, SGLang, llama.cpp with several slots, Ollama with parallel requests), and groups whose nodes choose attention, number type or threads each for itself. Such nodes take tasks of policy 0, and of policy 3 where a lost share is all that they risk.

**Images.** How many images of cards differ in more than `hammingMost` bits, of both number types together. "At most" is as above.

{table(["one has", "differ", "at most"], drawn)}

Tasks that require no GPU group compare images of all nodes, so all must draw in one number type. `diffusers` has no flag for it: on cards it is float16. Images of two models of card were not compared, nor those of trained models, so `slashImages` 1 is a decision without a measurement behind it.

**The group's name.** The card's model is in it by NVIDIA's name. All else is in the eight digits of the golden answers. `transformers` and `openai` write the digits of their stack into every answer, so another stack has another name even if its golden answers read the same. The stack is the versions of torch, CUDA, cuDNN and the library, the number type, attention, context and the weights' digest; or a server's own fingerprint. The driver is not in it: torch brings its own kernels, and whether a driver changes them was not measured. An owner who lists a group lists its number, and tells operators the card, the executor, its arguments, and `requirements-torch.lock`.
"""
    PAGE.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2:])
    elif sys.argv[1:] == ["page"]:
        page()
    elif sys.argv[1:] == ["work"]:
        # Keeps libraries' output out of the answers.
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        print(json.dumps(work(json.load(sys.stdin))), file=answers, flush=True)
    else:
        sys.exit(__doc__)
