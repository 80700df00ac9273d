"""Small chat templates in the manner of known families, and a tokenizer of bytes with the control tokens of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from tokenizers import decoders as token_decoders
from transformers import PreTrainedTokenizerFast

from rewards.learning.encoding import ChatFrame

_REFUSES_SYSTEM = (
    "{%- if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
)
_ALTERNATES = (
    "{%- for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}{% endfor %}"
)


@dataclass(frozen=True)
class Shape:
    """A family: its template, its control tokens, what opens a turn of the user, and what closes the assistant's."""

    template: str
    controls: tuple[str, ...]
    opens: str
    closes: str


CHATML = Shape(
    "{%- for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "<|im_start|>user\n",
    "<|im_end|>\n",
)
LLAMA3 = Shape(
    "{{- bos_token }}{%- for message in messages %}{{ '<|start_header_id|>' + message.role + '<|end_header_id|>\\n\\n' "
    "+ message.content | trim + '<|eot_id|>' }}{% endfor %}",
    ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n",
    "<|eot_id|>",
)
GEMMA = Shape(
    "{{- bos_token }}" + _REFUSES_SYSTEM + _ALTERNATES + "{%- for message in messages %}{{ '<start_of_turn>' "
    "+ ('model' if message.role == 'assistant' else message.role) + '\\n' + message.content | trim "
    "+ '<end_of_turn>\\n' }}{% endfor %}",
    ("<bos>", "<start_of_turn>", "<end_of_turn>"),
    "<bos><start_of_turn>user\n",
    "<end_of_turn>\n",
)
MISTRAL = Shape(
    "{{- bos_token }}" + _REFUSES_SYSTEM + _ALTERNATES + "{%- for message in messages %}{% if message.role == 'user' %}"
    "{{ '[INST] ' + message.content + '[/INST]' }}{% else %}{{ ' ' + message.content + eos_token }}{% endif %}"
    "{% endfor %}",
    ("<s>", "[INST]", "[/INST]", "</s>"),
    "<s>[INST] ",
    "</s>",
)
GPT_OSS = Shape(
    "{%- macro system_message() %}{{ 'Current date: ' + strftime_now('%Y-%m-%d') }}{% endmacro %}"
    "{{- '<|start|>system<|message|>' + system_message() + '<|end|>' }}{%- for message in messages %}"
    "{% if message.role == 'assistant' %}{{ '<|start|>assistant<|channel|>final<|message|>' + message.content }}"
    "{{- '<|return|>' if loop.last else '<|end|>' }}{% else %}"
    "{{- '<|start|>' + message.role + '<|message|>' + message.content + '<|end|>' }}{% endif %}{% endfor %}",
    ("<|start|>", "<|message|>", "<|end|>", "<|channel|>", "<|return|>"),
    "<|start|>system<|message|>Current date: 2024-07-26<|end|><|start|>user<|message|>",
    "<|return|>",
)
SHAPES = {"ChatML": CHATML, "Llama 3": LLAMA3, "Gemma": GEMMA, "Mistral": MISTRAL, "gpt-oss": GPT_OSS}

MISTRAL_SMALL_3 = (
    '{%- set today = strftime_now("%Y-%m-%d") %}\n'
    '{%- set default_system_message = "The current date is " + today + "." %}\n'
    "{{- bos_token }}[SYSTEM_PROMPT]{{ default_system_message }}[/SYSTEM_PROMPT]\n"
    "{%- for message in messages %}{{ message.content + eos_token }}{% endfor %}"
)
GRANITE = (
    "{%- if messages[0]['role'] != 'system' %}{{ \"Today's Date: \" + strftime_now('%B %d, %Y') + '.\\n' }}{% endif %}"
    "{%- for message in messages %}{{ message.content + eos_token }}{% endfor %}"
)
LLAMA_3_2 = (
    "{%- if not date_string is defined %}{% if strftime_now is defined %}"
    "{%- set date_string = strftime_now('%d %b %Y') %}{% else %}{% set date_string = '26 Jul 2024' %}{% endif %}"
    "{% endif %}{{- 'Today Date: ' + date_string + ' ' + strftime_now('%A %H:%M') }}"
    "{%- for message in messages %}{{ message.content + eos_token }}{% endfor %}"
)
OF_THE_DAY = {"gpt-oss": GPT_OSS.template, "Mistral Small 3": MISTRAL_SMALL_3, "Granite": GRANITE, "3.2": LLAMA_3_2}


def chat_tokenizer(controls: tuple[str, ...]) -> Any:
    """A byte is a token, and so is each control token; the first one begins a text, and the last one ends it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*controls, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = token_decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, bos_token=controls[0], eos_token=controls[-1], pad_token=controls[-1]
    )
    fast.add_special_tokens(
        {"extra_special_tokens": [AddedToken(name, special=True, normalized=False) for name in controls]}
    )
    return fast


def chat_frame(shape: Shape, max_length: int = 4_096) -> ChatFrame:
    return ChatFrame(chat_tokenizer(shape.controls), shape.template, max_length)
