"""Functions shared by executors of models on cards: the model's files, whether it fits, settings for repeatable
answers, and the name of the stack that determines them. Standard library alone; callers with torch pass it in."""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import struct
import sys
from pathlib import Path

GIB = 1 << 30
# Bytes of a parameter. A processor is slow in the narrow ones, and has them for tests.
DTYPES = {"float32": 4, "bfloat16": 2, "float16": 2}
# Files that a model is read from: none that could run code when loaded.
READ = (".safetensors", ".json", ".txt", ".model", ".jinja")


class TooSmall(Exception):
    """The card cannot hold the model."""


def arguments(about):
    """The arguments that all of them take, to be added to."""
    given = argparse.ArgumentParser(description=about)
    given.add_argument("--model", required=True, help="a folder, or a name whose files are in HF_HOME")
    given.add_argument("--name", help="the model's name in tasks; its name on the hub, if left out")
    given.add_argument("--revision", help="the commit, if HF_HOME holds several")
    given.add_argument("--device", default="auto", help="cuda, cpu or mps; auto is the card, or mps or cpu without one")
    given.add_argument("--threads", type=int, default=1, help="of a processor: another number is another stack")
    return given


def place_of(model, revision=None):
    """The folder with a model's files, which must be there: nothing is downloaded here."""
    if Path(model).is_dir():
        return Path(model)
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache/huggingface")
    shots = home / "hub" / f"models--{model.replace('/', '--')}" / "snapshots"
    found = sorted(shot for shot in shots.glob("*") if shot.is_dir() and (revision is None or shot.name == revision))
    if len(found) == 1:
        return found[0]
    if found:
        sys.exit(f"{shots} holds {len(found)} revisions: name one by --revision")
    sys.exit(f"{model} is not in {shots}: `muster-agent fetch {model}@COMMIT` brings it")


def weights(place):
    """The files that loaders take weights from. Those beside them are copies, as consolidated.safetensors beside shards."""
    if (place / "model_index.json").is_file():
        # A part of a pipeline that has a narrow copy is read from that.
        parts = [list(folder.glob("*.safetensors")) for folder in place.iterdir() if folder.is_dir()]
        return {file for part in parts for file in [file for file in part if ".fp16" in file.name] or part}
    whole, index = place / "model.safetensors", place / "model.safetensors.index.json"
    if whole.is_file() or not index.is_file():
        return {whole}
    return {place / name for name in json.loads(index.read_text())["weight_map"].values()}


def files(place):
    """The files that a model is read from, by name."""
    place = Path(place)
    read = weights(place)
    found = sorted(file for file in place.rglob("*") if file.suffix in READ and file.is_file())
    return [file for file in found if file.suffix != ".safetensors" or file in read]


def parameters(place):
    """The number of a model's weights, from the headers of the safetensors files."""
    total = 0
    for file in (file for file in files(place) if file.suffix == ".safetensors"):
        with open(file, "rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            if length > 100_000_000:
                sys.exit(f"{file} is no safetensors file")
            head = json.loads(opened.read(length))
        for name, tensor in head.items():
            if name != "__metadata__":
                count = 1
                for side in tensor["shape"]:
                    count *= side
                total += count
    if total == 0:
        sys.exit(f"{place} holds no weights as safetensors, and other files can run code when they are loaded")
    return total


def digest(place):
    """The SHA-256 of all files that a model is read from."""
    whole = hashlib.sha256()
    for file in files(place):
        whole.update(f"{file.relative_to(place)}\n{file.stat().st_size}\n".encode())
        with open(file, "rb") as opened:
            whole.update(hashlib.file_digest(opened, "sha256").digest())
    return whole.hexdigest()


def fits(needs, free, where, instead):
    """Refuses a model that is larger than the free memory. `needs` maps purposes to bytes."""
    whole = sum(needs.values())
    if whole > free:
        parts = ", ".join(f"{name} {value / GIB:.1f}" for name, value in needs.items())
        raise TooSmall(f"{where} has {free / GIB:.1f} GiB free, and {whole / GIB:.1f} GiB are needed ({parts}): {instead}")


def device_of(torch, wanted):
    """The chosen device. Beside a card that torch cannot use `auto` takes no processor: the node would have the card's name."""
    if wanted not in ("auto", "cuda"):
        return wanted
    if torch.cuda.is_available():
        return "cuda"
    seen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted == "cuda" or (shutil.which("nvidia-smi") if seen is None else seen not in ("", "-1")):
        try:
            torch.cuda.init()
            reason = "it finds none"
        except Exception as error:
            # A missing or too old driver, a library without CUDA: each with torch's own error and words.
            reason = str(error).splitlines()[0]
        sys.exit(f"torch {torch.__version__} cannot use this machine's card: {reason} (without a card: --device cpu)")
    return "mps" if torch.backends.mps.is_available() else "cpu"


def free(torch, device):
    """Free bytes of a device, and its name."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0], torch.cuda.get_device_name()
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024, "this machine"
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "this machine"


def settle(torch, device, threads):
    """Makes computations repeatable. CUBLAS_WORKSPACE_CONFIG must be set before the first multiplication."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.manual_seed(0)
    if device == "cpu":
        torch.set_num_threads(threads)


def stack(torch, device, **more):
    """Everything that determines an answer, by name, as far as a program can tell."""
    told = {"torch": torch.__version__.split("+")[0], "device": device, **more}
    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        told.update(card=torch.cuda.get_device_name(), capability=f"{major}.{minor}", cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    elif device == "cpu":
        told.update(processor=torch.backends.cpu.get_cpu_capability(), threads=torch.get_num_threads())
    return told


def fingerprint(told):
    """Eight digits for a stack. They are part of answers, so only answers of the same stack are equal, and golden answers too: the name
    that a node registers changes with it."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


def in_words(told):
    return ", ".join(f"{name} {value}" for name, value in told.items())


def or_exit(load, what):
    """The result of `load`; or exits with a remedy, if the card is too small."""
    try:
        return load()
    except TooSmall as error:
        sys.exit(f"{what}: {error}")
    except Exception as error:
        # torch's own, known only by its type.
        if "out of memory" in str(error).lower():
            sys.exit(f"{what}: the card ran out of memory before the first task: {str(error).splitlines()[0]}")
        raise
