"""The policy: any causal language model of transformers, and the log-probabilities that it gives to tokens.

Responses of one prompt go through the network in one packed row, where the architecture can read that.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from rewards.learning import distributed
from rewards.learning.adapters import add_adapters, merge_adapters, start_adapters
from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.sides import learnt_places
from rewards.learning.atomic_directories import write_json
from rewards.learning.backbones import MissingBackbone, Source, find_backbone
from rewards.learning.batches import Sizes
from rewards.learning.chat_templates import frozen, require_steady, template_hash
from rewards.learning.config import AUTO, BFLOAT16
from rewards.learning.data import file_sha256
from rewards.learning.encoding import ChatFrame, Encoded
from rewards.learning.model import collate
from rewards.learning.model_files import save_weights
from rewards.learning.model_loading import allocate, fill, is_empty, positions, pretrained, weight_files
from rewards.learning.packing import ATTENTION, PROBE, causal_mask, may_pack, pack, packed_length, shared_length
from rewards.learning.refusals import Refused
from rewards.learning.sharding import settle, shard
from rewards.learning.tensor_files import Stored

POLICY_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ eos_token }}{% else %}\n\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
"""For a policy whose tokenizer has no chat template."""
Groups = Sequence[Sequence[Encoded]]
"""Items by group: those of a group begin alike."""


class MissingPolicy(Refused):
    """The policy's files cannot be loaded."""


class NotALanguageModel(Refused):
    """The policy is of a type that predicts no next token, or its tokenizer lacks what alignment needs."""


@dataclass
class Policy:
    """A causal language model with the frame that turns text into its input.

    `half` says that its passes are computed in bf16, though the weights are in fp32.
    """

    network: Any
    frame: ChatFrame
    packs: bool = False
    half: bool = False
    plain_attention: str = "sdpa"

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self.network.parameters()).device
        return device

    def log_probs(self, groups: Groups) -> Tensor:
        """[learnt tokens] in fp32: log pi of each learnt token of every item, in the order of the groups."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            logits, targets = self._packed(groups) if self.packs else self._padded(groups)
        # In fp32, as in bf16 the sum over a vocabulary has an error of percents.
        return -cross_entropy(logits.float(), targets, reduction="none")

    def sizes(self, groups: Groups) -> Sizes:
        """Returns what each group costs in a batch."""
        rows = [len(group) for group in groups]
        if self.packs:
            packed = [packed_length(group) for group in groups]
            return Sizes(packed, rows, packed, padded=False)
        widths = [max(len(item.ids) for item in group) for group in groups]
        return Sizes(widths, rows, [sum(len(item.ids) for item in group) for group in groups], padded=True)

    def _packed(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Returns the logits [learnt tokens, vocabulary] of one row without padding, and the tokens that follow."""
        packed = pack(groups, device=self.device)
        sources, targets = [], []
        for item, places in zip((item for group in groups for item in group), places_in_row(groups), strict=True):
            # A token is predicted at the place of the one before it: of the prompt's last one for the first.
            sources += [places[place - 1] for place in learnt_places(item)]
            targets += [item.ids[place] for place in learnt_places(item)]
        logits = self._logits(
            torch.tensor(sources, device=self.device),
            input_ids=packed.ids,
            position_ids=packed.positions,
            packing=packed,
        )
        return logits[0], torch.tensor(targets, device=self.device)

    def _padded(self, groups: Groups) -> tuple[Tensor, Tensor]:
        """Returns the same of padded rows."""
        items = [item for group in groups for item in group]
        batch = collate(items, pad=self.frame.tokenizer.eos_token_id, device=self.device)
        mask = causal_mask(batch.mask) if self.packs else batch.mask
        first = min(learnt_places(item).start for item in items) - 1
        logits = self._logits(
            torch.arange(first, batch.ids.shape[1] - 1, device=self.device),
            input_ids=batch.ids,
            attention_mask=mask,
            position_ids=(batch.mask.cumsum(dim=1) - 1).clamp(min=0),
        )
        rows = [row for row, item in enumerate(items) for _ in learnt_places(item)]
        places = torch.tensor([place for item in items for place in learnt_places(item)], device=self.device)
        return logits[rows, places - 1 - first], batch.ids[rows, places]

    def _logits(self, sources: Tensor, **inputs: Any) -> Tensor:
        """[batch, sources, vocabulary]: the logits at these places; of the others none are computed where possible."""
        if "logits_to_keep" in inspect.signature(self.network.forward).parameters:
            kept: Tensor = self.network(**inputs, use_cache=False, logits_to_keep=sources).logits
            return kept
        logits: Tensor = self.network(**inputs, use_cache=False).logits
        return logits[:, sources]

    def try_packing(self) -> None:
        """Lets the network read packed rows if it gives the same for them as for separate ones.

        It is tried on a few tokens, as architectures differ, and in fp32: in bf16 two kernels round differently.
        """
        if not may_pack(self.network):
            return
        self.plain_attention = self.network.config._attn_implementation
        half, self.half = self.half, False
        with torch.no_grad():
            apart = torch.cat([self.log_probs([[item]]) for item in PROBE])
            self.network.set_attn_implementation(ATTENTION)
            self.packs = True
            try:
                together = self.log_probs([PROBE])
            except (TypeError, RuntimeError, ValueError):
                together = apart + torch.inf  # an architecture that cannot even run packed
        self.half = half
        self.packs = distributed.agreed(torch.allclose(apart, together, atol=1e-4, rtol=1e-3))
        if not self.packs:
            self.unpack()

    def unpack(self) -> None:
        """Lets the network read padded rows only, by the attention that it was loaded with, as generation needs it."""
        self.network.set_attn_implementation(self.plain_attention)
        self.packs = False


