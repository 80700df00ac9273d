"""Says what each setting of a policy run does, for the page that starts one and for the schema of REST.

The texts stand in English here. Pages translate them, REST does not.
"""

import types
from collections.abc import Mapping

from django.utils.translation import gettext_noop

from annotator.projects.settings import SettingText
from rewards.setting_texts import SETTINGS as OF_TRAINING

SETTINGS: Mapping[str, SettingText] = types.MappingProxyType(
    {
        "policy": SettingText(
            gettext_noop("Base policy"),
            gettext_noop("The language model to start from. The operator decides which ones are offered."),
        ),
        "method": SettingText(
            gettext_noop("Method"),
            gettext_noop(
                "What it learns from: better responses, levels of attributes, two responses, or their scored segments."
            ),
        ),
        "beta": SettingText(
            gettext_noop("Beta"),
            gettext_noop("How strongly the policy is held to its base. Smaller values let it move further away."),
        ),
        "epochs": SettingText(gettext_noop("Epochs"), gettext_noop("How often it goes through the training prompts.")),
        "learning_rate": SettingText(
            gettext_noop("Learning rate"), gettext_noop("How far one step changes the weights of the language model.")
        ),
        "rejected_weight": SettingText(
            gettext_noop("Weight of rejected segments"),
            gettext_noop(
                "Inverted: the worst segments of a rejected response count most. Identity: the best ones, as the paper "
                "has it."
            ),
        ),
        "aspect_weights": SettingText(
            gettext_noop("Weights of the aspects"),
            gettext_noop("How much each aspect of a segment counts. Without any, all count the same."),
        ),
        "requested": SettingText(
            gettext_noop("Requested levels"),
            gettext_noop("SteerLM: the levels that the policy is asked for. Others are the highest of their scale."),
        ),
        "seed": SettingText(
            gettext_noop("Seed"),
            gettext_noop("The number that chance starts from. On a CPU the same seed and rows give the same policy."),
        ),
        "max_steps": SettingText(
            gettext_noop("Most steps"), gettext_noop("The most steps. 0 takes as many as the epochs hold.")
        ),
        "batch_size": SettingText(
            gettext_noop("Rows of a step"), gettext_noop("How many comparisons one step learns from.")
        ),
        "held_out_share": SettingText(
            gettext_noop("Measured part"),
            gettext_noop("The share of the training prompts that only measures the loss. It is not learnt."),
        ),
        "sample_tokens": SettingText(
            gettext_noop("Longest answer"),
            gettext_noop("The most tokens of an answer by which the policy is judged."),
        ),
        **{
            name: OF_TRAINING[name]
            for name in (
                "micro_tokens",
                "max_length",
                "weight_decay",
                "warmup_steps",
                "schedule",
                "max_grad_norm",
                "lora_rank",
                "activation_checkpointing",
                "checkpoint_steps",
                "device",
                "precision",
                "threads",
                "processes",
            )
        },
    }
)
"""Every setting that a run may be asked for; those that people change first stand first."""
