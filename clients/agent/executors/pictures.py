"""Requests for images by a model, as tasks of the kind `images` have them: docs/executors.md. Standard library alone."""

from lines import Bound, TaskFault, allow, read_json, without_halves
from texts import number

# The most images of a task, steps of an image, and characters of a prompt.
IMAGES, STEPS, CHARACTERS = 4, 100, 4_096
# All fields but `prompt`, and their values where an input leaves them out. They are the same on every node: nodes that draw one input
# otherwise would judge each other wrong, also under different names, since a task that requires no GPU goes to nodes of any.
DEFAULTS = {"negative_prompt": None, "seed": 0, "steps": 20, "guidance": 7.5, "width": 512, "height": 512}


def picture(task, largest):
    """A task's request with every field, and the fields that its input names."""
    value = read_json(task["input"])
    allow(value, ("prompt", *DEFAULTS))
    whole = {"prompt": None, **DEFAULTS, **value}
    for field in ("prompt", "negative_prompt"):
        if (field == "prompt" or whole[field] is not None) and (not isinstance(whole[field], str) or len(whole[field]) > CHARACTERS):
            raise TaskFault(f"`{field}` must be a text of at most {CHARACTERS:,} characters")
    without_halves(value)
    number(whole["seed"], "seed", 0, 2**32 - 1, whole=True)
    number(whole["steps"], "steps", 1, STEPS, whole=True)
    number(whole["guidance"], "guidance", 0, 30)
    if any(type(whole[side]) is not int or whole[side] % 16 or whole[side] < 64 for side in ("width", "height")):
        raise TaskFault("`width` and `height` are multiples of 16 from 64 on")
    if task["units"] > IMAGES:
        raise TaskFault(f"a task has at most {IMAGES} images")
    if max(whole["width"], whole["height"]) > largest:
        raise Bound(f"`width` and `height` are {largest} at most on this node")
    return whole, set(value)
