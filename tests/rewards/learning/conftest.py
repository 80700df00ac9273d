"""Tiny models from configuration and a tokenizer made here, so that no test needs a download."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "<s>", "</s>"]
SHAPE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}[{{ message['role'] }}] {{ message['content'] | trim }}{{ eos_token }}"
    "{% endfor %}"
)


@pytest.fixture(scope="session", autouse=True)
def _quiet_and_single_threaded() -> None:
    torch.set_num_threads(1)
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="session")
def encoder_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights."""
    directory = tmp_path_factory.mktemp("encoder")
    tokenizer = make_tokenizer(pair=True)
    torch.manual_seed(1)
    BertModel(BertConfig(vocab_size=len(tokenizer), **SHAPE)).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def modern_bert_directory(encoder_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ModernBERT of six layers, of two kinds, with random weights."""
    directory = tmp_path_factory.mktemp("modern-bert")
    tokenizer = AutoTokenizer.from_pretrained(encoder_directory)
    config = ModernBertConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=24, num_hidden_layers=6, num_attention_heads=2,
        pad_token_id=0, cls_token_id=2, sep_token_id=3, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    torch.manual_seed(1)
    ModernBertModel(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(scope="session")
def decoder_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama of two layers with random weights, whose tokenizer has no pad token of its own."""
    directory = tmp_path_factory.mktemp("decoder")
    tokenizer = make_tokenizer(pair=False)
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(1)
    config = LlamaConfig(vocab_size=len(tokenizer), **SHAPE)
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture(params=["encoder", "decoder"])
def backbone(request: pytest.FixtureRequest, encoder_directory: Path, decoder_directory: Path) -> Path:
    return encoder_directory if request.param == "encoder" else decoder_directory


def make_tokenizer(*, pair: bool) -> Any:
    """A character a token: lengths in a test can be counted by eye."""
    characters = [chr(code) for code in range(32, 127)] + ["\n"]
    vocabulary = {token: index for index, token in enumerate([*SPECIAL, *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    if pair:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]"
        )
    # Like Llama's: it puts its own begin before whatever it tokenises.
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 4)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, unk_token="[UNK]", bos_token="<s>", eos_token="</s>"
    )
