"""Turns the words for which raters gave their scores into scored segments, from which models of segments learn."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from annotator.stages.segmenting import Range, covered, cut_at_marks

Evidence = Sequence[tuple[str, int, int]]
"""(attribute, start, end) of each piece: the characters of the text for which the attribute has its score."""


def scored_by_evidence(
    text: str, cut: Sequence[Range], ratings: Sequence[tuple[Mapping[str, int], Evidence]], attributes: Sequence[str]
) -> tuple[tuple[Range, ...], list[list[float | None]]]:
    """Returns segments of a text and their scores [segments][attributes].

    cut: how the text is cut without evidence; it is cut at the ends of the evidence, too. ratings: each rater's scores
    (0 to levels - 1) with the evidence for them. A segment has the mean over the raters who based a score of the
    attribute on it, and None where nobody did: nothing is known of what nobody has selected.
    """
    marks = [Range(start, end) for _scores, evidence in ratings for _key, start, end in evidence]
    segments = cut_at_marks(text, cut, marks)
    given: list[dict[str, dict[int, int]]] = [{key: {} for key in attributes} for _ in segments]
    for rater, (scores, evidence) in enumerate(ratings):
        for key, start, end in evidence:
            # A rubric of another version may have asked for it.
            if key in attributes and key in scores:
                for place in covered(text, segments, Range(start, end)):
                    given[place][key][rater] = scores[key]
    return segments, [[fmean(of_one[key].values()) if of_one[key] else None for key in attributes] for of_one in given]