def places_in_row(groups: Groups) -> Iterator[list[int]]:
    """Yields for each item the places of its tokens in the row that `pack` makes of the groups."""
    end = 0
    for group in groups:
        shared = range(end, end + shared_length(group))
        end = shared.stop
        for item in group:
            own = range(end, end + len(item.ids) - len(shared))
            end = own.stop
            yield [*shared, *own]


def find_policy(place: str) -> Source:
    """Returns where a policy's files are: in a directory, or under a Hub id.

    Raises:
        MissingPolicy: there is no such directory.
        PickledBackbone: the directory has its weights as pickle only.
    """
    try:
        return find_backbone(place, source=place)
    except MissingBackbone:
        raise MissingPolicy(
            f"there is no policy in {place}: name a directory with a causal language model, or a Hub id"
        ) from None


def load_policy(
    source: Source, *, max_length: int, device: torch.device, half: bool = False, lora_rank: int = 0, seed: int = 0
) -> Policy:
    """Returns the policy in fp32, with dropout off and adapters of this rank; of several processes each holds a part.

    Raises:
        MissingPolicy: the files cannot be loaded.
        NotALanguageModel: the model is no causal language model, or has no fast tokenizer or no end-of-text token.
        IncompleteWeights: the files lack weights.
        UnsteadyTemplate: the chat template renders the same conversation differently at different times.
    """
    try:
        config = AutoConfig.from_pretrained(source.path, local_files_only=source.local, trust_remote_code=False)
        model_type = config.model_type
        # BERT has a causal class too, which no checkpoint was trained for.
        if model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
            raise NotALanguageModel(
                f"the policy {source} is of type {model_type}, which predicts no next token: name a causal language "
                "model"
            )
        tokenizer = AutoTokenizer.from_pretrained(source.path, local_files_only=source.local, trust_remote_code=False)
        if not tokenizer.is_fast:
            raise NotALanguageModel(
                f"the tokenizer of {source} does not say which characters a token holds: add its tokenizer.json"
            )
        if tokenizer.eos_token_id is None:
            raise NotALanguageModel(
                f"the tokenizer of {source} has no end-of-text token: set eos_token in its tokenizer_config.json"
            )
        network, stored = pretrained(AutoModelForCausalLM, source.path, local=source.local)
    except (OSError, ValueError) as error:
        raise MissingPolicy(f"the policy {source} cannot be loaded: {str(error).splitlines()[0]}") from error
    # More tokens than the policy has positions for would be an index error, or nonsense.
    limit = min(max_length, positions(config) or max_length)
    template = tokenizer.chat_template or POLICY_TEMPLATE
    require_steady(tokenizer, template)
    # Trained by a frozen clock, but stored with the template as it was: who talks to a policy may tell it the date.
    tokenizer.chat_template = template
    frame = ChatFrame(tokenizer, frozen(template), limit)
    policy = Policy(network, frame, half=half)
    install(policy, stored, device=device, lora_rank=lora_rank, seed=seed)
    return policy


