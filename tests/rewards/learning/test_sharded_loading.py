"""Several processes load, judge and store one network, of which each holds a part."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    MixtralConfig,
    MixtralForCausalLM,
)

from rewards.learning import tensor_files
from rewards.learning.backbones import Source
from rewards.learning.data import Floats, Item, Turn
from rewards.learning.inference import frozen_features, predict
from rewards.learning.model import Loaded
from rewards.learning.model_files import load_checkpoint
from rewards.learning.model_loading import load_backbone
from rewards.learning.tensor_files import Stored, stored_in, write_shards, write_tensors
from rewards.learning.train import train
from tests.rewards.learning.builders import make_run, read_json, write_jsonl
from tests.servers import ROOT

CPU = torch.device("cpu")
ITEMS = [Item(str(n), (Turn("user", "q" * n),), "answer " * n) for n in (1, 3, 2)]
THIRDS = """
import json, sys
from pathlib import Path
import torch
from rewards.learning import distributed, tensor_files
from rewards.learning.chat_templates import template_hash
from rewards.learning.inference import frozen_features, predict
from rewards.learning.model_files import RIDGE, Checkpoint, Manifest, load_checkpoint, save_checkpoint
from rewards.learning.process_end import end
from rewards.learning.sharding import own_part
from tests.rewards.learning.test_sharded_loading import CPU, ITEMS, load, set_head

backbone, place = map(Path, sys.argv[1:])
tensor_files.SHARD = 4_000
distributed.join(CPU)

def about(loaded):
    encoded = [loaded.frame.encode(item) for item in ITEMS]
    network = loaded.network
    parts = [(own_part(p)[0].numel(), p.numel()) for p in network.parameters()]
    return {
        "held": sum(part for part, _ in parts),
        "all": sum(number for _, number in parts),
        "packs": network.packs,
        "features": frozen_features(loaded, encoded, batch_tokens=64).tolist(),
        "scores": predict(loaded, encoded, batch_tokens=64).tolist(),
    }

loaded = load(backbone)
set_head(loaded)
manifest = Manifest(
    RIDGE, ("a", "b"), {"a": 1.0, "b": 1.0}, (2.0, 2.0), loaded.network.pooling, "x", loaded.frame.template,
    template_hash(loaded.frame.template), 64, "c0ffee", {},
)
told = {"new": about(loaded)}
save_checkpoint(place, Checkpoint(loaded, manifest))
told["stored"] = about(load_checkpoint(place, device=CPU).loaded)
every = distributed.gathered({distributed.rank(): told})
if distributed.is_first():
    place.with_suffix(".json").write_text(json.dumps(every))
