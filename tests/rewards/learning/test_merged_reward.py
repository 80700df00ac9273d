from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification, AutoTokenizer

from rewards.learning.data import file_sha256
from rewards.learning.merged_reward import POOLED, REWARD_MANIFEST, NoStockClass, write_reward
from rewards.learning.model_files import MANIFEST, CorruptCheckpoint, save_checkpoint
from rewards.learning.score import load
from tests.rewards.learning.test_model_files import ITEMS, make_checkpoint


@pytest.fixture
def model(backbone: Path, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "model", make_checkpoint(backbone))
    return tmp_path / "model"


@pytest.fixture
def decoder(decoder_directory: Path, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "model", make_checkpoint(decoder_directory))
    return tmp_path / "model"


def rewards_of(model: Path) -> list[float]:
    return [scored.reward for scored in load(model, device="cpu", precision="fp32").score(ITEMS)]


def test_a_decoder_becomes_a_sequence_classifier_of_one_output(decoder: Path, tmp_path: Path) -> None:
    write_reward(decoder, tmp_path / "reward")
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "reward")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "reward")
    chats = [[*map(vars, item.conversation), {"role": "assistant", "content": item.response}] for item in ITEMS]
    texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats]
    batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False, return_token_type_ids=False)
    with torch.inference_mode():
        plain = network(**batch).logits
    assert plain.shape == (len(ITEMS), 1)
    assert plain[:, 0].tolist() == pytest.approx(rewards_of(decoder), abs=1e-5)
    assert network.config.problem_type == "regression"
    assert network.config.id2label == {0: "reward"}


def test_an_encoder_becomes_a_token_classifier_to_average(encoder_directory: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "model", make_checkpoint(encoder_directory))
    write_reward(tmp_path / "model", tmp_path / "reward")
    network = AutoModelForTokenClassification.from_pretrained(tmp_path / "reward").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "reward")
    plain = [pooled(network, tokenizer, item) for item in ITEMS]
    manifest = json.loads((tmp_path / "reward" / REWARD_MANIFEST).read_text())
    assert manifest["outputs"] == list(network.config.id2label.values()) == ["response", "prompt"]
    assert plain == pytest.approx(rewards_of(tmp_path / "model"), abs=1e-5)


def pooled(network: Any, tokenizer: Any, item: Any) -> float:
    pooling = getattr(network.config, POOLED)
    prompt = tokenizer.apply_chat_template([vars(turn) for turn in item.conversation], tokenize=False)
    inputs = tokenizer(
        prompt, item.response, truncation="only_first", max_length=pooling["max_length"], return_tensors="pt"
    )
    sides = inputs.sequence_ids(0)
    start, length = sides.index(1), torch.tensor(float(sides.count(1)))
    with torch.inference_mode():
        logits = network(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).logits[0]
    reward = logits[start:, 0].mean() + logits[:start, 1].mean() + pooling["length_weight"] * length.log1p()
    return float(reward) + float(pooling["bias"])


def test_an_encoder_with_more_layers_before_its_head_has_no_stock_class(
    modern_bert_directory: Path, tmp_path: Path
) -> None:
    save_checkpoint(tmp_path / "model", make_checkpoint(modern_bert_directory))
    with pytest.raises(NoStockClass, match="does not compute"):
        write_reward(tmp_path / "model", tmp_path / "reward")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_its_manifest_has_the_hash_of_every_file_and_no_place(model: Path, tmp_path: Path) -> None:
    write_reward(model, tmp_path / "reward")
    text = (tmp_path / "reward" / REWARD_MANIFEST).read_text()
    manifest = json.loads(text)
    others = {path for path in (tmp_path / "reward").iterdir() if path.name != REWARD_MANIFEST}
    assert manifest["files"] == {path.name: file_sha256(path) for path in others}
    assert manifest["model"] == file_sha256(model / MANIFEST)
    assert not [path for path in others if str(tmp_path).encode() in path.read_bytes()]


def test_files_without_the_head_are_shared_with_the_model(decoder: Path, tmp_path: Path) -> None:
    weights = load_file(decoder / "model.safetensors")
    head = {name: tensor for name, tensor in weights.items() if name == "score.weight"}
    parts = {"a.safetensors": {n: t for n, t in weights.items() if n not in head}, "b.safetensors": head}
    for name, part in parts.items():
        save_file(part, decoder / name, metadata={"format": "pt"})
    (decoder / "model.safetensors").unlink()
    index = {"metadata": {"total_size": 1}, "weight_map": {n: f for f, part in parts.items() for n in part}}
    (decoder / "model.safetensors.index.json").write_text(json.dumps(index))
    manifest = json.loads((decoder / MANIFEST).read_text())
    manifest["files"] = {path.name: file_sha256(path) for path in decoder.iterdir() if path.name != MANIFEST}
    (decoder / MANIFEST).write_text(json.dumps(manifest))
    write_reward(decoder, tmp_path / "reward")
    assert (decoder / "a.safetensors").samefile(tmp_path / "reward" / "a.safetensors")
    assert not (decoder / "b.safetensors").samefile(tmp_path / "reward" / "b.safetensors")
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "reward")
    expected = {"helpfulness": 1.0, "verbosity": -0.5}.values()
    rows = zip(head["score.weight"], expected, strict=True)
    assert torch.allclose(network.score.weight[0], sum((weight * row for row, weight in rows), torch.zeros(1)))


def test_it_refuses_a_model_whose_files_are_others(model: Path, tmp_path: Path) -> None:
    (model / "config.json").write_text("{}")
    with pytest.raises(CorruptCheckpoint):
        write_reward(model, tmp_path / "reward")
