from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from rewards.learning.atomic_directories import whole_directory
from rewards.learning.backbones import Source
from rewards.learning.chat_templates import RENDERING, template_hash
from rewards.learning.data import Item, Turn
from rewards.learning.inference import predict
from rewards.learning.model_files import (
    MANIFEST,
    RIDGE,
    Checkpoint,
    CorruptCheckpoint,
    Manifest,
    NoCheckpoint,
    load_checkpoint,
    save_checkpoint,
)
from rewards.learning.model_loading import IncompleteWeights, load_backbone

CPU = torch.device("cpu")
ATTRIBUTES = ("helpfulness", "verbosity")
ITEMS = [Item(str(n), (Turn("user", "q" * n),), "answer " * n) for n in (1, 3, 2)]


def make_checkpoint(backbone: Path) -> Checkpoint:
    torch.manual_seed(0)
    loaded = load_backbone(Source(str(backbone), local=True), attributes=ATTRIBUTES, max_length=64)
    manifest = Manifest(
        kind=RIDGE,
        attributes=ATTRIBUTES,
        attribute_weights={"helpfulness": 1.0, "verbosity": -0.5},
        means=(2.0, 1.0),
        pooling=loaded.network.pooling,
        backbone=str(backbone),
        template=loaded.frame.template,
        template_hash=template_hash(loaded.frame.template),
        max_length=loaded.frame.max_length,
        snapshot="c0ffee",
        training={},
        rendering=RENDERING,
    )
    return Checkpoint(loaded, manifest)


@pytest.fixture
def stored(backbone: Path, tmp_path: Path) -> Path:
    save_checkpoint(tmp_path / "model", make_checkpoint(backbone))
    return tmp_path / "model"


def test_what_is_loaded_gives_the_numbers_of_what_was_saved(backbone: Path, stored: Path) -> None:
    saved, loaded = make_checkpoint(backbone).loaded, load_checkpoint(stored, device=CPU).loaded
    before, after = (predict(m, [m.frame.encode(i) for i in ITEMS], batch_tokens=999) for m in (saved, loaded))
    np.testing.assert_array_equal(before, after)


def test_a_model_of_an_earlier_release_goes_on_reading_as_it_has_learnt(
    decoder_directory: Path, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(decoder_directory)
    save_checkpoint(tmp_path / "model", checkpoint)
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text())
    del manifest["rendering"]  # as it was written then
    (tmp_path / "model" / MANIFEST).write_text(json.dumps(manifest))
    talk = (Turn("user", "a" * 20), Turn("assistant", "b" * 20), Turn("user", "c" * 20))
    of_today, earlier = checkpoint.loaded.frame, load_checkpoint(tmp_path / "model", device=CPU).loaded.frame
    spoken = Item("", talk[:1], "a</s>b")
    assert [frame.encode(spoken).ids.count(5) for frame in (of_today, earlier)] == [2, 3]
    cut = [frame.tokenizer.decode(frame.encode(Item("", talk, "d")).ids) for frame in (of_today, earlier)]
    assert cut[0].replace(" ", "").startswith("<s>[user]c")
    assert cut[1].replace(" ", "").startswith("<s>bb")
    assert all(frame.encode(ITEMS[0]) == earlier.encode(ITEMS[0]) for frame in (of_today, earlier))


def test_plain_transformers_gives_our_numbers(decoder_directory: Path, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(decoder_directory)
    save_checkpoint(tmp_path / "model", checkpoint)
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    chats = [[*item.conversation, Turn("assistant", item.response)] for item in ITEMS]
    texts = [tokenizer.apply_chat_template([vars(turn) for turn in chat], tokenize=False) for chat in chats]
    batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False, return_token_type_ids=False)
    with torch.inference_mode():
        plain = network(**batch).logits
    encoded = [checkpoint.loaded.frame.encode(item) for item in ITEMS]
    np.testing.assert_allclose(plain, predict(checkpoint.loaded, encoded, batch_tokens=999), atol=1e-5)


def test_a_decoder_is_stored_as_a_regression_with_named_outputs(decoder_directory: Path, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "model", make_checkpoint(decoder_directory))
    config = json.loads((tmp_path / "model" / "config.json").read_text(encoding="utf-8"))
    assert config["problem_type"] == "regression"
    assert config["id2label"] == {"0": "helpfulness", "1": "verbosity"}


def test_nothing_in_it_is_a_pickle(stored: Path) -> None:
    assert {path.suffix for path in stored.iterdir()} <= {".json", ".safetensors", ".jinja", ".txt"}


def test_every_file_but_the_manifest_has_its_hash_in_it(stored: Path) -> None:
    manifest = json.loads((stored / MANIFEST).read_text(encoding="utf-8"))
    assert set(manifest["files"]) == {path.name for path in stored.iterdir()} - {MANIFEST}


def test_it_refuses_a_directory_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(NoCheckpoint, match=MANIFEST):
        load_checkpoint(tmp_path, device=CPU)


def test_it_refuses_a_half_written_file(stored: Path) -> None:
    weights = stored / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(CorruptCheckpoint, match=r"model\.safetensors"):
        load_checkpoint(stored, device=CPU)


def test_it_refuses_a_missing_file(stored: Path) -> None:
    (stored / "tokenizer.json").unlink()
    with pytest.raises(CorruptCheckpoint, match="missing"):
        load_checkpoint(stored, device=CPU)


def test_it_refuses_a_manifest_cut_short(stored: Path) -> None:
    (stored / MANIFEST).write_text("{", encoding="utf-8")
    with pytest.raises(CorruptCheckpoint, match="not a reward model's manifest"):
        load_checkpoint(stored, device=CPU)


def test_it_refuses_weights_that_are_not_all_there(decoder_directory: Path, tmp_path: Path) -> None:
    checkpoint = make_checkpoint(decoder_directory)
    save_checkpoint(tmp_path / "model", checkpoint)
    tensors = load_file(tmp_path / "model" / "model.safetensors")
    del tensors["score.weight"]
    save_file(tensors, tmp_path / "model" / "model.safetensors", metadata={"format": "pt"})
    # A manifest that vouches for the incomplete file.
    unsigned = dataclasses.replace(checkpoint.manifest, files={})
    (tmp_path / "model" / MANIFEST).write_text(json.dumps(dataclasses.asdict(unsigned)), encoding="utf-8")
    with pytest.raises(IncompleteWeights, match=r"score\.weight"):
        load_checkpoint(tmp_path / "model", device=CPU)


def test_an_interrupted_write_leaves_the_former_directory(stored: Path) -> None:
    before = sorted(path.name for path in stored.iterdir())
    with pytest.raises(ZeroDivisionError):
        write_half(stored)
    assert sorted(path.name for path in stored.iterdir()) == before


def write_half(place: Path) -> None:
    with whole_directory(place) as unfinished:
        (unfinished / "half").write_text(f"{1 / 0}", encoding="utf-8")


@pytest.mark.parametrize("other", [{"format": 99}, {"pooling": "max"}, {"rendering": 99}])
def test_a_format_of_another_version_is_no_checkpoint_of_ours(stored: Path, other: dict[str, object]) -> None:
    fields = json.loads((stored / MANIFEST).read_text())
    (stored / MANIFEST).write_text(json.dumps(fields | other))
    with pytest.raises(NoCheckpoint, match="does not read"):
        load_checkpoint(stored, device=CPU)
