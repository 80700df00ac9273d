"""Defines the keys of the rating page: the default key of each action, and the keys that a person chose instead.

Digits, arrows and Enter cannot be chosen: they rate, move between the fields and submit for everyone.
"""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotator.models import User


@dataclass(frozen=True)
class Action:
    label: str | Promise
    key: str


ACTIONS = {
    "skip": Action(_("Skip the task"), "s"),
    "report": Action(_("Report unsafe content"), "r"),
    "mark": Action(_("Mark the selected text as personal"), "m"),
    "not_applicable": Action(_("Say that the aspect does not apply to the segment"), "x"),
    "copy_segment": Action(_("Rate the segment like the one before"), "c"),
    "level_segment": Action(_("Rate the rest of the segment like its last answer"), "e"),
    "rest_fine": Action(_("Fill what is open of the response with the highest level"), "f"),
    "divide_segment": Action(_("Divide the segment where the selected text begins"), "d"),
    "comment_segment": Action(_("Comment on the segment or the selected text"), "k"),
    "previous": Action(_("Open your previous rating"), "p"),
    "undo": Action(_("Undo the last skip"), "u"),
    "guidelines": Action(_("Show the guidelines"), "g"),
    "silent": Action(_("Say in the guidelines that they are silent about the question"), "a"),
    "layout": Action(_("Show the responses side by side or below each other"), "l"),
    "link": Action(_("Scroll the responses together, or each by itself"), "y"),
    "prompt": Action(_("Give the conversation more room, or less"), "t"),
    "differences": Action(_("Show where the two responses differ"), "w"),
    "next_difference": Action(_("Go to the next difference"), "j"),
    "raw": Action(_("Show the texts as plain source"), "v"),
    "help": Action(_("Show the keys"), "?"),
}


def keys_of(user: User) -> dict[str, str]:
    """Returns the key of every action: the user's own key if they chose one, or else the default."""
    chosen = {user.keys[name] for name in ACTIONS if name in user.keys}
    # An action that came later than a person's choice has no key if they gave its default to another one.
    usual = {name: "" if action.key in chosen else action.key for name, action in ACTIONS.items()}
    return {name: user.keys.get(name, usual[name]) for name in ACTIONS}


def own_keys(keys: dict[str, str]) -> dict[str, str]:
    """Returns only the keys that differ from the defaults, which are those that have to be stored."""
    return {name: key for name, key in keys.items() if key != ACTIONS[name].key}
