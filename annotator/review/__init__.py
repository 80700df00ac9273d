"""What reviewers and managers decide: the labels of a task, whether an annotation counts, whether an annotator does.

`queue` says what waits for a reviewer, `rating_sheets` what they see of a task. `adjudications` sets its labels,
`verdicts` accepts and rejects, `exclusions` takes an annotator's work out and back, `exclusion_previews` says before
what that changes.
"""

from annotator.review.adjudications import adjudicate, withdraw
from annotator.review.exclusion_previews import exclusion_preview, readmission_preview
from annotator.review.exclusions import exclude, readmit
from annotator.review.verdicts import judge

__all__ = ["adjudicate", "exclude", "exclusion_preview", "judge", "readmission_preview", "readmit", "withdraw"]
