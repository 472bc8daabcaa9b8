"""Images by a model of diffusers, out of a text. docs/executors.md has its input and output.

    executor.py --model stabilityai/sdxl-turbo [--revision COMMIT] [--largest 1024]
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
from lines import serve  # noqa: E402
from pictures import DEFAULTS, picture  # noqa: E402


def main():
    given = cards.arguments(__doc__.splitlines()[0])
    given.add_argument("--largest", type=int, default=1_024, help="pixels of a side at most")
    given = given.parse_args()
    place, name = cards.place_of(given.model, given.revision), given.name or given.model
    device = cards.device_of(torch, given.device)
    cards.settle(torch, device, given.threads)
    # No flag: tasks that require no GPU group compare the images of all nodes, and those of two number types differ. A processor, slow in
    # the narrow ones, is for tests.
    dtype = "float32" if device == "cpu" else "float16"

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
        size = cards.DTYPES[dtype]
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
        variant = "fp16" if any(".fp16" in file.name for file in cards.weights(place)) else None
        pipe = diffusers.AutoPipelineForText2Image.from_pretrained(
            place, torch_dtype=getattr(torch, dtype), use_safetensors=True, local_files_only=True, variant=variant, **without,
            **({"requires_safety_checker": False} if "safety_checker" in without else {}),
        )  # fmt: skip
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(device)

    pipe = cards.or_exit(load, name)
    # The largest possible image: if it does not fit, fail before the first task.
    if device == "cuda":
        cards.or_exit(lambda: draw("", None, 0, 1, DEFAULTS["guidance"], given.largest, given.largest), name)
        torch.cuda.empty_cache()
    told = cards.stack(torch, device, diffusers=diffusers.__version__, dtype=dtype, weights=cards.digest(place)[:16])

    def run(task):
        others = [other for other in task["models"] if other != name]
        if others:
            raise RuntimeError(f"this executor has {name} alone, not {', '.join(others)}")
        asked, _ = picture(task, given.largest)
        seed, how = asked["seed"], [asked[field] for field in ("steps", "guidance", "width", "height")]
        with open(task["output"], "wb") as file:
            for one in range(task["units"]):
                draw(asked["prompt"], asked["negative_prompt"], (seed + one) % 2**32, *how).save(file, format="PNG")

    serve("diffusers", "1", ["images"], f"{name}, {cards.in_words(told)}: {cards.fingerprint(told)}", run)


main()
