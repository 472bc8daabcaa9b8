"""all-MiniLM-L6-v2 by NumPy alone, in 64 bits.

The weights have 32. Differences between processors, kernels and numbers of threads in the last bits of 64 vanish when
the result is rounded to six decimals: not provably, but almost always.
"""

import hashlib
import json
import math
import mmap
import struct

import numpy as np

NAME = "sentence-transformers/all-MiniLM-L6-v2"
LAYERS, HEADS, WIDTH = 6, 12, 384
# The limit that the model was trained with; longer texts are cut.
TOKENS = 256
DIGESTS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}


def check(place):
    """Refuses other weights than those that this was written for."""
    for name, expected in DIGESTS.items():
        digest = hashlib.sha256()
        with open(place / name, "rb") as file:
            while part := file.read(1 << 20):
                digest.update(part)
        if digest.hexdigest() != expected:
            raise RuntimeError(f"{name} is not the model's: its SHA-256 is {digest.hexdigest()}")


def _safetensors(path):
    """Arrays by name, left in the file, so that processes share them."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    arrays = {}
    for name, about in header.items():
        if about.get("dtype") == "F32":
            start, end = about["data_offsets"]
            array = np.frombuffer(data, "<f4", (end - start) // 4, 8 + length + start)
            arrays[name] = array.reshape(about["shape"])
    return arrays


def _erf_table():
    """Values of erf for every 1/1024 from 0 to 6, where it is 1 in 64 bits."""
    return np.array([math.erf(i / 1024) for i in range(6 * 1024 + 2)])


class MiniLM:
    def __init__(self, place):
        self.arrays = _safetensors(place / "model.safetensors")
        self.table = _erf_table()
        self.layers = [self._layer(f"encoder.layer.{i}.") for i in range(LAYERS)]
        self.start = self._norm("embeddings.LayerNorm.")

    def _wide(self, name):
        return self.arrays[name].astype(np.float64)

    def _dense(self, name):
        return np.ascontiguousarray(self._wide(f"{name}.weight").T), self._wide(f"{name}.bias")

    def _norm(self, name):
        return self._wide(f"{name}weight"), self._wide(f"{name}bias")

    def _layer(self, at):
        names = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
        names += ("intermediate.dense", "output.dense")
        norms = ("attention.output.LayerNorm.", "output.LayerNorm.")
        return [self._dense(at + name) for name in names] + [self._norm(at + name) for name in norms]

    def _erf(self, x):
        """By Taylor's formula of the third degree from the nearest place below: wrong by less than 1e-12."""
        size = np.minimum(np.abs(x), 6.0)
        at = (size * 1024).astype(np.int64)
        near = at / 1024
        h = size - near
        slope = 2 / math.sqrt(math.pi) * np.exp(-near * near)
        value = self.table[at] + slope * h * (1 - near * h + (2 * near * near - 1) * h * h / 3)
        return np.sign(x) * value

    def _gelu(self, x):
        return x * 0.5 * (1 + self._erf(x / math.sqrt(2)))

    @staticmethod
    def _normed(x, scale, shift):
        x = x - x.mean(axis=-1, keepdims=True)
        return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12) * scale + shift

    def embed(self, numbers):
        """The embedding of a text by its pieces' numbers: 384 numbers, of length 1, of six decimals.

        One text at a time: in a batch, other kernels would multiply it.
        """
        count = len(numbers)
        x = self.arrays["embeddings.word_embeddings.weight"][numbers].astype(np.float64)
        x += self.arrays["embeddings.position_embeddings.weight"][:count]
        x += self.arrays["embeddings.token_type_embeddings.weight"][0]
        x = self._normed(x, *self.start)
        for query, key, value, out, wider, narrower, first, second in self.layers:
            q, k, v = ((x @ weight + bias).reshape(count, HEADS, -1).transpose(1, 0, 2) for weight, bias in (query, key, value))
            scores = q @ k.transpose(0, 2, 1) / math.sqrt(WIDTH // HEADS)
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
            seen = (scores @ v).transpose(1, 0, 2).reshape(count, WIDTH)
            x = self._normed(x + seen @ out[0] + out[1], *first)
            x = self._normed(x + self._gelu(x @ wider[0] + wider[1]) @ narrower[0] + narrower[1], *second)
        mean = x.mean(axis=0)
        # Never a negative zero.
        return np.round(mean / np.sqrt((mean * mean).sum()), 6) + 0.0
