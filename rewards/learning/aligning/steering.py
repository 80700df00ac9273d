"""SteerLM's conditioning (arXiv 2310.05344): the attributes' levels as a line of text, in training and after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.config import BadConfig
from rewards.learning.data import Turn


def conditioned(conversation: Sequence[Turn], levels: Mapping[str, int]) -> tuple[Turn, ...]:
    """Returns the conversation with the levels as the last line of its last turn; unchanged where there are none.

    Not in a system message, as some chat templates refuse those.
    """
    if not levels:
        return tuple(conversation)
    *before, last = conversation
    return (*before, replace(last, content=f"{last.content}\n\n{conditioning_line(levels)}"))


def conditioning_line(levels: Mapping[str, int]) -> str:
    """Returns the levels as the policy reads them, like "helpfulness: 4, verbosity: 2"."""
    return ", ".join(f"{name}: {level}" for name, level in levels.items())


def requested_levels(config: AlignConfig, attributes: Sequence[str]) -> dict[str, int]:
    """Returns the levels that the policy is asked for: the configured ones, of other attributes the highest.

    Raises:
        BadConfig: the configuration requests an attribute that no row has.
    """
    unknown = sorted(set(config.requested) - set(attributes))
    if unknown:
        raise BadConfig(f"requested names {', '.join(unknown)}, but the rows have {', '.join(attributes)}")
    return {name: int(config.requested.get(name, config.levels - 1)) for name in attributes}
