"""Images by a model of diffusers, out of a text. docs/executors.md has its input and output.

    executor.py --model stabilityai/sdxl-turbo [--revision COMMIT] [--dtype float16] [--largest 1024] [--steps 4] [--guidance 0]
"""

import json
import os
import sys
from pathlib import Path

# Before torch is loaded; nothing is fetched here, and no repository's code runs.
os.environ.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.append(str(Path(__file__).resolve().parent.parent))

import cards  # noqa: E402
import diffusers  # noqa: E402
import torch  # noqa: E402
from lines import TaskFault, allow, read_json, serve  # noqa: E402
from texts import number  # noqa: E402

IMAGES = 4
STEPS = 100


def main():
    given = cards.arguments(__doc__.splitlines()[0], dtype="float16")
    given.add_argument("--largest", type=int, default=1_024, help="pixels of a side at most")
    given.add_argument("--steps", type=int, default=20, help="of a task that names none")
    given.add_argument("--guidance", type=float, default=7.5, help="of a task that names none")
    given = given.parse_args()
    place, name = cards.place_of(given.model, given.revision), given.name or given.model
    device = cards.device_of(torch, given.device)
    cards.settle(torch, device, given.threads)

    def draw(prompt, negative, seed, steps, guidance, width, height):
        # Noise from the processor: cards' generators differ.
        noise = torch.Generator("cpu").manual_seed(seed)
        more = {} if negative is None else {"negative_prompt": negative}
        with torch.inference_mode():
            drawn = pipe(
                prompt, num_inference_steps=steps, guidance_scale=guidance, width=width, height=height, generator=noise, num_images_per_prompt=1, **more,
            )  # fmt: skip
        return drawn.images[0].convert("RGB")

    def load():
        size = cards.DTYPES[given.dtype]
        needs = {
            "weights": cards.parameters(place) * size,
            # The decoder's widest layers, a few of them at a time.
            f"an image of {given.largest} pixels a side": 8 * 128 * given.largest**2 * size,
            "work": cards.GIB // 2,
        }
        free, where = cards.free(torch, device)
        cards.fits(needs, free, where, "take a smaller model, a smaller --largest, or a card with more memory that nothing else uses")
        index = json.loads((place / "model_index.json").read_text())
        # A filter that blackens some pictures would make them equal.
        without = {part: None for part in ("safety_checker", "feature_extractor") if part in index}
        variant = "fp16" if any(file.name.endswith(".fp16.safetensors") for file in cards.files(place)) else None
        pipe = diffusers.AutoPipelineForText2Image.from_pretrained(
            place, torch_dtype=getattr(torch, given.dtype), use_safetensors=True, local_files_only=True, variant=variant, **without,
            **({"requires_safety_checker": False} if "safety_checker" in without else {}),
        )  # fmt: skip
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(device)

    pipe = cards.or_exit(load, name)
    # The largest possible image: if it does not fit, fail before the first task.
    if device == "cuda":
        cards.or_exit(lambda: draw("", None, 0, 1, given.guidance, given.largest, given.largest), name)
        torch.cuda.empty_cache()
    told = cards.stack(torch, device, diffusers=diffusers.__version__, dtype=given.dtype, weights=cards.digest(place)[:16])

    def run(task):
        others = [other for other in task["models"] if other != name]
        if others:
            raise RuntimeError(f"this executor has {name} alone, not {', '.join(others)}")
        value = read_json(task["input"])
        allow(value, ("prompt", "negative_prompt", "seed", "steps", "guidance", "width", "height"))
        prompt, negative = value.get("prompt"), value.get("negative_prompt")
        if not isinstance(prompt, str) or len(prompt) > 4_096:
            raise TaskFault("`prompt` must be a text of at most 4,096 characters")
        if negative is not None and (not isinstance(negative, str) or len(negative) > 4_096):
            raise TaskFault("`negative_prompt` must be a text of at most 4,096 characters")
        seed = number(value.get("seed", 0), "seed", 0, 2**32 - 1, whole=True)
        steps = number(value.get("steps", given.steps), "steps", 1, STEPS, whole=True)
        guidance = number(value.get("guidance", given.guidance), "guidance", 0, 30)
        sides = [value.get(side, min(512, given.largest)) for side in ("width", "height")]
        if any(type(side) is not int or side % 16 or not 64 <= side <= given.largest for side in sides):
            raise TaskFault(f"`width` and `height` are multiples of 16 from 64 to {given.largest}")
        if task["units"] > IMAGES:
            raise TaskFault(f"a task has at most {IMAGES} images")
        with open(task["output"], "wb") as file:
            for one in range(task["units"]):
                draw(prompt, negative, (seed + one) % 2**32, steps, guidance, *sides).save(file, format="PNG")

    serve("diffusers", "1", ["images"], f"{name}, {cards.in_words(told)}: {cards.fingerprint(told)}", run)


main()
