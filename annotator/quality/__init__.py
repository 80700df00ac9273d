"""What annotators' work looks like beside agreement: leaning, scatter, hurry, sameness, sides. For people to judge.

`work_arrays` takes the annotations from the tables, `rater_effects`, `patterns` and `chance` are the statistics,
`measurements` what they come to for each annotator, `flags` what stands out; `assessment` is the stage that stores it,
`assessment_process` has a process of its own do so, `findings` and `flag_texts` put it in words.
"""

from annotator.quality.assessment import HOUR, assess, assess_due, is_due, more_wanted, since
from annotator.quality.assessment_process import assess_apart
from annotator.quality.flags import Flag, Kind

__all__ = ["HOUR", "Flag", "Kind", "assess", "assess_apart", "assess_due", "is_due", "more_wanted", "since"]
