from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from rewards.learning import inference
from rewards.learning.backbones import MissingBackbone, Source, find_backbone
from rewards.learning.data import Item, Turn
from rewards.learning.inference import frozen_features, predict, stored_features
from rewards.learning.model import DecoderReward, EncoderReward, Loaded, collate, last_real, masked_mean
from rewards.learning.model_loading import UnknownArchitecture, is_encoder, load_backbone
from rewards.learning.ridge import constant_direction

CPU = torch.device("cpu")
ATTRIBUTES = ("helpfulness", "verbosity", "clarity")
ITEMS = [Item(str(n), (Turn("user", "q" * n),), "answer " * n) for n in (1, 3, 2)]


def load(directory: Path) -> Loaded:
    torch.manual_seed(0)
    return load_backbone(Source(str(directory), local=True), attributes=ATTRIBUTES, max_length=64)


def test_the_last_real_token_is_found_by_the_mask() -> None:
    assert last_real(torch.tensor([[1, 1, 0], [0, 1, 1], [1, 1, 1]])).tolist() == [1, 2, 2]


def test_a_mean_ignores_what_padding_holds() -> None:
    hidden = torch.tensor([[[1.0], [3.0], [float("nan")]]])
    assert masked_mean(hidden, torch.tensor([[1, 1, 0]])).item() == 2


def test_a_decoder_pools_the_token_that_ends_the_text(decoder_directory: Path) -> None:
    loaded = load(decoder_directory)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    batch = loaded.collate(encoded)
    pooled = batch.ids[torch.arange(3), last_real(batch.mask)]
    assert pooled.tolist() == [loaded.frame.tokenizer.eos_token_id] * 3


def test_left_and_right_padding_agree(decoder_directory: Path) -> None:
    loaded = load(decoder_directory)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    pad = loaded.frame.tokenizer.pad_token_id
    with torch.inference_mode():
        right, left = (loaded.network(collate(encoded, pad=pad, device=CPU, left=side)) for side in (False, True))
    torch.testing.assert_close(left, right, atol=1e-6, rtol=0)


def test_a_pad_that_ends_texts_is_replaced(decoder_directory: Path) -> None:
    loaded = load(decoder_directory)
    tokenizer = loaded.frame.tokenizer
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)
    assert isinstance(loaded.network, DecoderReward)
    assert loaded.network.network.config.pad_token_id == tokenizer.pad_token_id


def test_a_score_does_not_depend_on_its_neighbours(backbone: Path) -> None:
    loaded = load(backbone)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    together = predict(loaded, encoded, batch_tokens=10_000)
    alone = [predict(loaded, [e], batch_tokens=10_000)[0] for e in encoded]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_cpu_reads_no_more_at_once_than_its_caches_hold(backbone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load(backbone)
    encoded = [loaded.frame.encode(item) for item in ITEMS * 4]
    read: list[int] = []
    loaded.network.register_forward_pre_hook(lambda _, given: read.append(given[0].ids.numel()))
    monkeypatch.setattr(inference, "CPU_TOKENS", 64)

    predict(loaded, encoded, batch_tokens=10_000)

    assert len(read) > 1
    assert max(read) <= 64


def test_a_head_without_weights_gives_the_means(backbone: Path) -> None:
    loaded = load(backbone)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    constant = torch.from_numpy(constant_direction(frozen_features(loaded, encoded, batch_tokens=999)))
    means = torch.tensor([3.0, 2.0, 1.0], dtype=torch.float64)
    loaded.network.set_head(torch.zeros(3, len(constant), dtype=torch.float64), means, constant)
    torch.testing.assert_close(
        torch.tensor(predict(loaded, encoded, batch_tokens=999)), means.expand(3, 3), atol=1e-3, rtol=0
    )


def test_features_on_disk_are_those_in_memory_and_leave_nothing_behind(backbone: Path, tmp_path: Path) -> None:
    loaded = load(backbone)
    encoded = [loaded.frame.encode(item) for item in (*ITEMS, ITEMS[0])]
    stored = stored_features(loaded, encoded, batch_tokens=64, folder=tmp_path)
    assert isinstance(stored, np.memmap)
    assert stored.dtype == np.float32
    np.testing.assert_array_equal(stored, frozen_features(loaded, encoded, batch_tokens=64))
    assert not list(tmp_path.iterdir())


def test_weights_and_head_are_fp32_and_dropout_is_off(backbone: Path) -> None:
    network = load(backbone).network
    assert {p.dtype for p in network.parameters()} == {torch.float32}
    assert not any(module.training for module in network.modules())


def test_the_head_computes_in_fp32_whatever_the_rest_does(backbone: Path) -> None:
    loaded = load(backbone)
    batch = loaded.arranged([[loaded.frame.encode(ITEMS[0])]])
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        scores, features = loaded.network(batch), loaded.network.features(batch)
    assert scores.dtype == torch.float32
    with torch.no_grad():
        torch.testing.assert_close(scores, loaded.network.head(features), atol=0, rtol=0)


def test_modern_bert_is_an_encoder_too(modern_bert_directory: Path) -> None:
    loaded = load(modern_bert_directory)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    together, alone = predict(loaded, encoded, batch_tokens=999), predict(loaded, encoded, batch_tokens=1)
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_an_encoder_knows_how_long_the_response_was(encoder_directory: Path) -> None:
    loaded = load(encoder_directory)
    assert isinstance(loaded.network, EncoderReward)
    long = loaded.frame.encode(Item("i", (Turn("user", "q"),), "x" * 500))
    features = loaded.network.features(loaded.collate([long]))
    assert features[0, -1].item() == pytest.approx(torch.log1p(torch.tensor(500.0)).item())


def test_positions_limit_the_length(encoder_directory: Path) -> None:
    source = Source(str(encoder_directory), local=True)
    assert load_backbone(source, attributes=ATTRIBUTES, max_length=9999).frame.max_length == 64


def test_it_refuses_an_absent_backbone(tmp_path: Path) -> None:
    with pytest.raises(MissingBackbone, match="no backbone directory"):
        find_backbone(str(tmp_path / "nothing"))


def test_it_refuses_a_directory_that_is_no_backbone(tmp_path: Path) -> None:
    with pytest.raises(MissingBackbone, match="cannot be loaded"):
        load(tmp_path)


def test_it_refuses_an_architecture_that_reads_no_text() -> None:
    with pytest.raises(UnknownArchitecture, match="vit"):
        is_encoder("vit")
