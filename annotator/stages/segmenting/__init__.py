"""Cuts responses into segments that are rated one by one: by sentences or steps, or as they are given.

A segment is a range [start, end) of the characters of a text, and the segments of a text partition it. `cutting` makes
them from `blocks`; `ranges` checks those that are imported; `recutting` joins and splits them,
and compares cuts; `replacements` moves them when their text changes. Nothing here knows rows or models.
"""

from annotator.stages.segmenting.cutting import Unit, cut
from annotator.stages.segmenting.ranges import (
    NotAPartition,
    Range,
    from_starts,
    is_partition,
    partition,
    partition_by_texts,
    past_space,
    ranges,
    whole,
)
from annotator.stages.segmenting.recutting import (
    CannotRecut,
    carried,
    covered,
    cut_at_marks,
    finest_common_cut,
    joined,
    split,
)
from annotator.stages.segmenting.replacements import Replacement, WrongReplacements, moved, replaced
