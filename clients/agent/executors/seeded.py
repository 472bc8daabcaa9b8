"""Models of real shapes with seeded weights, which need no download: seeded.py llama|diffusion SIZE FOLDER

Sizes of llama: tiny (tests), small, 1b, 8b. Of diffusion: tiny (tests), small, sdxl. Their texts and images are meaningless."""

import hashlib
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import torch

# hidden, intermediate, layers, heads, heads of keys and values, vocabulary
LLAMA = {
    "tiny": (64, 128, 2, 4, 2, 260),
    "small": (128, 344, 4, 8, 4, 4_096),
    "1b": (2_048, 8_192, 16, 32, 8, 128_256),
    "8b": (4_096, 14_336, 32, 32, 8, 128_256),
}
# channels of the four blocks, of the text's encoder, and its layers; channels of the decoder
DIFFUSION = {
    # A decoder of four blocks, as that of real models: with fewer, an image is far more numbers, and attention takes minutes.
    "tiny": ((32, 64), 32, 2, (16, 16, 32, 32)),
    "small": ((64, 128, 128), 64, 2, (32, 64, 64)),
    "sdxl": ((320, 640, 1_280, 1_280), 768, 12, (128, 256, 512, 512)),
}


def fill(make, seed):
    """A model whose weights are the same on every machine: each tensor is drawn on the processor in 32 bits, by the seed and its name."""
    # Without memory at first: a library's own weights would be drawn in vain.
    with torch.device("meta"):
        model = make()
    model.to_empty(device="cpu")

    def draw(named):
        name, tensor = named
        with torch.no_grad():
            if tensor.ndim == 1:
                tensor.fill_(0 if name.endswith("bias") else 1)
                return
            chance = torch.Generator("cpu").manual_seed(int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:7], "big"))
            tensor.copy_(torch.randn(tensor.shape, generator=chance, device="cpu", dtype=torch.float32).mul_(tensor[0].numel() ** -0.5))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(draw, model.named_parameters()))
    return model


def tokens(place, kind="llama", count=None):
    """A tokenizer of bytes. What a model says beyond them are words that stand for their own numbers, so that a text shows every token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|end|>", "<|user|>", "<|assistant|>", "<|pad|>"]
    known = special + letters
    numbers = {letter: at for at, letter in enumerate(known + [f"\u0120w{at}" for at in range(len(known), count or 0)])}
    made = Tokenizer(models.BPE(vocab=numbers, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    length = {"model_max_length": 77} if kind == "clip" else {}
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", bos_token="<|end|>", pad_token="<|pad|>", **length)
    if kind == "llama":
        fast.chat_template = "{% for m in messages %}<|user|>{{ m['content'] }}{% endfor %}{{ strftime_now('%Y') }}<|assistant|>"
    fast.save_pretrained(place)


def llama(size, place, seed=1, dtype=torch.float32):
    from transformers import LlamaConfig, LlamaForCausalLM

    hidden, middle, layers, heads, shared, words = LLAMA[size]
    config = LlamaConfig(
        hidden_size=hidden, intermediate_size=middle, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=shared,
        vocab_size=words, max_position_embeddings=8_192, bos_token_id=0, eos_token_id=0, pad_token_id=3, tie_word_embeddings=False,
        dtype=dtype,
    )  # fmt: skip
    made = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    model = fill(lambda: LlamaForCausalLM(config), seed)
    torch.set_default_dtype(made)
    with torch.no_grad():
        # It does not end by itself.
        model.lm_head.weight[0] = 0
    model.save_pretrained(place, safe_serialization=True)
    tokens(place, count=words)


def diffusion(size, place, seed=1):
    from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
    from transformers import CLIPTextConfig, CLIPTextModel, PreTrainedTokenizerFast

    blocks, width, layers, decoder = DIFFUSION[size]
    heads = max(1, width // 64)
    unet = lambda: UNet2DConditionModel(  # noqa: E731
        sample_size=64, in_channels=4, out_channels=4, layers_per_block=2 if size == "sdxl" else 1, block_out_channels=blocks, norm_num_groups=16,
        down_block_types=("DownBlock2D", *["CrossAttnDownBlock2D"] * (len(blocks) - 1)),
        up_block_types=(*["CrossAttnUpBlock2D"] * (len(blocks) - 1), "UpBlock2D"),
        cross_attention_dim=width, attention_head_dim=8,
    )  # fmt: skip
    vae = lambda: AutoencoderKL(  # noqa: E731
        block_out_channels=decoder, norm_num_groups=16, latent_channels=4, in_channels=3, out_channels=3, sample_size=64,
        down_block_types=["DownEncoderBlock2D"] * len(decoder), up_block_types=["UpDecoderBlock2D"] * len(decoder),
    )  # fmt: skip
    text = lambda: CLIPTextModel(CLIPTextConfig(  # noqa: E731
        hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads, vocab_size=512,
        max_position_embeddings=77, bos_token_id=0, eos_token_id=0, pad_token_id=3,
    ))  # fmt: skip
    unet, vae, text = (fill(make, seed + at) for at, make in enumerate((unet, vae, text)))
    with tempfile.TemporaryDirectory() as words:
        tokens(words, "clip")
        words = PreTrainedTokenizerFast.from_pretrained(words)
    pipe = StableDiffusionPipeline(
        vae=vae, text_encoder=text, tokenizer=words, unet=unet, scheduler=DDIMScheduler(clip_sample=False, steps_offset=1), safety_checker=None,
        feature_extractor=None, requires_safety_checker=False,
    )  # fmt: skip
    pipe.save_pretrained(place, safe_serialization=True)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("llama", "diffusion"):
        sys.exit(__doc__.splitlines()[0])
    {"llama": llama, "diffusion": diffusion}[sys.argv[1]](sys.argv[2], sys.argv[3])
    print(json.dumps({"made": sys.argv[3]}))
