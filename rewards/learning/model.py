"""The reward model: a backbone, pooling by the mask, and one linear head in fp32 for all attributes.

An encoder is an AutoModel with our head: no class of transformers pools a BERT by its mean. A decoder is a plain
AutoModelForSequenceClassification, so that other software loads what we store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils.logging import disable_progress_bar

from rewards.learning import distributed
from rewards.learning.adapters import add_adapters, start_adapters
from rewards.learning.backbones import MissingBackbone, Source
from rewards.learning.batches import Sizes
from rewards.learning.encoding import (
    CONVERSATION_TEMPLATE,
    PROMPT_TEMPLATE,
    ChatFrame,
    Encoded,
    Frame,
    pair_frame,
)
from rewards.learning.packing import (
    ATTENTION,
    PROBE,
    Packed,
    by_prompt,
    causal_mask,
    may_pack,
    pack,
    packed_hidden,
    packed_length,
)
from rewards.learning.refusals import Refused
from rewards.learning.sharded_loading import (
    allocate,
    fill,
    is_empty,
    lacking,
    loads_in_parts,
    require_complete,
    stored_weights,
    weight_files,
    without_weights,
)
from rewards.learning.sharding import like, settle, shard
from rewards.learning.tensor_files import Stored

# Its bars fill a worker's log with lines that look like warnings.
disable_progress_bar()  # type: ignore[no-untyped-call]

CPU = torch.device("cpu")
PAD_TOKEN = "<|pad|>"
SAFE: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False}
"""Loads safetensors and transformers' own classes only: a pickle or a repository's classes run code when loaded."""
ENCODER, DECODER = "mean+length", "last"  # the two ways to pool, as a manifest names them


class UnknownArchitecture(Refused):
    """The backbone's type is neither an encoder nor a decoder that transformers knows."""


class NotForEncoders(Refused):
    """The configuration asks for a setting that exists for decoders only."""


@dataclass(frozen=True)
class Batch:
    """Padded items: ids, mask and response are [batch, length], response_tokens [batch] in fp32.

    `mask` is 1 for real tokens and `response` for those of the response.
    """

    ids: Tensor
    mask: Tensor
    response: Tensor
    response_tokens: Tensor


def collate(encoded: Sequence[Encoded], *, pad: int, device: torch.device, left: bool = False, width: int = 0) -> Batch:
    """Pads the items with the token `pad` to `width` or to the length of the longest one, right or left."""
    width = max(width, *(len(e.ids) for e in encoded))
    ids = torch.full((len(encoded), width), pad)
    mask, response = torch.zeros_like(ids), torch.zeros_like(ids)
    for row, e in enumerate(encoded):
        start = width - len(e.ids) if left else 0
        ids[row, start : start + len(e.ids)] = torch.tensor(e.ids)
        mask[row, start : start + len(e.ids)] = 1
        response[row, start + e.response_start : start + len(e.ids)] = 1
    counts = torch.tensor([e.response_tokens for e in encoded], dtype=torch.float32)
    return Batch(ids.to(device), mask.to(device), response.to(device), counts.to(device))


Input = Batch | Packed