def load_configured(place: str, config: AlignConfig, device: torch.device, *, lora_rank: int = 0) -> Policy:
    """Returns the policy in a directory or under a Hub id, as the configuration computes with it; raises as above."""
    return load_policy(
        find_policy(place),
        max_length=config.max_length,
        device=device,
        half=computes_in_half(config, device),
        lora_rank=lora_rank,
        seed=config.seed,
    )


def computes_in_half(config: AlignConfig, device: torch.device) -> bool:
    """Returns whether passes are computed in bf16."""
    return config.precision == BFLOAT16 or (config.precision == AUTO and device.type == "cuda")


@torch.no_grad()
def install(policy: Policy, stored: Mapping[str, Stored], *, device: torch.device, lora_rank: int, seed: int) -> None:
    """Puts the network on its device, sharded over the processes, and makes it ready to use."""
    network, empty = policy.network, is_empty(policy.network)
    if lora_rank:
        add_adapters(network.base_model, lora_rank)
        # It lies outside of what has adapters, and would be trained beside them.
        network.get_output_embeddings().requires_grad_(False)
    shard(network, device)
    if empty:
        allocate(network, device)
        fill(network, {name.removeprefix("network."): tensor for name, tensor in stored.items()})
    else:
        network.to(device)
    start_adapters(network, seed)
    network.eval()
    policy.try_packing()
    settle(network)


def policy_hash(source: Source) -> str:
    """Returns a hash of what the policy computes: its configuration and the files of its weights.

    Raises:
        MissingPolicy: the files cannot be read.
    """
    try:
        config = AutoConfig.from_pretrained(source.path, local_files_only=source.local, trust_remote_code=False)
        files = [file_sha256(path) for path in weight_files(source.path, local=source.local)]
    except (OSError, ValueError) as error:
        raise MissingPolicy(f"the policy {source} cannot be loaded: {str(error).splitlines()[0]}") from error
    return hashlib.sha256("\n".join([config.to_json_string(), *files]).encode()).hexdigest()


# Files ------------------------------------------------------------------------------------------------------


FORMAT = 1
ABOUT = "alignment.json"


def finish(policy: Policy) -> None:
    """Merges adapters into the weights that they adapt, and undoes what only training needs."""
    policy.network.eval()
    policy.unpack()
    merge_adapters(policy.network)


def save_policy(place: Path, policy: Policy, about: Mapping[str, Any]) -> None:
    """Writes the whole directory or nothing. `alignment.json` comes last and holds the sha256 of every other file.

    Every process calls it, as each holds a part of the weights; the first one writes.
    """
    with distributed.whole_directory(place) as directory:
        save_weights(policy.network, directory)
        if distributed.is_first():
            policy.frame.tokenizer.save_pretrained(directory)
            files = {path.name: file_sha256(path) for path in sorted(directory.iterdir())}
            template = {"template_hash": template_hash(policy.frame.template), "max_length": policy.frame.max_length}
            write_json(directory / ABOUT, {"format": FORMAT, **about, **template, "files": files})
