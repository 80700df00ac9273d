"""Says what each setting of a training run does, for the page that starts one and for the schema of REST.

The texts stand in English here. Pages translate them, REST does not.
"""

import types
from collections.abc import Mapping

from django.utils.translation import gettext_noop

from annotator.managing.setting_table import COMMON, SettingText

SETTINGS: Mapping[str, SettingText] = types.MappingProxyType(
    {
        "backbone": COMMON["backbone"],
        "stages": COMMON["stages"],
        "epochs": COMMON["epochs"],
        "max_steps": SettingText(
            gettext_noop("Most steps"),
            gettext_noop("The most steps of each stage. 0 takes as many as the epochs hold."),
        ),
        "targets": SettingText(
            gettext_noop("Target of a rating"),
            gettext_noop("The mean of the ratings that were kept, or the label, which is rounded."),
        ),
        "weight_by_agreement": SettingText(
            gettext_noop("Weight by agreement"),
            gettext_noop("Responses on which the annotators agree count more."),
        ),
        "segment_weight": SettingText(
            gettext_noop("Weight of segments"),
            gettext_noop("How much the scores of segments count beside those of whole responses."),
        ),
        "seed": SettingText(
            gettext_noop("Seed"),
            gettext_noop("The number that chance starts from. The same seed and labels give the same model."),
        ),
        "batch_tokens": SettingText(
            gettext_noop("Tokens of a step"), gettext_noop("How many tokens one step learns from, padding included.")
        ),
        "batch_size": SettingText(
            gettext_noop("Tasks of a step"),
            gettext_noop("How many tasks one step learns from. 0 goes by the number of tokens."),
        ),
        "micro_tokens": SettingText(
            gettext_noop("Tokens at once"),
            gettext_noop("How many tokens the network reads at once. Fewer need less memory. 0 takes a whole step."),
        ),
        "max_length": COMMON["max_length"],
        "layers": SettingText(
            gettext_noop("Layers"),
            gettext_noop("How many layers of an encoder are read. 0 tries all and two thirds, and takes the better."),
        ),
        "learning_rate": COMMON["learning_rate"],
        "head_learning_rate": SettingText(
            gettext_noop("Learning rate of the head"),
            gettext_noop("How far one step changes the last layer, which produces the scores."),
        ),
        "weight_decay": SettingText(
            gettext_noop("Weight decay"), gettext_noop("How strongly the weights are drawn back towards 0.")
        ),
        "warmup_steps": SettingText(
            gettext_noop("Warm-up steps"),
            gettext_noop("Number of steps over which the learning rate increases to its full value."),
        ),
        "schedule": SettingText(
            gettext_noop("Schedule"),
            gettext_noop("Whether the learning rate stays constant after that, or falls along a cosine."),
        ),
        "max_grad_norm": SettingText(
            gettext_noop("Largest gradient"), gettext_noop("Longer gradients are cut to this length.")
        ),
        "lora_rank": COMMON["lora_rank"],
        "activation_checkpointing": SettingText(
            gettext_noop("Save memory"), gettext_noop("Computes parts of the network twice to need less memory.")
        ),
        "compile": SettingText(
            gettext_noop("Compile the network"), gettext_noop("Starts more slowly and runs faster on a GPU.")
        ),
        "dev_share": SettingText(
            gettext_noop("Dev part"),
            gettext_noop("The share of the training prompts that is kept aside to choose the best step."),
        ),
        "patience": SettingText(
            gettext_noop("Patience"), gettext_noop("Stop a stage after this many epochs without improvement.")
        ),
        "checkpoint_steps": SettingText(
            gettext_noop("Steps between checkpoints"),
            gettext_noop("After so many steps the run is saved, so that it can go on from there."),
        ),
        "alphas": SettingText(
            gettext_noop("Penalties of the ridge"),
            gettext_noop("The penalties that are tried, separated by commas. Left-out prompts choose the best one."),
        ),
        "attribute_weights": SettingText(
            gettext_noop("Weights in the reward"),
            gettext_noop(
                "How much each attribute counts in the reward. Fill in all of them, or none for the usual weights."
            ),
        ),
        "device": SettingText(
            gettext_noop("Device"), gettext_noop("Where to compute: cuda is a GPU. Auto takes one where there is one.")
        ),
        "precision": SettingText(
            gettext_noop("Precision"),
            gettext_noop("How precisely to compute. Auto takes bfloat16 where it is faster and nearly the same."),
        ),
        "threads": SettingText(
            gettext_noop("Threads"), gettext_noop("The number of CPU threads. 0 leaves it to PyTorch.")
        ),
        "processes": SettingText(
            gettext_noop("Processes"), gettext_noop("The number of processes. 0 starts one for each GPU, or one.")
        ),
        "cross_fit_minutes": SettingText(
            gettext_noop("Minutes for cross-fitting"),
            gettext_noop(
                "If training again on parts of the prompts takes no longer, all prompts judge it. 0 skips this."
            ),
        ),
        "fine_tuned_curve": SettingText(
            gettext_noop("Learning curve of fine-tuning"),
            gettext_noop("Shows what more labels would bring to fine-tuning, which takes seven times as long."),
        ),
        "max_hours": COMMON["max_hours"],
    }
)
"""Every setting that a run may be asked for; those that people change first stand first."""
