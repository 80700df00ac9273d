"""The log-probabilities of tokens, however they are arranged, for several architectures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import log_softmax
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertConfig,
    BertModel,
    Gemma2Config,
    GPT2Config,
    MistralConfig,
    Qwen3Config,
)

from rewards.learning import sharding
from rewards.learning.aligning.policy import (
    MissingPolicy,
    NotALanguageModel,
    Policy,
    find_policy,
    load_policy,
    policy_hash,
)
from rewards.learning.aligning.sampling import prompt_tokens
from rewards.learning.aligning.sides import Unit
from rewards.learning.backbones import PickledBackbone
from rewards.learning.chat_templates import frozen
from rewards.learning.packing import pack
from tests.rewards.learning.aligning.builders import make_judged_rows, make_units, turns
from tests.rewards.learning.chat_shapes import OF_THE_DAY
from tests.rewards.learning.conftest import make_tokenizer

WIDTH: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 103}
DEEP: dict[str, Any] = {**WIDTH, "intermediate_size": 24, "num_key_value_heads": 1, "head_dim": 8}
KINDS = {
    "qwen3": Qwen3Config(**DEEP, tie_word_embeddings=True),
    "gpt2": GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=103),
    # Its window slides, so packed rows are not tried, and its logits are capped.
    "gemma2": Gemma2Config(**DEEP, sliding_window=8, final_logit_softcapping=2.0),
    "mistral": MistralConfig(**DEEP, sliding_window=8),
}


def loaded(directory: Path) -> Policy:
    return load_policy(find_policy(str(directory)), max_length=64, device=torch.device("cpu"))


@pytest.fixture
def units(decoder_directory: Path, tmp_path: Path) -> list[Unit]:
    return make_units(tmp_path, loaded(decoder_directory).frame, make_judged_rows(6))


def test_a_prompt_to_answer_is_cut_by_whole_turns(decoder_directory: Path) -> None:
    policy, talk = loaded(decoder_directory), turns("a" * 30, "b" * 20, "c" * 10)
    read = policy.frame.tokenizer.decode(prompt_tokens(policy, talk, 20)).replace(" ", "")
    assert read == "<s>[user]cccccccccc</s>[assistant]"


def test_a_policy_is_stored_with_its_own_template_and_trained_by_a_stopped_clock(
    decoder_directory: Path, tmp_path: Path
) -> None:
    shutil.copytree(decoder_directory, tmp_path / "policy")
    (tmp_path / "policy" / "chat_template.jinja").write_text(OF_THE_DAY["gpt-oss"])
    frame = loaded(tmp_path / "policy").frame
    assert (frame.template, frame.tokenizer.chat_template) == (frozen(OF_THE_DAY["gpt-oss"]), OF_THE_DAY["gpt-oss"])


def groups(units: list[Unit]) -> list[list[Any]]:
    return [[side.encoded for side in unit.sides] for unit in units]


def apart(network: Any, units: list[Unit]) -> torch.Tensor:
    """The same by nothing but transformers: the logits at a token's place say what comes at the next one."""
    values = []
    for side in (side for unit in units for side in unit.sides):
        logs = log_softmax(network(input_ids=torch.tensor([side.encoded.ids])).logits[0].float(), dim=-1)
        values += [logs[place - 1, side.encoded.ids[place]] for place in side.learnt]
    return torch.stack(values)


@torch.no_grad()
def test_packed_rows_with_shared_prompts_give_what_separate_ones_do(decoder_directory: Path, units: list[Unit]) -> None:
    policy = loaded(decoder_directory)
    assert policy.packs
    plain = AutoModelForCausalLM.from_pretrained(decoder_directory)
    torch.testing.assert_close(policy.log_probs(groups(units)), apart(plain, units), atol=1e-5, rtol=0)


@torch.no_grad()
def test_padded_rows_give_the_same(decoder_directory: Path, units: list[Unit]) -> None:
    policy = loaded(decoder_directory)
    packed = policy.log_probs(groups(units))
    policy.unpack()
    torch.testing.assert_close(policy.log_probs(groups(units)), packed, atol=1e-5, rtol=0)


def test_the_prompt_is_read_once(units: list[Unit]) -> None:
    (pair,) = groups(units[:1])
    row = pack([pair], device=torch.device("cpu")).ids.shape[1]
    prompt = pair[0].response_start
    assert row <= sum(len(item.ids) for item in pair) - prompt


@pytest.mark.parametrize("kind", KINDS)
def test_other_architectures_give_what_transformers_does(kind: str, units: list[Unit], tmp_path: Path) -> None:
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(KINDS[kind]).save_pretrained(tmp_path / kind)  # type: ignore[no-untyped-call]
    make_tokenizer(pair=False).save_pretrained(tmp_path / kind)
    policy = loaded(tmp_path / kind)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / kind)
    with torch.no_grad():
        torch.testing.assert_close(policy.log_probs(groups(units)), apart(plain, units), atol=1e-5, rtol=0)


def test_a_tokenizer_without_a_template_gets_one_that_ends_answers(decoder_directory: Path, tmp_path: Path) -> None:
    AutoModelForCausalLM.from_pretrained(decoder_directory).save_pretrained(tmp_path)
    make_tokenizer(pair=False).save_pretrained(tmp_path)
    tokenizer = loaded(tmp_path).frame.tokenizer
    asked = [{"role": "user", "content": "Why?"}]
    answered = [*asked, {"role": "assistant", "content": "So."}]
    prompt = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert tokenizer.apply_chat_template(answered, tokenize=False) == prompt + "So.</s>"


def test_the_hash_follows_the_weights(decoder_directory: Path, tmp_path: Path) -> None:
    network = AutoModelForCausalLM.from_pretrained(decoder_directory)
    network.save_pretrained(tmp_path / "same")
    with torch.no_grad():
        network.lm_head.weight[0, 0] += 1
    network.save_pretrained(tmp_path / "other")
    same, other = (policy_hash(find_policy(str(tmp_path / name))) for name in ("same", "other"))
    assert policy_hash(find_policy(str(tmp_path / "same"))) == same != other


@pytest.mark.parametrize(("tied", "apart"), [(False, 1), (True, 0)])
def test_embeddings_that_are_also_the_last_layer_are_not_sharded_apart(
    tied: bool, apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharding, "LARGE", 0)
    network = AutoModelForCausalLM.from_config(Qwen3Config(**DEEP, tie_word_embeddings=tied))  # type: ignore[no-untyped-call]
    assert len(sharding.large_embeddings(network)) == apart


def test_an_absent_policy_is_refused() -> None:
    with pytest.raises(MissingPolicy, match="there is no policy in /nowhere: name a directory"):
        find_policy("/nowhere")


def test_a_pickled_policy_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(PickledBackbone, match="convert them to safetensors"):
        find_policy(str(tmp_path))


def test_an_encoder_is_no_policy(tmp_path: Path) -> None:
    BertModel(BertConfig(**WIDTH, intermediate_size=24)).save_pretrained(tmp_path)
    with pytest.raises(NotALanguageModel, match="name a causal language model"):
        loaded(tmp_path)


def test_a_tokenizer_without_an_end_is_refused(decoder_directory: Path, tmp_path: Path) -> None:
    AutoModelForCausalLM.from_pretrained(decoder_directory).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(decoder_directory)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(NotALanguageModel, match="set eos_token"):
        loaded(tmp_path)
