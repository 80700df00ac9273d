"""What reviewers and managers decide: the labels of a task, whether an annotation counts, whether an annotator does.

`queue` lists what waits for a reviewer, `rating_sheets` shows them a task. `adjudications` sets its labels, `verdicts`
accepts and rejects annotations, `exclusions` takes an annotator's work out and brings it back, `exclusion_previews`
shows in advance what that changes. `bulk_changes` retires, brings back and prioritises many tasks at once.
"""

from annotator.stages.review.adjudications import adjudicate, close_gaps, withdraw
from annotator.stages.review.exclusion_previews import exclusion_preview, readmission_preview
from annotator.stages.review.exclusions import exclude, readmit
from annotator.stages.review.verdicts import judge
