"""Stage 4 turns annotations into labels. `rules` is the protocol; `settlement` keeps the rows in line with it."""

from annotator.consensus.rules import (
    TOO_FAR_APART,
    Outcome,
    Rated,
    Rules,
    agreed_preference,
    half_up,
    most_agreeing,
    needs_more,
    outcome,
    spread,
)
from annotator.consensus.settlement import put_in_force, settle

__all__ = [
    "TOO_FAR_APART",
    "Outcome",
    "Rated",
    "Rules",
    "agreed_preference",
    "half_up",
    "most_agreeing",
    "needs_more",
    "outcome",
    "put_in_force",
    "settle",
    "spread",
]
