"""Loads networks: a pretrained backbone with a new head, or a stored one. Of several processes each loads its part.

In that case the network is built without weights, sharded, and filled from the safetensors files. Networks whose stored
weights transformers splits or merges as it loads them (mixtures of experts), or which tie weights, are left to
transformers, and each process holds them whole until they are sharded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from accelerate import init_empty_weights
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.conversion_mapping import get_model_conversion_mapping
from transformers.core_model_loading import WeightRenaming, rename_source_key
from transformers.initialization import no_init_weights
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME
from transformers.utils.hub import cached_file, get_checkpoint_shard_files
from transformers.utils.logging import disable_progress_bar

from rewards.learning import adapters, distributed
from rewards.learning.adapters import add_adapters, start_adapters
from rewards.learning.backbones import MissingBackbone, Source
from rewards.learning.chat_templates import CONVERSATION_TEMPLATE, PROMPT_TEMPLATE, RENDERING, frozen, require_steady
from rewards.learning.encoding import ChatFrame, Frame, pair_frame
from rewards.learning.model import SHARDED, DecoderReward, EncoderReward, Loaded, RewardNetwork
from rewards.learning.refusals import Refused
from rewards.learning.sharding import settle, shard
from rewards.learning.tensor_files import Stored, stored_in

# Its bars fill a worker's log with lines that look like warnings.
disable_progress_bar()  # type: ignore[no-untyped-call]

CPU = torch.device("cpu")
PAD_TOKEN = "<|pad|>"
SAFE: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False}
"""Loads safetensors and transformers' own classes only: a pickle or a repository's classes run code when loaded."""


class UnknownArchitecture(Refused):
    """The backbone's type is neither an encoder nor a decoder that transformers knows."""


class NotForEncoders(Refused):
    """The configuration asks for a setting that exists for decoders only."""


def load_backbone(
    source: Source,
    *,
    attributes: Sequence[str],
    aspects: Sequence[str] = (),
    max_length: int,
    device: torch.device = CPU,
    lora_rank: int = 0,
    seed: int = 0,
) -> Loaded:
    """Returns a new reward model on a pretrained backbone, in fp32, with dropout off and adapters of this rank.

    Of several processes each holds a part of the weights; the heads are for the caller to set. There is one for
    segments where aspects are given.

    Raises:
        MissingBackbone: the files cannot be loaded.
        UnknownArchitecture: the backbone is neither an encoder nor a decoder.
        NotForEncoders: adapters are asked for, but the backbone is an encoder.
        IncompleteWeights: the files lack weights.
        UnsteadyTemplate: the chat template would change the scores from one day to the next.
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
    template = PROMPT_TEMPLATE if encoder else tokenizer.chat_template or CONVERSATION_TEMPLATE
    require_steady(tokenizer, template)
    add_segment_head(network, len(aspects))
    install(network, stored, device=device, lora_rank=lora_rank, seed=seed)
    # More tokens than the backbone has positions for would be an index error, or nonsense.
    limit = min(max_length, positions(config) or max_length)
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
    shard(network, device, *SHARDED)
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


def positions(config: Any) -> int:
    """Returns how many tokens a network can read; 0 where its configuration sets no limit."""
    return int(config.get_text_config().to_dict().get("max_position_embeddings") or 0)


def make_frame(tokenizer: Any, *, encoder: bool, template: str, max_length: int, rendering: int = RENDERING) -> Frame:
    """Returns what turns text into the tokens that such a model reads; a decoder's tokenizer gets the template."""
    if encoder:
        return pair_frame(tokenizer, template=template, max_length=max_length, rendering=rendering)
    # Stored with the tokenizer, so that other software renders conversations as we do.
    tokenizer.chat_template = frozen(template)
    return ChatFrame(tokenizer, tokenizer.chat_template, max_length, rendering)


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


