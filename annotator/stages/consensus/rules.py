"""Derives a task's labels from its annotations: which annotations to keep, their mean, and what drops a task.

These are HelpSteer2's rules (arXiv 2406.08673, section 2.1 and appendix G). No rows are read or written here.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import floor

from annotator.models import NEITHER_VALID, Project
from annotator.stages.consensus.rankings import Pair, Ranking, agreed_pairs

TOO_FAR_APART = "too far apart"
Scores = Mapping[str, int]
Key = int | tuple[int, int]
"""What scores are of: a response, by its id, or a segment of it, by the response's id and the segment's index."""


@dataclass(frozen=True)
class Rules:
    """The protocol numbers of a project. The defaults are HelpSteer2's."""

    base: int = 3
    most: int = 5
    escalate_above: int = 2
    keep: int = 3
    drop_above: int = 2
    spread_scope: str = "kept"
    attribute: str = "helpfulness"
    share: float = 0.0

    @classmethod
    def of(cls, project: Project) -> "Rules":
        return cls(
            base=project.base_annotators,
            most=project.max_annotators,
            escalate_above=project.escalate_above,
            keep=project.keep,
            drop_above=project.drop_above,
            spread_scope=project.spread_scope,
            attribute=project.spread_attribute,
            share=project.spread_share,
        )


@dataclass(frozen=True)
class Rated:
    """One annotation, with its scores by response or segment, in sequences that are in the order of submission.

    Segments are those of a cut that all annotations of the task share. `aspects` are the attributes by which segments
    were rated; one that a segment has no score of does not apply to it. `version` is the rubric's.
    """

    annotation: int
    ratings: dict[Key, Scores]
    preference: int | None = None
    safe: dict[int, bool] = field(default_factory=dict)
    ranking: Ranking | None = None
    aspects: tuple[str, ...] = ()
    version: int = 1


@dataclass(frozen=True)
class ConsensusOutcome:
    """The result of applying the rules to a task. `means` and `labels` are by response or segment, then by attribute.

    An aspect without a mean does not apply to the segment; `aspects` are those by which all kept annotations rated.

    `kept` holds ids of annotations. `spread` is taken over the kept annotations, `spread_of_all` over all of them.
    `preference` compares the two responses of a task; for a task with more responses, `pairs` holds the pairs on
    which the rankings agree, the better response first. `version` is the newest version of the rubric among the kept.
    """

    kept: tuple[int, ...]
    means: Mapping[Key, Mapping[str, float]]
    labels: Mapping[Key, Mapping[str, int]]
    spread: float | None
    spread_of_all: float | None
    preference: int | None
    drop_reason: str
    pairs: tuple[Pair, ...] = ()
    aspects: tuple[str, ...] = ()
    version: int = 1


def spread(rated: Sequence[Rated], attribute: str, share: float = 0.0) -> int | None:
    """Returns the largest difference between two raters' scores of the attribute on one response or segment.

    With a share, it is the largest one that more than this share of a response's segments reach: as many segments may
    differ more. None means that nobody scored the attribute.
    """
    by_key = defaultdict(list)
    for rating in rated:
        for key, scores in rating.ratings.items():
            if attribute in scores:
                by_key[key].append(scores[attribute])
    if not share:
        return max((max(values) - min(values) for values in by_key.values()), default=None)
    widths = defaultdict(list)
    for key, values in by_key.items():
        widths[key[0] if isinstance(key, tuple) else key].append(max(values) - min(values))
    # The epsilon is for shares such as 0.3 of ten segments, whose product is a little less than three.
    reached = (sorted(of_one, reverse=True)[floor(share * len(of_one) + 1e-9)] for of_one in widths.values())
    return max(reached, default=None)


def differ_on_safety(rated: Iterable[Rated]) -> bool:
    """Returns whether one rater called a response safe that another rater called unsafe."""
    verdicts = {(response, safe) for rating in rated for response, safe in rating.safe.items()}
    return any((response, not safe) in verdicts for response, safe in verdicts)


def wanted(rated: Sequence[Rated], submitted: int, rules: Rules) -> int:
    """Returns how many annotators the rules ask for, given the annotations submitted so far."""
    # As in HelpSteer2, the spread is judged only once the base annotators have rated.
    return rules.most if submitted >= rules.base and needs_more(rated, rules) else rules.base


def needs_more(rated: Sequence[Rated], rules: Rules) -> bool:
    """Returns whether the annotations lie so far apart that the task needs more annotators than the base number."""
    difference = spread(rated, rules.attribute, rules.share)
    return rules.most > rules.base and difference is not None and difference > rules.escalate_above