distributed.leave()
end(0)
"""


def load(backbone: Path) -> Loaded:
    return load_backbone(Source(str(backbone), local=True), attributes=["a", "b"], max_length=64)


def set_head(loaded: Loaded) -> None:
    dice = torch.Generator().manual_seed(1)
    weight = torch.randn(loaded.network.head.weight.shape, generator=dice, dtype=torch.float64)
    loaded.network.set_head(weight, torch.zeros(2).double(), torch.zeros(weight.shape[1]).double())


def in_thirds(backbone: Path, place: Path) -> list[dict[str, Any]]:
    """What three processes tell about the network, after they have stored it at `place`: nothing is divisible by 3."""
    script = place.with_name("thirds.py")
    script.write_text(THIRDS, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3", str(script)]
    done = subprocess.run(
        [*command, str(backbone), str(place)], cwd=ROOT, env=environment(), check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, dict[str, Any]] = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
    return [told[str(number)] for number in range(3)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["decoder"], indirect=True)  # what is shared out is the same in an encoder
def test_each_process_holds_a_third_and_all_say_what_one_says(backbone: Path, tmp_path: Path) -> None:
    place = tmp_path / "model"
    told = in_thirds(backbone, place)
    scores = require_same(told, backbone)
    # Several files, which one process and plain transformers load as well.
    assert (place / "model.safetensors.index.json").is_file()
    again = load_checkpoint(place, device=CPU).loaded
    encoded = [again.frame.encode(item) for item in ITEMS]
    np.testing.assert_allclose(predict(again, encoded, batch_tokens=64), scores, atol=1e-5)
    kind = AutoModelForSequenceClassification if again.network.pooling == "last" else AutoModel
    _, report = kind.from_pretrained(place, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]


@pytest.mark.slow
def test_a_mixture_of_experts_is_loaded_whole_and_then_sharded(decoder_directory: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(decoder_directory)
    shape: dict[str, Any] = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
    }
    config = MixtralConfig(vocab_size=len(tokenizer), intermediate_size=32, num_local_experts=3, **shape)
    torch.manual_seed(1)
    MixtralForCausalLM(config).save_pretrained(tmp_path / "experts")
    tokenizer.save_pretrained(tmp_path / "experts")
    scores = require_same(in_thirds(tmp_path / "experts", tmp_path / "model"), tmp_path / "experts")
    again = load_checkpoint(tmp_path / "model", device=CPU).loaded
    encoded = [again.frame.encode(item) for item in ITEMS]
    np.testing.assert_allclose(predict(again, encoded, batch_tokens=64), scores, atol=1e-5)


def require_same(told: list[dict[str, Any]], backbone: Path) -> Floats:
    """Requires that each process held a third and that all computed what one computes; returns the scores."""
    alone = load(backbone)
    set_head(alone)
    encoded = [alone.frame.encode(item) for item in ITEMS]
    features, scores = (compute(alone, encoded, batch_tokens=64) for compute in (frozen_features, predict))
    for third in (one[which] for one in told for which in ("new", "stored")):
        assert third["held"] < 0.45 * third["all"]
        assert third["packs"] == alone.network.packs
        np.testing.assert_allclose(third["features"], features, atol=1e-6)
        np.testing.assert_allclose(third["scores"], scores, atol=1e-5)
    assert sum(one["new"]["held"] for one in told) == told[0]["new"]["all"]
    return scores


@pytest.mark.slow
def test_two_processes_judge_and_score_as_one_does(decoder_directory: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path, backbone=decoder_directory, epochs=0)
    train(run)
    data = tmp_path / "snapshot" / "validation.jsonl"
    items = [
        {"id": response["id"], "conversation": row["conversation"], "response": response["text"]}
        for row in map(json.loads, data.read_text(encoding="utf-8").splitlines())
        for response in row["responses"]
    ]
    judged, scored = [], []
    for processes in (1, 2):
        work = tmp_path / str(processes)
        work.mkdir()
        write_jsonl(work / "items.jsonl", items)
        given = {"model": str(run / "model"), "processes": processes, "device": "cpu"}
        for stage, more in (("evaluate", {"data": str(data)}), ("score", {})):
            (work / "config.json").write_text(json.dumps(given | more), encoding="utf-8")
            command = [sys.executable, "-m", "rewards.learning", stage, str(work)]
            subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True)
        assert read_json(work / "metrics.json")["rmse"] is not None
        judged.append([[*row["scores"].values()] for row in rows_in(work / "predictions.jsonl")])
        scored.append([[row["reward"], row["uncertainty"]] for row in rows_in(work / "scores.jsonl")])
    np.testing.assert_allclose(judged[0], judged[1], atol=1e-5)
    np.testing.assert_allclose(scored[0], scored[1], atol=1e-5)
    assert len(scored[0]) == len(items)


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_written_file_is_what_safetensors_reads(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(5, 3), "b": torch.tensor(7.0), "c": torch.randn(4).bfloat16(), "d": torch.empty(0, 2)}
    write_tensors(tmp_path / "t.safetensors", tensors)
    read = load_file(tmp_path / "t.safetensors")
    assert set(read) == set(tensors)
    assert all(torch.equal(read[name], tensor) and read[name].dtype == tensor.dtype for name, tensor in tensors.items())


def test_a_tensor_is_read_in_pieces_and_padded_with_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "AT_ONCE", 40)
    stored = torch.randn(7, 3)
    write_tensors(tmp_path / "t.safetensors", {"a": stored})
    target = torch.ones(9, 3)
    Stored(tmp_path / "t.safetensors", "a").fill(target)
    assert torch.equal(target, torch.cat([stored, torch.zeros(2, 3)]))


def test_a_model_of_several_files_has_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_files, "SHARD", 40)
    tensors = {name: torch.randn(6) for name in "abc"}
    write_shards(tmp_path, tensors)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text(encoding="utf-8"))
    assert index["metadata"]["total_size"] == 72
    assert set(index["weight_map"]) == set("abc")
    assert len(set(index["weight_map"].values())) == 3
    assert set(stored_in([tmp_path / file for file in set(index["weight_map"].values())])) == set("abc")