def add_segment_head(network: RewardNetwork, aspects: int) -> None:
    """Gives the network a head for segments with so many outputs, which are 0 until it is set; none for 0 aspects."""
    if aspects:
        with without_weights() if is_empty(network) else nullcontext():
            network.segment_head = nn.Linear(network.blocks[0], aspects)
        for parameter in network.segment_head.parameters():
            parameter.detach().zero_()


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


# Loading from shards ----------------------------------------------------------------------------------------


class IncompleteWeights(Refused):
    """The files lack weights that the architecture needs; transformers would fill them with random numbers."""


def require_complete(missing: Sequence[str]) -> None:
    """Raises IncompleteWeights if a load has reported missing weights."""
    if missing:
        raise IncompleteWeights(f"the files lack {len(missing)} weights, {min(missing)} among them")


@contextmanager
def without_weights() -> Iterator[None]:
    """Lets modules be made whose parameters take no memory (PyTorch's meta device); buffers are computed as usual."""
    with init_empty_weights(include_buffers=False), no_init_weights():
        yield


def is_empty(network: nn.Module) -> bool:
    """Returns whether the network was made without weights."""
    return any(parameter.is_meta for parameter in network.parameters())


def loads_in_parts(network: Any) -> bool:
    """Returns whether each process can read its own part of this network of transformers, tensor by tensor."""
    if distributed.size() == 1 or network.all_tied_weights_keys:
        return False
    return all(isinstance(change, WeightRenaming) for change in get_model_conversion_mapping(network))


def weight_files(place: str, *, local: bool) -> list[Path]:
    """Returns the safetensors files of a directory or Hub id; raises OSError where it has none."""
    index = cached_file(
        place, SAFE_WEIGHTS_INDEX_NAME, local_files_only=local, _raise_exceptions_for_missing_entries=False
    )
    if index is None:
        return [Path(str(cached_file(place, SAFE_WEIGHTS_NAME, local_files_only=local)))]
    paths, _ = get_checkpoint_shard_files(place, index, local_files_only=local)  # type: ignore[no-untyped-call]
    return [Path(path) for path in paths]


def stored_weights(network: Any, paths: Sequence[Path]) -> dict[str, Stored]:
    """Returns the tensors of the files by the names that they have in this network of transformers."""
    stored, own = stored_in(paths), network.state_dict()
    changes = [change for change in get_model_conversion_mapping(network) if isinstance(change, WeightRenaming)]
    prefix = network.base_model_prefix
    return {rename_source_key(key, changes, [], prefix, own)[0]: tensor for key, tensor in stored.items()}


def lacking(network: Any, stored: Mapping[str, Stored]) -> list[str]:
    """Returns the names of the parameters that no file holds and that the architecture needs."""
    optional = [re.compile(pattern) for pattern in network._keys_to_ignore_on_load_missing or ()]
    names = [name for name, _ in network.named_parameters() if name not in stored]
    return [name for name in names if not any(pattern.search(name) for pattern in optional)]


def allocate(network: nn.Module, device: torch.device) -> None:
    """Gives the network, which may be sharded, memory for its weights on the device, filled with 0."""
    buffers = {name: buffer.clone() for name, buffer in network.named_buffers()}
    network.to_empty(device=device)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for name, buffer in network.named_buffers():
            buffer.copy_(buffers[name])


def fill(network: nn.Module, stored: Mapping[str, Stored], *, may_be_short: Collection[str] = ()) -> None:
    """Reads this process's part of each weight of the network.

    Those whose names are in `may_be_short` may have more rows than are stored; these are 0.

    Raises:
        IncompleteWeights: a stored weight has another shape than the architecture says.
    """
    for name, target in adapters.plain_names(network.state_dict(keep_vars=True)).items():
        if tensor := stored.get(name):
            given, wanted = tensor.shape, list(target.shape)
            if given != wanted and not (name in may_be_short and given[1:] == wanted[1:] and given[0] < wanted[0]):
                raise IncompleteWeights(f"{name} in the files is of shape {given}, but the architecture has {wanted}")
            tensor.fill(target.detach())
