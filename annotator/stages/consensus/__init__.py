"""Stage 4 turns annotations into labels. `rules` is the protocol; `settlement` keeps the rows in line with it;
`previews` says what other rules would do to them."""

from annotator.stages.consensus.previews import Effect, ProtocolPreview, protocol_preview
from annotator.stages.consensus.rules import (
    TOO_FAR_APART,
    ConsensusOutcome,
    Rated,
    Rules,
    agreed_preference,
    half_up,
    most_agreeing,
    needs_more,
    outcome,
    spread,
)
from annotator.stages.consensus.settlement import put_in_force, settle
