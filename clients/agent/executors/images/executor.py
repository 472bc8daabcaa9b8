"""Pictures by formulas: hills under a sky, derived from a text and a number.

This is no diffusion model, and ignores the text's meaning. It behaves as an executor of one must: the same picture
for the same input, as PNG files of 8 bits a channel, one after the other. The agent hashes them. docs/executors.md explains how to
replace it by a diffusion model.
"""

import hashlib
import os
import struct
import sys
import zlib
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np  # noqa: E402
from lines import TaskFault, allow, read_json, serve  # noqa: E402

SIDES = range(64, 1025, 8)
IMAGES = 4


class Chance:
    """Numbers between 0 and 1 derived from a text, on every machine the same."""

    def __init__(self, text):
        self.seed, self.drawn = hashlib.sha256(text.encode("utf-8", "replace")).digest(), 0

    def draw(self, *shape):
        self.drawn += 1
        count = int(np.prod(shape, initial=1))
        bits = hashlib.shake_256(self.seed + struct.pack("<I", self.drawn)).digest(2 * count)
        return (np.frombuffer(bits, "<u2") / 65_536).reshape(shape)


def noise(chance, cells, width, height):
    """A smooth field between 0 and 1, as many cells wide and high."""
    grid = chance.draw(cells + 1, cells + 1)

    def places(length):
        at = np.arange(length) * (cells / length)
        first = at.astype(int)
        part = at - first
        return first, part * part * (3 - 2 * part)

    (i, y), (j, x) = places(height), places(width)
    rows = grid[i] * (1 - y)[:, None] + grid[i + 1] * y[:, None]
    return rows[:, j] * (1 - x) + rows[:, j + 1] * x


def paint(chance, width, height):
    """Red, green and blue of a picture."""
    down = np.linspace(0, 1, height)[:, None]
    top, bottom, near, far = chance.draw(4, 3) * 0.7 + 0.15
    image = top * (1 - down)[..., None] + bottom * down[..., None] * np.ones((1, width, 1))
    clouds = sum(noise(chance, cells, width, height) * weight for cells, weight in ((3, 0.5), (7, 0.3), (15, 0.2)))
    image += (clouds - 0.5)[..., None] * 0.5
    sun, size = chance.draw(2), 0.05 + 0.1 * float(chance.draw())
    across = np.linspace(0, 1, width)[None, :]
    image[(across - sun[0]) ** 2 + (down - sun[1] * 0.5) ** 2 < size**2] = 0.95
    for depth in range(4):
        ridge = 0.35 + 0.15 * depth + 0.4 * (noise(chance, 2 + depth, width, 1)[0] - 0.5)
        part = depth / 3
        ground = (far * (1 - part) + near * part) * (0.7 + 0.6 * noise(chance, 12, width, height)[..., None])
        image = np.where((down > ridge[None, :])[..., None], ground, image)
    return np.round(np.clip(image, 0, 1) * 255).astype(np.uint8)


def png(image):
    """A PNG file of an image."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def run(task):
    value = read_json(task["input"])
    allow(value, ("prompt", "seed", "width", "height"))
    prompt, seed = value.get("prompt"), value.get("seed", 0)
    width, height = value.get("width", 512), value.get("height", 512)
    if not isinstance(prompt, str) or len(prompt) > 4_096:
        raise TaskFault("`prompt` must be a text of at most 4,096 characters")
    if type(seed) is not int or not 0 <= seed < 2**32:
        raise TaskFault("`seed` is a whole number below 2^32")
    if any(type(side) is not int or side not in SIDES for side in (width, height)):
        raise TaskFault("`width` and `height` are multiples of 8 from 64 to 1,024")
    if task["units"] > IMAGES:
        raise TaskFault(f"a task has at most {IMAGES} images")
    chances = (Chance(f"{seed + number}\n{prompt}") for number in range(task["units"]))
    Path(task["output"]).write_bytes(b"".join(png(paint(chance, width, height)) for chance in chances))


serve("images", "1", ["images"], f"hills by formulas, numpy {np.__version__}", run)
