"""Makes a language model of a million random weights, so that an alignment can be tried without downloading anything.

`python -m rewards.learning.aligning.tiny_base DIRECTORY FILE` takes seconds. It knows the byte pairs of the file's text
and nothing else: what it answers is noise, before an alignment and after a short one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

VOCABULARY = 2_000
END, PAD = "<|im_end|>", "<|pad|>"
START = "<|im_start|>"
TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' "
    "+ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def make(directory: Path, text: Path, *, seed: int = 0) -> None:
    """Writes a Llama of two layers and a tokenizer into the directory, which appears only once it is whole."""
    pieces = Tokenizer(models.BPE())
    pieces.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    pieces.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, START, END], initial_alphabet=alphabet, show_progress=False
    )
    pieces.train([str(text)], trainer)
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=pieces, eos_token=END, pad_token=PAD
    )
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    shape = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    building = directory.with_name(f".{directory.name}-{os.getpid()}")
    LlamaForCausalLM(shape).save_pretrained(building)
    tokenizer.save_pretrained(building)
    building.rename(directory)


if __name__ == "__main__":
    Path(sys.argv[1]).parent.mkdir(parents=True, exist_ok=True)
    make(Path(sys.argv[1]), Path(sys.argv[2]))
