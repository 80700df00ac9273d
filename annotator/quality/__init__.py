"""Measures annotators' work beyond agreement (leaning, scatter, hurry, sameness, sides), for people to judge.

`work_arrays` reads the annotations, `rater_effects`, `patterns` and `chance` compute the statistics, `measurements`
puts them together by annotator, `flags` picks what stands out. `assessment` is the stage that stores all this,
`assessment_process` runs it in a process of its own, `findings` puts it into words.
"""

from annotator.quality.assessment import HOUR, assess, assess_due, is_due, more_wanted, since
from annotator.quality.assessment_process import assess_apart
from annotator.quality.flags import Flag, Kind