def most_agreeing(rated: Sequence[Rated], rules: Rules) -> tuple[Rated, ...]:
    """Returns the `keep` annotations that are closest to each other, in the order of submission.

    Closest means the smallest spread of the deciding attribute, then the smallest sum of squared differences between
    pairs over all attributes and responses, then the earliest submissions. The paper leaves ties open; this order
    makes the label depend on the annotations alone.
    """
    if len(rated) <= rules.keep:
        return tuple(rated)
    # Computed once for each pair, as many of the subsets below share it.
    disagreement = {
        pair: _squared_difference(rated[pair[0]], rated[pair[1]]) for pair in combinations(range(len(rated)), 2)
    }

    def closeness(chosen: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        width = spread([rated[index] for index in chosen], rules.attribute, rules.share)
        # The spread is None if nobody scored that attribute, and None cannot be compared with the other numbers.
        # The indices come last, so that of equally close subsets the earliest submissions win.
        return (width or 0, sum(disagreement[pair] for pair in combinations(chosen, 2)), chosen)

    return tuple(rated[index] for index in min(combinations(range(len(rated)), rules.keep), key=closeness))


def _squared_difference(first: Rated, second: Rated) -> int:
    return sum(
        (score - second.ratings[response][attribute]) ** 2
        for response, scores in first.ratings.items()
        for attribute, score in scores.items()
        if attribute in second.ratings.get(response, {})
    )


def half_up(value: float) -> int:
    """Rounds to the nearest whole number, and halves upwards. Three integers never have a mean that ends in .5."""
    # round() takes halves to the nearest even number: 0.5 would become 0, and 1.5 and 2.5 would both become 2.
    return floor(value + 0.5)


def mean_scores(rated: Sequence[Rated]) -> dict[Key, dict[str, float]]:
    """Returns the mean score of each attribute of each response, for the attributes that every annotation scored.

    Annotations that were made with different versions of a rubric share only some of their attributes. An aspect does
    not apply to a segment if most annotations say so; else its mean is that of the others.
    """
    collected: dict[Key, list[Scores]] = defaultdict(list)
    for rating in rated:
        for key, scores in rating.ratings.items():
            collected[key].append(scores)
    aspects = shared_aspects(rated)
    return {
        key: _segment_means(of_raters, aspects) if isinstance(key, tuple) else _means(of_raters)
        for key, of_raters in collected.items()
    }


def _means(of_raters: Sequence[Scores]) -> dict[str, float]:
    return {
        attribute: sum(scores[attribute] for scores in of_raters) / len(of_raters)
        for attribute in of_raters[0]
        if all(attribute in scores for scores in of_raters)
    }


def _segment_means(of_raters: Sequence[Scores], aspects: Iterable[str]) -> dict[str, float]:
    given = {aspect: [scores[aspect] for scores in of_raters if aspect in scores] for aspect in aspects}
    return {
        aspect: sum(values) / len(values)
        for aspect, values in given.items()
        if values and 2 * len(values) >= len(of_raters)
    }


def shared_aspects(rated: Sequence[Rated]) -> tuple[str, ...]:
    """Returns the aspects by which all of the annotations rated segments, in the order of the newest."""
    newest = rated[-1].aspects if rated else ()
    return tuple(aspect for aspect in newest if all(aspect in rating.aspects for rating in rated))


def most_similar(strengths: Sequence[int], rules: Rules) -> tuple[int, ...]:
    """Returns the places of the `keep` strengths that are closest to each other, the earliest of equally close ones."""
    return _closest(tuple(strengths), rules.keep)


@lru_cache(maxsize=4096)  # a few raters on a short scale: the same strengths come again and again
def _closest(strengths: tuple[int, ...], keep: int) -> tuple[int, ...]:
    def closeness(chosen: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        values = [strengths[index] for index in chosen]
        squares = sum((a - b) ** 2 for a, b in combinations(values, 2))
        return (max(values) - min(values), squares, chosen)

    return min(combinations(range(len(strengths)), min(keep, len(strengths))), key=closeness)


def agreed_preference(strengths: Sequence[int], rules: Rules) -> int | None:
    """Returns the rounded mean of the `keep` most similar strengths, as in arXiv 2410.01257.

    `strengths` are in the order of submission. The result is None if there are none, if the most similar ones lie too
    far apart or cancel out, or if one of them says that neither response is valid.
    """
    if not strengths:
        return None
    values = [strengths[index] for index in most_similar(strengths, rules)]
    # NEITHER_VALID is a code far below the scale (-100); in a mean it would pass for a very strong preference.
    if NEITHER_VALID in values or max(values) - min(values) > rules.drop_above:
        return None
    mean = sum(values) / len(values)
    # Away from zero at .5, so that swapping the responses swaps the sign and nothing else.
    return (half_up(mean) if mean >= 0 else -half_up(-mean)) or None


def outcome(rated: Sequence[Rated], rules: Rules) -> ConsensusOutcome:
    """Derives the labels of a task from all its annotations, which are in the order of submission."""
    # Imported preferences come without ratings. They differ from nobody, so they would be kept before real ratings.
    scored = [rating for rating in rated if rating.ratings]
    kept = most_agreeing(scored, rules)
    means = mean_scores(kept)
    width = spread(kept, rules.attribute, rules.share)
    width_of_all = spread(scored, rules.attribute, rules.share)
    decisive = width if rules.spread_scope == Project.SpreadScope.KEPT else width_of_all
    preference, pairs = _agreed_comparisons(rated, rules)
    return ConsensusOutcome(
        kept=tuple(rating.annotation for rating in kept),
        means=means,
        labels={
            key: {attribute: half_up(value) for attribute, value in attributes.items()}
            for key, attributes in means.items()
        },
        spread=width,
        spread_of_all=width_of_all,
        preference=preference,
        drop_reason=TOO_FAR_APART if decisive is not None and decisive > rules.drop_above else "",
        pairs=pairs,
        aspects=shared_aspects(kept),
        version=max((rating.version for rating in kept), default=1),
    )


def preference_alone(rated: Sequence[Rated], rules: Rules) -> ConsensusOutcome:
    """Derives only what compares the responses of a task that has imported preferences or rankings.

    Such a task does not have all of its ratings yet.
    """
    preference, pairs = _agreed_comparisons(rated, rules)
    return ConsensusOutcome((), {}, {}, None, None, preference, "", pairs)


def _agreed_comparisons(rated: Sequence[Rated], rules: Rules) -> tuple[int | None, tuple[Pair, ...]]:
    """Returns the preference and the pairs of rankings on which people agree."""
    strengths = [rating.preference for rating in rated if rating.preference is not None]
    rankings = [rating.ranking for rating in rated if rating.ranking is not None]
    # Each pair of a ranking is settled by the rules for a preference.
    return agreed_preference(strengths, rules), agreed_pairs(rankings, lambda given: agreed_preference(given, rules))