class EncoderReward(nn.Module):
    """Pools an encoder: means over the response's tokens and over the prompt's, and the response's length.

    The length is a feature of its own because a mean forgets it.
    """

    pooling = ENCODER
    packs = False

    def __init__(self, network: Any, *, outputs: int) -> None:
        super().__init__()
        self.network = network
        width = network.config.hidden_size
        self.blocks = (width, width, 1)
        self.head = nn.Linear(sum(self.blocks), outputs)

    def features(self, batch: Input) -> Tensor:
        """Returns what `pooled` does; may be called of a sharded network, as `forward` may."""
        return self.pooled(batch)

    def pooled(self, batch: Input) -> Tensor:
        """[batch, 2 * hidden + 1] in fp32; what padding holds has no influence."""
        assert isinstance(batch, Batch)
        # [batch, length, hidden]; fp32, as a mean over hundreds of tokens in bf16 loses its last digits.
        hidden = self.network(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state.float()
        response = masked_mean(hidden, batch.response)  # [batch, hidden]
        prompt = masked_mean(hidden, batch.mask - batch.response)
        # The logarithm keeps one long response from dominating the column.
        length = torch.log1p(batch.response_tokens)[:, None]  # [batch, 1]
        return torch.cat([response, prompt, length], dim=1)

    def forward(self, batch: Input) -> Tensor:
        return in_fp32(self.head, self.pooled(batch))

    def set_head(self, weight: Tensor, bias: Tensor, constant: Tensor) -> None:
        with torch.no_grad():
            self.head.weight.copy_(like(weight.float(), self.head.weight))
            self.head.bias.copy_(like(bias.float(), self.head.bias))


class DecoderReward(nn.Module):
    """Pools a decoder: the hidden state of the last real token, which the mask finds.

    Looking for the pad id, as transformers does, finds the token before the end where pad equals end of text. Packed
    rows are read where the architecture allows it (`packs`), padded ones always.
    """

    pooling = DECODER

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network
        self.packs = False
        self.blocks = (network.config.get_text_config().hidden_size,)

    @property
    def head(self) -> nn.Linear:
        head: nn.Linear = self.network.score
        return head

    def try_packing(self) -> None:
        """Lets the network read packed rows if it gives the same for them as for separate ones.

        It is tried on a few tokens, as architectures differ.
        """
        if not may_pack(self.network):
            return
        device, former = self.head.weight.device, self.network.config._attn_implementation
        apart = torch.cat([self.features(collate([item], pad=0, device=device)) for item in PROBE])
        self.network.set_attn_implementation(ATTENTION)
        try:
            together = self.features(pack([PROBE], device=device))
        except (TypeError, RuntimeError, ValueError):
            together = apart + torch.inf  # an architecture that cannot even run packed
        self.packs = distributed.agreed(torch.allclose(apart, together, atol=1e-4, rtol=1e-3))
        if not self.packs:
            self.network.set_attn_implementation(former)

    def features(self, batch: Input) -> Tensor:
        """Returns what `pooled` does; may be called of a sharded network, as `forward` may."""
        return self.pooled(batch)

    def pooled(self, batch: Input) -> Tensor:
        """[items, hidden] in fp32."""
        if isinstance(batch, Packed):
            return packed_hidden(self.network, batch)[batch.last].float()
        # Positions count real tokens, so that padding on the left moves none of them. [batch, length]
        positions = (batch.mask.cumsum(dim=1) - 1).clamp(min=0)
        # transformers builds no mask for an attention function that is not its own, so it is given a finished one.
        mask = causal_mask(batch.mask) if self.packs else batch.mask
        output = self.network.base_model(
            input_ids=batch.ids, attention_mask=mask, position_ids=positions, use_cache=False
        )
        hidden: Tensor = output.last_hidden_state.float()  # [batch, length, hidden]
        return hidden[torch.arange(len(hidden), device=hidden.device), last_real(batch.mask)]

    def forward(self, batch: Input) -> Tensor:
        return in_fp32(self.head, self.pooled(batch))

    def set_head(self, weight: Tensor, bias: Tensor, constant: Tensor) -> None:
        """Sets the head to weight [attributes, hidden] and bias [attributes].

        The head of these classes has no bias, so it is added along `constant` [hidden], the direction whose product
        with the features is 1.
        """
        with torch.no_grad():
            combined = weight + bias[:, None] * constant[None, :]
            self.head.weight.copy_(like(combined.float(), self.head.weight))


RewardNetwork = EncoderReward | DecoderReward


@dataclass(frozen=True)
class Loaded:
    """A network with the frame that turns text into its input.

    `half` says that features and scores are computed in bf16, though the weights are in fp32 (see `precision`).
    """

    network: RewardNetwork
    frame: Frame
    half: bool = False

    @property
    def device(self) -> torch.device:
        return self.network.head.weight.device

    def rounding(self) -> torch.autocast:
        """Returns the context in which features and scores are computed: autocast in bf16 where `half` is set."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.half)

    def collate(self, encoded: Sequence[Encoded], *, step: int = 1) -> Batch:
        """Pads the items on the network's device, to a width that is a multiple of `step` or the token limit."""
        width = min(stepped(max(len(e.ids) for e in encoded), step), self.frame.max_length)
        return collate(encoded, pad=self.frame.tokenizer.pad_token_id, device=self.device, width=width)

    def arranged(self, groups: Sequence[Sequence[Encoded]], *, step: int = 1) -> Input:
        """Returns the items of the groups in their order, packed where the network can read that, else padded."""
        if self.network.packs:
            return pack(groups, device=self.device)
        return self.collate([item for group in groups for item in group], step=step)

    def sizes(self, encoded: Sequence[Encoded], units: Sequence[Sequence[int]]) -> Sizes:
        """Returns what each unit, a list of rows, costs in a batch."""
        groups = [[encoded[row] for row in unit] for unit in units]
        rows = [len(group) for group in groups]
        if self.network.packs:
            packed = [packed_length(group) for group in groups]
            return Sizes(packed, rows, packed, padded=False)
        widths = [max(len(item.ids) for item in group) for group in groups]
        return Sizes(widths, rows, [sum(len(item.ids) for item in group) for group in groups], padded=True)

    def batches(self, encoded: Sequence[Encoded], budget: int, *, step: int = 1) -> list[list[list[int]]]:
        """Returns the rows in batches of at most `budget` tokens, each a list of groups.

        A group shares its prompt where the network reads packed rows; else it is a single row. With a `step` of more
        than one token, padded rows share a batch only if each of them alone would be padded to the same width.
        """
        if self.network.packs:
            units = by_prompt(encoded, budget)
            batches = self.sizes(encoded, units).batches(range(len(units)), budget)
            return [[units[unit] for unit in batch] for batch in batches]
        sizes = self.sizes(encoded, [[row] for row in range(len(encoded))])
        alike: dict[int, list[int]] = {}
        for row, item in enumerate(encoded):
            alike.setdefault(stepped(len(item.ids), step) if step > 1 else 0, []).append(row)
        return [[[row] for row in batch] for _, rows in sorted(alike.items()) for batch in sizes.batches(rows, budget)]


def stepped(length: int, step: int) -> int:
    """Returns the length, rounded up to a multiple of `step`."""
    return -(-length // step) * step


def in_fp32(head: nn.Linear, features: Tensor) -> Tensor:
    """[batch, attributes]: the scores of features [batch, features], computed in fp32."""
    # Near 3 bf16 has a step of 0.016: responses would tie that do not.
    with torch.autocast(features.device.type, enabled=False):
        scores: Tensor = head(features.float())
    return scores


def last_real(mask: Tensor) -> Tensor:
    """[batch]: the index of each row's last real token, on whichever side the padding is; mask [batch, length]."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    return (positions * mask).argmax(dim=1)


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """[batch, hidden]: the mean of hidden [batch, length, hidden] over the positions where mask [batch, length] is 1.

    It is zero where there is none.
    """
    # Filled, not multiplied: an infinity or NaN at a padded position times 0 would still be NaN.
    kept = hidden.masked_fill(mask[:, :, None] == 0, 0.0)
    return kept.sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)


def load_backbone(
    source: Source,
    *,
    attributes: Sequence[str],
    max_length: int,
    device: torch.device = CPU,
    lora_rank: int = 0,
    seed: int = 0,
) -> Loaded:
    """Returns a new reward model on a pretrained backbone, in fp32, with dropout off and adapters of this rank.

    Of several processes each holds a part of the weights; the head is for the caller to set.

    Raises:
        MissingBackbone: the files cannot be loaded.
        UnknownArchitecture: the backbone is neither an encoder nor a decoder.
        NotForEncoders: adapters are asked for, but the backbone is an encoder.
        IncompleteWeights: the files lack weights.
    """
    try:
        config = AutoConfig.from_pretrained(source.path, local_files_only=source.local, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(source.path, local_files_only=source.local, trust_remote_code=False)
        encoder = is_encoder(config.model_type)
        if encoder and lora_rank:
            raise NotForEncoders("lora_rank is for decoders; an encoder is small enough to train every weight")
        network, stored = (_encoder if encoder else _decoder)(source, attributes, tokenizer)
    except (OSError, ValueError) as error:
        raise MissingBackbone(f"the backbone {source} cannot be loaded: {str(error).splitlines()[0]}") from error
    install(network, stored, device=device, lora_rank=lora_rank, seed=seed)
    template = PROMPT_TEMPLATE if encoder else tokenizer.chat_template or CONVERSATION_TEMPLATE
    # More tokens than the backbone has positions for would be an index error, or nonsense.
    positions = config.get_text_config().to_dict().get("max_position_embeddings")
    limit = min(max_length, positions) if positions else max_length
    return Loaded(network, make_frame(tokenizer, encoder=encoder, template=template, max_length=limit))


@torch.no_grad()
def install(
    network: RewardNetwork, stored: Mapping[str, Stored], *, device: torch.device, lora_rank: int = 0, seed: int = 0
) -> None:
    """Puts the network on its device, sharded over the processes, and makes it ready to use.

    A network without weights reads them from `stored` into the shards.
    """
    empty = is_empty(network)
    if lora_rank:
        add_adapters(network.network.base_model, lora_rank)
    # On the way FSDP moves one layer after the other to its device, which may not hold the whole network.
    shard(network, device, "features")
    if not empty:
        network.to(device)
    else:
        allocate(network, device)
        embedding = network.network.get_input_embeddings().weight
        names = {name for name, value in network.named_parameters() if value is embedding}
        fill(network, stored, may_be_short=names)
    start_adapters(network, seed)
    network.eval()
    if isinstance(network, DecoderReward):
        network.try_packing()
        settle(network)


def make_frame(tokenizer: Any, *, encoder: bool, template: str, max_length: int) -> Frame:
    """Returns what turns text into the tokens that such a model reads; a decoder's tokenizer gets the template."""
    if encoder:
        return pair_frame(tokenizer, template=template, max_length=max_length)
    # Stored with the tokenizer, so that other software renders conversations as we do.
    tokenizer.chat_template = template
    return ChatFrame(tokenizer, template, max_length)


def is_encoder(model_type: str) -> bool:
    """Returns whether the type of a backbone is an encoder's; raises UnknownArchitecture if it is neither kind."""
    if model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return True
    if model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return False
    raise UnknownArchitecture(f"a backbone of type {model_type} is neither an encoder nor a decoder")


def pretrained(
    auto: Any,
    path: str,
    *,
    local: bool,
    may_lack: str = "",
    resize: Callable[[Any], None] | None = None,
    **settings: Any,
) -> tuple[Any, dict[str, Stored]]:
    """Returns a network of transformers in fp32, and the tensors that it still has to read.

    Where each process reads its own part, the network is without weights; else nothing is left to read. Names that
    begin with `may_lack` need not be stored. `resize` changes the network's shape.

    Raises:
        IncompleteWeights: the files lack other weights.
    """
    stored: dict[str, Stored] = {}
    if distributed.size() > 1:
        config = AutoConfig.from_pretrained(path, local_files_only=local, trust_remote_code=False, **settings)
        with without_weights():
            network = auto.from_config(config, dtype=torch.float32, trust_remote_code=False)
        if loads_in_parts(network):
            stored = stored_weights(network, weight_files(path, local=local))
            missing = lacking(network, stored)
    if not stored:
        network, report = auto.from_pretrained(
            path, local_files_only=local, dtype=torch.float32, output_loading_info=True, **SAFE, **settings
        )
        missing = report["missing_keys"]
    require_complete([name for name in missing if not may_lack or not name.startswith(may_lack)])
    if resize:
        resize(network)
    return network, {f"network.{name}": tensor for name, tensor in stored.items()}


def _encoder(source: Source, attributes: Sequence[str], tokenizer: Any) -> tuple[EncoderReward, dict[str, Stored]]:
    # The pooler of BERT is never used; many checkpoints come without it.
    network, stored = pretrained(AutoModel, source.path, local=source.local, may_lack="pooler.")
    return encoder_of(network, outputs=len(attributes)), stored


def encoder_of(network: Any, *, outputs: int) -> EncoderReward:
    """Returns the network with a new head, which is without weights where the network is."""
    with without_weights() if is_empty(network) else nullcontext():
        return EncoderReward(network, outputs=outputs)


def _decoder(source: Source, attributes: Sequence[str], tokenizer: Any) -> tuple[DecoderReward, dict[str, Stored]]:
    network, stored = pretrained(
        AutoModelForSequenceClassification,
        source.path,
        local=source.local,
        may_lack="score.",
        resize=lambda network: _separate_pad(network, tokenizer),
        num_labels=len(attributes),
        problem_type="regression",  # without it vLLM puts a softmax over the attributes
        id2label=dict(enumerate(attributes)),
        label2id={name: index for index, name in enumerate(attributes)},
    )
    return DecoderReward(network), stored


def _separate_pad(network: Any, tokenizer: Any) -> None:
    """Gives the tokenizer and the network a padding token that is not the end of text.

    With pad == eos, plain transformers, which looks for the pad id, would score the token before the end.
    """
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        tokenizer.add_special_tokens({"pad_token": PAD_TOKEN})
    if len(tokenizer) > network.get_input_embeddings().num_embeddings:
        # Without weights there is no mean of the rows that a new one could start from; padding is never read anyway.
        network.resize_token_embeddings(len(tokenizer), mean_resizing=not is_empty(network))
    network.config.get_text_config().pad_token_id = tokenizer.pad_token_id
    network.config.pad_token_id = tokenizer.pad_token_id
