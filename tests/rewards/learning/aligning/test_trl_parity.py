"""DPO beside TRL's DPOTrainer, which runs in an environment of its own (READERS=FOLDER): one batch, both gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from rewards.learning.aligning.align import read_rows
from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.policy import Policy, find_policy, load_policy
from rewards.learning.aligning.reference import Judgements, log_probs_of
from rewards.learning.aligning.sides import units_of
from rewards.learning.aligning.training import Run, make_optimizer, sizes_of, take_step
from rewards.learning.progress import Progress
from rewards.learning.resume_point import Place, State
from tests.environments import needs_readers, said_by, trl
from tests.rewards.learning.aligning.builders import TEMPLATE, make_judged_rows
from tests.rewards.learning.builders import write_jsonl
from tests.rewards.learning.conftest import make_tokenizer

pytestmark = [needs_readers, pytest.mark.slow, pytest.mark.xdist_group("readers")]
CLOSE = 1e-5
BETA = 0.3
SHAPE: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 96, "max_position_embeddings": 512,
}  # fmt: skip

PROGRAM = """
import json, sys
import torch
from datasets import Dataset
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer
policy, reference, data, beta, out, scratch = sys.argv[1:]
torch.set_num_threads(1)
def answer(text):
    return [{"role": "assistant", "content": text}]
rows = [json.loads(line) for line in open(data)]
rows = [{"prompt": row["conversation"], "chosen": answer(row["chosen"]), "rejected": answer(row["rejected"])}
    for row in rows]
how = DPOConfig(output_dir=scratch, use_cpu=True, bf16=False, report_to="none", beta=float(beta), max_length=None,
    gradient_checkpointing=False, per_device_train_batch_size=len(rows))
model, other = (AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32) for place in (policy, reference))
tokenizer = AutoTokenizer.from_pretrained(policy)
tokenizer.pad_token = tokenizer.eos_token
trainer = DPOTrainer(model, other, args=how, train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
(batch,) = trainer.get_train_dataloader()
model.eval()
loss = trainer.compute_loss(model, batch)
loss.backward()
save_file({name: value.grad.contiguous() for name, value in model.named_parameters()}, out)
print(json.dumps([loss.item(), int(batch["completion_mask"].sum())]))
"""


def make_policy(directory: Path, *, seed: int) -> Path:
    tokenizer = make_tokenizer(pair=False)
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(seed)
    network: Any = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **SHAPE))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(3)  # so that policy and reference differ by more than rounding
    network.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def loaded(place: Path) -> Policy:
    return load_policy(find_policy(str(place)), max_length=512, device=torch.device("cpu"))


def test_a_batch_has_trl_s_loss_and_gradients(tmp_path: Path) -> None:
    policy, reference = (make_policy(tmp_path / str(seed), seed=seed) for seed in (1, 2))
    data = write_jsonl(tmp_path / "rows.jsonl", make_judged_rows(8))
    out = tmp_path / "gradients.safetensors"
    words = [policy, reference, data, BETA, out, tmp_path / "trl"]
    loss, tokens = json.loads(said_by(trl(), PROGRAM, *words, HOME=str(tmp_path)))
    ours, state, run = one_step(policy, reference, data, tmp_path)
    assert sum(len(side.learnt) for unit in run.train.units for side in unit.sides) == tokens
    assert abs(ours - torch.log(torch.tensor(2.0))) > 0.01
    assert ours == pytest.approx(loss, abs=CLOSE)
    theirs = load_file(out)
    gradients = {name: parameter.grad for name, parameter in state.network.named_parameters()}
    assert set(gradients) == set(theirs)
    for name, gradient in gradients.items():
        torch.testing.assert_close(gradient, theirs[name], atol=CLOSE, rtol=CLOSE)
    assert max(gradient.abs().max().item() for gradient in theirs.values()) > 100 * CLOSE


def one_step(policy: Path, reference: Path, data: Path, directory: Path) -> tuple[float, State, Run]:
    """Our loop's own step over the whole file, after which the gradients still lie on the parameters."""
    config = AlignConfig(
        method="dpo", policy=str(policy), data=str(data), beta=BETA, batch_size=8, held_out_share=0, max_grad_norm=1e9
    )
    ours = loaded(policy)
    assert ours.packs
    units = units_of(read_rows(directory, config).train, ours.frame, config)
    train = Judgements(units, log_probs_of(loaded(reference), units))
    run = Run(config, ours, train, Judgements([], []), Progress(directory / "p.jsonl"), directory / "checkpoint", "")
    state = State(ours.network, make_optimizer(ours, config), Place(), {})
    take_step(run, state, sizes_of(run), range(len(units)), steps=1)
    return state.place.losses[0], state, run
