"""How many layers are read, and that a stored model knows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from rewards.learning.backbones import Source
from rewards.learning.baseline import NoSuchDepth, depths, read, settle
from rewards.learning.chat_templates import template_hash
from rewards.learning.data import Item, Turn, items_of, read_snapshot
from rewards.learning.inference import predict
from rewards.learning.model import Loaded
from rewards.learning.model_files import Checkpoint, Manifest, load_checkpoint, save_checkpoint
from rewards.learning.model_loading import load_backbone
from rewards.learning.sharding import layers_of
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json

ITEMS = [Item(str(n), (Turn("user", "q" * n),), "answer " * n) for n in (1, 3, 2)]


def load(directory: Path) -> Loaded:
    torch.manual_seed(0)
    return load_backbone(Source(str(directory), local=True), attributes=("helpfulness",), max_length=64)


@pytest.fixture
def forgetful_directory(encoder_directory: Path, tmp_path: Path) -> Path:
    """An encoder whose last layer says the same of everything."""
    network = AutoModel.from_pretrained(encoder_directory)
    with torch.no_grad():
        network.encoder.layer[-1].output.LayerNorm.weight.zero_()
    network.save_pretrained(tmp_path / "forgetful")
    AutoTokenizer.from_pretrained(encoder_directory).save_pretrained(tmp_path / "forgetful")
    return tmp_path / "forgetful"


def test_a_last_layer_that_says_nothing_is_not_read(forgetful_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=forgetful_directory, epochs=1)

    train(run)

    assert read_json(run / "metrics.json")["baseline"]["layers"] == 1
    for kind in ("baseline", "model"):
        assert read_json(run / kind / "config.json")["num_hidden_layers"] == 1
    stored = load_checkpoint(run / "baseline", device=torch.device("cpu")).loaded
    items = items_of(read_snapshot(tmp_path / "snapshot").validation)
    assert predict(stored, [stored.frame.encode(item) for item in items], batch_tokens=99).std() > 0.01


def test_as_many_layers_are_read_as_wanted(forgetful_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=forgetful_directory, epochs=0, layers=2)
    train(run)
    assert read_json(run / "metrics.json")["baseline"]["layers"] == 2
    assert read_json(run / "model" / "config.json")["num_hidden_layers"] == 2


def test_more_layers_than_there_are_is_refused(encoder_directory: Path) -> None:
    with pytest.raises(NoSuchDepth, match="layers is 3, but the backbone has 2"):
        depths(load(encoder_directory).network, 3)


def test_a_decoder_is_read_as_a_whole(decoder_directory: Path) -> None:
    network = load(decoder_directory).network
    with pytest.raises(NoSuchDepth, match="read as a whole"):
        depths(network, 1)
    assert [len(layers) for layers in depths(network, 0)] == [2]


def test_what_was_taken_away_can_be_put_back(encoder_directory: Path) -> None:
    loaded = load(encoder_directory)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    whole = predict(loaded, encoded, batch_tokens=99)
    every, part = depths(loaded.network, 0)
    read(loaded.network, part)
    assert not np.allclose(predict(loaded, encoded, batch_tokens=99), whole)
    read(loaded.network, every)
    np.testing.assert_array_equal(predict(loaded, encoded, batch_tokens=99), whole)


def test_layers_of_several_kinds_are_stored_by_kind(modern_bert_directory: Path, tmp_path: Path) -> None:
    loaded = load(modern_bert_directory)
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    read(loaded.network, depths(loaded.network, 0)[1])
    settle(loaded.network)

    save_checkpoint(tmp_path / "model", Checkpoint(loaded, manifest_of(loaded)))

    stored = load_checkpoint(tmp_path / "model", device=torch.device("cpu")).loaded
    assert len(layers_of(stored.network)) == 4
    np.testing.assert_allclose(
        predict(stored, encoded, batch_tokens=99), predict(loaded, encoded, batch_tokens=99), atol=1e-6
    )


def manifest_of(loaded: Loaded) -> Manifest:
    template = loaded.frame.template
    return Manifest(
        kind="ridge", attributes=("helpfulness",), attribute_weights={"helpfulness": 1.0}, means=(0.0,),
        pooling=loaded.network.pooling, backbone="", template=template, template_hash=template_hash(template),
        max_length=64, snapshot="", training={},
    )  # fmt: skip
