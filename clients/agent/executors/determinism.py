"""Who answers alike? Measures it on this machine, and writes docs/determinism.md: `gpu.sh determinism`, `gpu.sh page`.

Texts of 1,000 tokens and images by models with weights of a seed, under one setting after another, each against the executors' own:
one request at a time, torch's choice of attention, deterministic algorithms. The numbers of the page stand in docs/determinism.json,
a part for each device and size; a run replaces its own part.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE, NUMBERS = ROOT / "docs/determinism.md", ROOT / "docs/determinism.json"
LENGTHS = (1, 100, 1_000)
# Of Parameters: docs/parameters.md.
HAMMING, SLASH = 8, 20
SHARED = 4
COLUMNS = (("processor", "a processor"), ("H100", "H100"), ("H200", "H200"))

TEXTS = {
    "again": "the same process again",
    "process": "another process, beside a third one at work",
    "batch": f"a batch shared with {SHARED - 1} others of one length",
    "ragged": f"a batch shared with {SHARED - 1} longer ones",
    "eager": "attention: eager",
    "flash": "attention: torch's flash kernel alone",
    "graphs": "CUDA graphs and a static cache",
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
# What only one kind of device has.
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
        """The tokens of one text, of which the batch's others are thrown away."""
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
    """What one process does: every setting that it is asked for, in turn."""
    torch, cards, device = settled(asked["device"], asked["threads"])
    found, out = {}, Path(asked["out"])
    if "llama" in asked:
        for dtype in asked["dtypes"]:
            writer = Writer(torch, asked["llama"], device, dtype)
            for setting in asked["texts"]:
                settings = {
                    "eager": {"attention": "eager"}, "flash": {"attention": "flash"}, "batch": {"batch": "even"}, "ragged": {"batch": "ragged"},
                    "graphs": {"graphs": True},
                }.get(setting, {})  # fmt: skip
                torch.set_num_threads(asked["threads"] + (setting == "threads"))
                begun = time.monotonic()
                try:
                    texts = [writer.write(at, asked["tokens"], **settings) for at in range(asked["prompts"])]
                except RuntimeError as error:
                    texts = f"{str(error).strip().splitlines()[0]}"[:200]
                found[f"text {dtype} {setting}"] = texts
                print(f"  {dtype} {setting}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            torch.set_num_threads(asked["threads"])
            del writer
    if "diffusion" in asked:
        for dtype in asked["dtypes"]:
            painter = Painter(torch, asked["diffusion"], device, dtype)
            for setting in asked["images"]:
                settings = {"eager": {"attention": "eager"}, "batch": {"batch": True}}.get(setting, {})
                torch.set_num_threads(asked["threads"] + (setting == "threads"))
                begun, files = time.monotonic(), []
                for at in range(asked["pictures"]):
                    files.append(str(out / f"{asked['name']}-{dtype}-{setting}-{at}.png"))
                    painter.draw(at, asked["side"], asked["steps"], **settings).save(files[-1])
                found[f"image {dtype} {setting}"] = files
                print(f"  {dtype} {setting}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            torch.set_num_threads(asked["threads"])
            del painter
    found["stack"] = cards.stack(torch, device)
    return found


def begin(asked):
    return subprocess.Popen([sys.executable, "-B", __file__, "work"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True), json.dumps(asked)


def ended(child):
    """What processes found that run at once."""
    for process, asked in child:
        process.stdin.write(asked)
        process.stdin.close()
    said = [process.stdout.read() for process, _ in child]
    if any(process.wait() for process, _ in child):
        sys.exit("a process has failed")
    return [json.loads(text) for text in said]


def hashes(files):
    """By the crate that nodes hash with."""
    command = os.environ.get("MUSTER_HASH")
    command = [command] if command else ["cargo", "run", "--quiet", "-p", "muster-hashes", "--example", "hash", "--"]
    said = subprocess.run([*command, *files], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [int(line, 16) for line in said.split()]


def measure(arguments):
    given = argparse.ArgumentParser(prog="gpu.sh determinism")
    given.add_argument("--device", default="auto")
    given.add_argument("--llama", help="tiny, small, 1b or 8b; 1b on a card, small elsewhere")
    given.add_argument("--diffusion", help="tiny, small or sdxl; sdxl on a card, small elsewhere")
    given.add_argument("--prompts", type=int, help="texts; 64 on a card, 8 elsewhere")
    given.add_argument("--tokens", type=int, default=LENGTHS[-1])
    given.add_argument("--dtypes", help="number types, with commas between them; bfloat16,float16 on a card, float32,bfloat16 elsewhere")
    given.add_argument("--without", default="", help="settings that are left out, with commas between them")
    given.add_argument("--pictures", type=int, help="images; 64 on a card, 8 elsewhere")
    given = given.parse_args(arguments)
    torch, _, device = settled(given.device)
    card = device == "cuda"
    sys.path.append(str(HERE))
    import seeded

    size, shape = given.llama or ("1b" if card else "small"), given.diffusion or ("sdxl" if card else "small")
    with tempfile.TemporaryDirectory() as place:
        print(f"making models: llama {size}, diffusion {shape}", file=sys.stderr, flush=True)
        seeded.llama(size, f"{place}/llama", dtype=torch.bfloat16 if card else torch.float32)
        seeded.diffusion(shape, f"{place}/diffusion")
        dtypes = given.dtypes.split(",") if given.dtypes else ["bfloat16", "float16"] if card else ["float32", "bfloat16"]
        there = lambda settings: [name for name in settings if ONLY.get(name, device) == device and name not in ("dtype", *given.without.split(","))]  # noqa: E731
        common = {
            "device": device, "threads": 1, "llama": f"{place}/llama", "diffusion": f"{place}/diffusion", "dtypes": dtypes, "out": place,
            "tokens": given.tokens, "prompts": given.prompts or (64 if card else 8), "pictures": given.pictures or (64 if card else 8),
            "side": 1_024 if shape == "sdxl" else 128, "steps": 4,
        }  # fmt: skip
        texts = [name for name in there(TEXTS) if name != "process"]
        images = [name for name in there(IMAGES) if name != "process"]
        (main,) = ended([begin({**common, "name": "main", "texts": ["reference", *texts], "images": ["reference", *images]})])
        print("two processes at once", file=sys.stderr, flush=True)
        pair = ended([begin({**common, "name": name, "texts": ["reference"], "images": ["reference"]}) for name in ("one", "two")])
        numbers = {"command": " ".join(["gpu.sh determinism", *arguments]), "device": main["stack"], "llama": size, "diffusion": shape, "tokens": given.tokens, "texts": {}, "images": {}}
        for dtype in dtypes:
            reference = main[f"text {dtype} reference"]
            against = {name: main[f"text {dtype} {name}"] for name in texts}
            against["process"] = pair[0][f"text {dtype} reference"]
            if pair[0][f"text {dtype} reference"] != pair[1][f"text {dtype} reference"]:
                against["process"] = pair[1][f"text {dtype} reference"]
            shares = {}
            for name, others in against.items():
                if isinstance(others, str):
                    shares[name] = others
                    continue
                equal = [sum(one[:n] == other[:n] for one, other in zip(reference, others)) for n in LENGTHS if n <= given.tokens]
                shares[name] = {"of": len(reference), "equal": equal}
            prints = [[hashlib.sha256(str(one[:n]).encode()).hexdigest()[:8] for n in LENGTHS if n <= given.tokens] for one in reference]
            numbers["texts"][dtype] = {"settings": shares, "prints": prints}
            drawn = {name: hashes(main[f"image {dtype} {name}"]) for name in ("reference", *images)}
            drawn["process"] = hashes(pair[1][f"image {dtype} reference"])
            if dtype != dtypes[0]:
                drawn["dtype"] = hashes(main[f"image {dtypes[0]} reference"])
            distances = {name: [bin(a ^ b).count("1") for a, b in zip(drawn["reference"], found)] for name, found in drawn.items() if name != "reference"}
            numbers["images"][dtype] = {"settings": distances, "hashes": [f"{one:016x}" for one in drawn["reference"]]}
    whole = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    whole[column(numbers)] = numbers
    NUMBERS.write_text(json.dumps(whole, indent=1, sort_keys=True) + "\n")
    page()


def column(numbers):
    card = numbers["device"].get("card", "")
    return next((name for name, _ in COLUMNS if name in card), "processor" if not card else card)


# The page


def rule(differ, of):
    """The highest rate that so few differences do not exclude with a certainty of 95 %, by Clopper and Pearson."""
    if differ >= of:
        return 1.0
    low, high = differ / of, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        chance = sum(math.comb(of, n) * rate**n * (1 - rate) ** (of - n) for n in range(differ + 1))
        low, high = (rate, high) if chance > 0.05 else (low, rate)
    return high


def share(found):
    return " / ".join(f"{100 * equal / found['of']:.0f} %" for equal in found["equal"])


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def page():
    whole = json.loads(NUMBERS.read_text()) if NUMBERS.exists() else {}
    columns = list(COLUMNS) + [(name, name) for name in whole if name not in dict(COLUMNS)]
    not_run = "not run"

    def compared(what, settings, dtype, cell):
        """A row for each setting, a column for each machine."""
        table = []
        for setting, words in settings.items():
            cells = []
            for name, _ in columns:
                here = "cpu" if name == "processor" else "cuda"
                if ONLY.get(setting, here) != here:
                    cells.append("-")
                    continue
                found = whole.get(name, {}).get(what, {}).get(dtype, {}).get("settings", {}).get(setting)
                cells.append(not_run if found is None else cell(found))
            table.append([words, *cells])
        return table

    def texts(dtype):
        return compared("texts", TEXTS, dtype, lambda found: f"it cannot: {found}" if isinstance(found, str) else share(found))

    def images(dtype):
        return compared("images", IMAGES, dtype, lambda found: f"{sum(found) / len(found):.1f}, {max(found)}; {sum(one > HAMMING for one in found)} of {len(found)}")

    def has(dtype, part):
        return any(dtype in numbers[part] for numbers in whole.values())

    parts = []
    for dtype in ("float32", "bfloat16", "float16"):
        where = columns if dtype != "float32" else columns[:1]
        rows = [row[: 1 + len(where)] for row in texts(dtype)]
        if dtype == "float32" and not has(dtype, "texts"):
            continue
        parts.append(f"### {dtype}\n\n" + table(["against one request at a time", *(words for _, words in where)], rows))
    pictures = []
    for dtype in ("float32", "bfloat16", "float16"):
        where = columns if dtype != "float32" else columns[:1]
        rows = [row[: 1 + len(where)] for row in images(dtype) if not (dtype == "float32" and row[0] == IMAGES["dtype"])]
        if dtype == "float32" and not has(dtype, "images"):
            continue
        pictures.append(f"### {dtype}\n\n" + table(["against one image at a time", *(words for _, words in where)], rows))

    ran = []
    for name, words in columns:
        numbers = whole.get(name)
        if numbers is None:
            ran.append([words, "not run", "", "", "", ""])
            continue
        told = ", ".join(f"{key} {value}" for key, value in numbers["device"].items() if key != "device")
        some = next(iter(numbers["texts"].values()))["settings"]
        count = next(found["of"] for found in some.values() if isinstance(found, dict))
        pictured = len(next(iter(numbers["images"].values()))["hashes"])
        ran.append([words, f"`{numbers['command']}`", told, f"llama `{numbers['llama']}`, diffusion `{numbers['diffusion']}`", f"{count} of {numbers['tokens']:,} tokens", str(pictured)])

    rates = []
    for setting in TEXTS:
        differ = of = 0
        for numbers in whole.values():
            for one in numbers["texts"].values():
                found = one["settings"].get(setting)
                if isinstance(found, dict):
                    differ, of = differ + found["of"] - found["equal"][-1], of + found["of"]
        if of:
            high = rule(differ, of)
            rates.append([TEXTS[setting], f"{differ} of {of}", f"{100 * high:.0f} %", f"{SLASH * differ / of:.1f}", f"{SLASH * high:.1f}"])
    alike = [row for row in rates if row[1].startswith("0 ")]
    apart = [row for row in rates if not row[1].startswith("0 ")]
    cards = [name for name in ("H100", "H200") if name in whole]
    pairs = []
    if len(cards) == 2:
        for dtype in ("bfloat16", "float16"):
            one, other = (whole[name]["texts"][dtype]["prints"] for name in cards)
            equal = [sum(a[n] == b[n] for a, b in zip(one, other)) for n in range(len(one[0]))]
            pairs.append([dtype, share({"of": min(len(one), len(other)), "equal": equal})])
    needed = math.ceil(math.log(0.05) / math.log(1 - 0.01 / SLASH))
    text = f"""# Determinism

[All pages](README.md)

Under [validation](validation.md) answers of texts are compared bit by bit, and a node that answers otherwise than two others is slashed. So nodes of one GPU group must answer alike. This page says what was measured of that. `clients/agent/executors/gpu.sh determinism` measures it on the machine it runs on, keeps its numbers in [determinism.json](determinism.json), and writes this page.

**No card has been measured.** Columns that say "not run" wait for that command on such a card. The processor's results say nothing about a card's kernels. {"" if not cards else "Measured are: " + ", ".join(cards) + "."}

Models have the shape of Llama and of Stable Diffusion, and weights that are drawn from a seed: they need no download, and their answers mean nothing. Half of the texts are greedy, and half are sampled by a seed at temperature 1. A trained model is surer of its next word, so it differs less often. How much less is not known.

{table(["device", "command", "stack", "models", "texts", "images"], ran)}

## Texts

The table shows how many answers of 1 / 100 / 1,000 tokens equal those of the executor's own setting. A run with fewer tokens has fewer values. The executor's setting is one request at a time, torch's own choice of attention, deterministic algorithms and the same number type.

{chr(10).join(part + chr(10) for part in parts)}
### One card against another

{table(["number type", "equal answers of 1 / 100 / 1,000 tokens, H100 against H200"], pairs) if pairs else "H100 against H200, and one driver against another: not run. Run `gpu.sh determinism` on both, with the same `docs/determinism.json`: this table is then made from both parts."}

## Images

The table counts the bits in which the perceptual hash differs from that of the executor's own setting: mean, most. Then it counts the images that differ in more than `hammingMost`, {HAMMING}. The images of such a model are close to noise, the hardest case for [the hash](research/images.md).

{chr(10).join(part + chr(10) for part in pictures)}
## What follows

**How often an honest node would be slashed.** Two nodes have one setting, the third the other: it is alone as often as the texts differ. The table counts the longest answers measured, over all devices and number types. *Rate at most* is the highest that so few texts do not exclude with a certainty of 95 %. The loss is in fees for each answer that a group judges, at `slashTimes` {SLASH}.

{table(["one of three has", "differ", "rate at most", "loss as measured", "loss at most"], rates)}

- A node can bear a loss of a hundredth of a fee for each judged answer: one wrong answer in {100 * SLASH:,} at `slashTimes` {SLASH}. To show that, {needed:,} answers in a row must agree: `gpu.sh determinism --prompts {needed}`. **Nobody has shown that on a card**, so `slashTimes` above 0 for texts is a decision without a measurement behind it.
- At rate r of wrong answers, `slashTimes` is bearable up to 0.01 / r: at 1 in 100 that is 1, and at 1 in 10 it cannot be borne at all.

**May be listed** (`listGpuGroup`): one request at a time, one number type, one choice of attention, one version of everything, on one model of card. In the measurements, {", ".join(row[0] for row in alike) or "nothing"} changed nothing.

**Never list**: servers that share batches among requests (vLLM, SGLang, llama.cpp with several slots, Ollama with parallel requests), and groups whose nodes choose attention, number type or threads each for itself. {"As measured, these changed texts: " + "; ".join(f"{row[0]} ({row[1]})" for row in apart) + "." if apart else ""} Such nodes take tasks of policy 0, and of policy 3 where a lost share is all that they risk.

**The group's name.** It has the card's model by NVIDIA's name, and eight digits of the golden answers for all else. `transformers` and `openai` write the digits of their stack into every answer. These cover the versions of torch, CUDA, cuDNN and the library, number type, attention, context and the weights' digest, or a server's own fingerprint. So another stack has another name even if its golden answers read the same. The name leaves out the driver: torch brings its own kernels, and whether a driver changes them was not measured. An owner who lists a group lists its number, and tells operators the card, the executor, its arguments, and `requirements-torch.lock`.
"""
    PAGE.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(sys.argv[2:])
    elif sys.argv[1:] == ["page"]:
        page()
    elif sys.argv[1:] == ["work"]:
        # What libraries print must not come between.
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        print(json.dumps(work(json.load(sys.stdin))), file=answers, flush=True)
    else:
        sys.exit(__doc__)
