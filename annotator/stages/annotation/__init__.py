"""Stage 3, what an annotator does with a task. Each stage function is one transaction and safe to repeat.

`submissions` stores ratings that `completeness` has checked, `skips` handles skips, reports and quarantine, `drafts`
keeps half-filled forms, `guideline_gaps` what the guidelines do not answer, and `neighbours` leads from one rating to
the next.
"""

from annotator.stages.annotation.completeness import (
    IncompleteRating,
    check_complete,
    check_scores,
    safety_errors,
    written_fault,
)
from annotator.stages.annotation.content import ResponseRating, Submission
from annotator.stages.annotation.cuts import (
    Cuts,
    as_parts,
    change_cuts,
    cuts_of,
    from_parts,
    require_room,
    responses_to_rate,
    stored_cuts,
    with_segments,
)
from annotator.stages.annotation.drafts import save_draft
from annotator.stages.annotation.guideline_gaps import note_gap
from annotator.stages.annotation.neighbours import changeable, may_be_changed, next_rating, previous_rating
from annotator.stages.annotation.recorded_refusals import Refused
from annotator.stages.annotation.skips import (
    UNDO_FOR,
    TooMany,
    decide_quarantine,
    decide_quarantined,
    report,
    skip,
    undo_report,
    undo_skip,
)
from annotator.stages.annotation.submissions import Submitted, by_position, submit, submit_and_claim, submit_own
