"""Texts by a model of transformers: greedy or seeded, one request at a time. docs/executors.md has its input and output.

    executor.py --model Qwen/Qwen2.5-7B-Instruct [--revision COMMIT] [--context 8192] [--attention sdpa] [--dtype bfloat16]
"""

import contextlib
import hashlib
import os
import re
import sys
from pathlib import Path

# Before torch is loaded; nothing is fetched here, and no repository's code runs.
os.environ.update(CUBLAS_WORKSPACE_CONFIG=":4096:8", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
sys.path.append(str(Path(__file__).resolve().parent.parent))

import cards  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from lines import Bound, TaskFault, serve  # noqa: E402
from texts import Growing, Words, answer, requests  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

# With a template that asks for today's date, nodes would answer differently around midnight.
DATE = "01 Jan 2026"


class Seeded(transformers.LogitsProcessor):
    """Draws each token by the request's seed and the token's place: the largest of logits and Gumbel noise is a sample. On the
    processor in 64 bits, so that equal logits give the same token on every card."""

    def __init__(self, prompt, request):
        self.prompt, self.request = prompt, request

    def __call__(self, tokens, scores):
        place = tokens.shape[1] - self.prompt
        seed = hashlib.sha256(f"{self.request['seed']} {place}".encode()).digest()
        chance = torch.Generator("cpu").manual_seed(int.from_bytes(seed[:7], "big"))
        logits = scores[0].to("cpu", torch.float64) / self.request["temperature"]
        if self.request["top_p"] < 1:
            likely, order = torch.sort(torch.softmax(logits, 0), descending=True, stable=True)
            logits[order[torch.cumsum(likely, 0) - likely >= self.request["top_p"]]] = -torch.inf
        uniform = torch.rand(logits.shape, generator=chance, dtype=torch.float64).clamp_min(1e-300)
        chosen = torch.argmax(logits - torch.log(-torch.log(uniform)))
        fixed = torch.full_like(scores, -torch.inf)
        fixed[0, chosen] = 0
        return fixed


def needs(config, place, context, attention, dtype):
    """Bytes of a card's memory that a model needs, by purpose."""
    missing = [name for name in ("num_attention_heads", "num_hidden_layers", "hidden_size") if not hasattr(config, name)]
    if missing:
        sys.exit(f"{place / 'config.json'} does not say {', '.join(missing)}, so the memory of this kind of model is not known: take another model")
    size, heads = cards.DTYPES[dtype], config.num_attention_heads
    head = getattr(config, "head_dim", None) or config.hidden_size // heads
    cache = 2 * config.num_hidden_layers * (getattr(config, "num_key_value_heads", None) or heads) * head * context * size
    # Intermediate values: eager attention keeps a square of the context for each head of a layer.
    work = 8 * context * max(getattr(config, "intermediate_size", None) or 0, config.hidden_size) * size
    work += heads * context * context * (size + 4) if attention == "eager" else 0
    return {"weights": cards.parameters(place) * size, f"cache of {context} tokens": cache, "work": work + cards.GIB // 2}


def main():
    given = cards.arguments(__doc__.splitlines()[0])
    given.add_argument("--dtype", default="bfloat16", choices=sorted(cards.DTYPES))
    given.add_argument("--context", type=int, default=8_192, help="tokens of prompt and answer together")
    given.add_argument("--attention", default="sdpa", choices=("eager", "sdpa", "flash"), help="flash is torch's own kernel")
    given = given.parse_args()
    place, name = cards.place_of(given.model, given.revision), given.name or given.model
    device = cards.device_of(torch, given.device)
    cards.settle(torch, device, given.threads)

    def kernel():
        return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if given.attention == "flash" else contextlib.nullcontext()

    def load():
        # Models of more than texts have a configuration of their texts within it.
        config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=False, local_files_only=True).get_text_config()
        free, where = cards.free(torch, device)
        instead = "take a smaller model, a shorter --context, or a card with more memory that nothing else uses"
        cards.fits(needs(config, place, given.context, given.attention, given.dtype), free, where, instead)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=getattr(torch, given.dtype), attn_implementation="eager" if given.attention == "eager" else "sdpa",
            use_safetensors=True, trust_remote_code=False, local_files_only=True,
        )  # fmt: skip
        model = model.to(device).eval()
        # Of the repository's own settings only the ends stay: a request names all others, and a penalty would change greedy texts.
        model.generation_config = transformers.GenerationConfig(eos_token_id=model.generation_config.eos_token_id)
        # The longest possible prompt: if it does not fit, fail before the first task.
        if device == "cuda":
            with torch.inference_mode(), kernel():
                model(torch.zeros((1, given.context), dtype=torch.long, device=device), use_cache=True, logits_to_keep=1)
            torch.cuda.empty_cache()
        return model

    model = cards.or_exit(load, name)
    # Words are drawn on the processor, even for a card. Several threads wait for each other when other programs are at work: on two
    # busy cores a word of 128,256 took 4.1 ms by two threads, and 2.7 ms by one.
    torch.set_num_threads(given.threads)
    tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=False, local_files_only=True)
    template = tokenizer.chat_template
    if isinstance(template, str):
        template = re.sub(r"strftime_now\([^()]*\)", f'"{DATE}"', template)
    told = cards.stack(
        torch, device, transformers=transformers.__version__, dtype=given.dtype, attention=given.attention, context=given.context,
        weights=cards.digest(place)[:16],
    )  # fmt: skip
    stack = cards.fingerprint(told)

    def encode(request):
        if request["prompt"] is not None:
            return tokenizer(request["prompt"]).input_ids
        if not isinstance(template, str):
            raise TaskFault(f"{name} has no template for messages: send `prompt`")
        try:
            return tokenizer.apply_chat_template(request["messages"], chat_template=template, add_generation_prompt=True, return_dict=False)
        except Exception as error:
            raise TaskFault(f"the template refuses the messages: {error}") from None

    def complete(request, say=None):
        prompt = encode(request)
        if not prompt:
            raise TaskFault("the prompt has no tokens")
        if len(prompt) + request["max_tokens"] > given.context:
            raise Bound(f"{len(prompt)} tokens and {request['max_tokens']} of the answer: together they are {given.context} at most on this node")
        drawn = transformers.LogitsProcessorList([Seeded(len(prompt), request)] if request["temperature"] > 0 else [])
        tokens = torch.tensor([prompt], device=device)
        with torch.inference_mode(), kernel():
            whole = model.generate(
                tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=request["max_tokens"], do_sample=False, num_beams=1,
                logits_processor=drawn, pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id,
                streamer=say and Words(tokenizer, say),
            )  # fmt: skip
        made = whole[0, len(prompt) :].tolist()
        ends = model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [ends]
        end = "stop" if made and made[-1] in ends else "length"
        return {"text": tokenizer.decode(made, skip_special_tokens=True), "tokens": len(made), "end": end}

    def run(task):
        others = [other for other in task["models"] if other != name]
        if others:
            raise RuntimeError(f"this executor has {name} alone, not {', '.join(others)}")
        if task["show"]:
            result = Growing(task, name)
            for request in requests(task):
                result.end(**complete(request, lambda more: result.say(more, stack)), fingerprint=stack)
            return result.done()
        answer(task, name, stack, [complete(request) for request in requests(task)])

    serve("transformers", "1", ["gpt"], f"{name}, {cards.in_words(told)}: {stack}", run, streams=True)


main()
