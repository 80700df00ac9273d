"""What reviewers read beside the ratings: comparisons in words, written answers, and scores that a model doubts."""

from collections import Counter
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

from django.utils.translation import gettext as _

from annotator.models import Adjudication, Annotation, Origin
from annotator.pages.rating.rating_form import PREFERENCE_TEXTS
from annotator.reading.pseudonyms import Naming
from annotator.stages.consensus.rankings import Ranking
from annotator.stages.importing.layouts.helpsteer import by_raters, texts_of
from annotator.stages.pii.highlights import marks_of
from annotator.stages.review.rating_sheets import Reviewed, SheetRater
from annotator.templatetags.scales import level


def side_by_side(ratings: Reviewed, *, naming: Naming | None = None) -> dict[str, Any]:
    """Returns what every page shows of a task's ratings, with the raters' names where the reader may know them."""
    task = ratings.task
    return {
        "task": task,
        "conversation": task.conversation,
        "pii": marks_of(task),
        "shown": ratings,
        "unlikely": unlikely_scores(ratings),
        "gaps": gaps_by_scale(ratings),
        "raters": [
            {
                "rater": rater,
                "name": naming(rater.annotation.assignment.annotator) if naming else "",
                "preference": comparison_text(rater.annotation, ratings),
                "written": written_answers(rater, ratings),
            }
            for rater in ratings.raters
        ],
        "imported_feedback": imported_feedback(ratings),
    }


def gaps_by_scale(ratings: Reviewed) -> list[tuple[str, int]]:
    """Returns what raters found the guidelines silent about, and how many did, the most often named first."""
    project = ratings.task.project
    names = {one.key: one.shown_name for one in [*project.attributes_for(), *project.aspects()]}
    asked = (gap.attribute for gap in ratings.gaps)
    return Counter(names.get(key, key) or _("the task as a whole") for key in asked).most_common()


def unlikely_scores(ratings: Reviewed) -> list[dict[str, Any]]:
    """Returns the scores that a model did not expect, rater by rater, as levels of the scale."""
    letters = {sheet.response.pk: sheet.letter for sheet in ratings.sheets}
    names = {row.attribute.key: row.attribute.shown_name for sheet in ratings.sheets for row in sheet.rows}
    return [
        {
            "number": rater.number,
            "letter": letters[rating["response"]],
            "attribute": names[rating["attribute"]],
            "given": level(rating["given"]),
            "expected": level(rating["expected"]),
        }
        for rater in ratings.raters
        for rating in rater.unlikely
        if rating["response"] in letters and rating["attribute"] in names
    ]


def ranking_text(ranking: Ranking | None, responses: Sequence[int]) -> str:
    """Returns a stored ranking in letters by the responses' positions, such as B > A = C."""
    letters = dict(zip(responses, ascii_uppercase, strict=False))
    return " > ".join(" = ".join(sorted(letters[response] for response in tier)) for tier in ranking or ())


def preference_text(preference: int | None) -> str:
    """Returns a stored preference in words, relative to the responses' positions: A is the first."""
    return "" if preference is None else str(PREFERENCE_TEXTS.get(preference, ""))


def comparison_text(rating: Annotation | Adjudication | None, ratings: Reviewed) -> str:
    """Returns in words the preference between two responses, or the ranking of more; empty for None."""
    if rating is None:
        return ""
    return preference_text(rating.preference) or ranking_text(
        rating.ranking, [sheet.response.pk for sheet in ratings.sheets]
    )


def written_answers(rater: SheetRater, ratings: Reviewed) -> list[dict[str, str]]:
    """Returns what a rater wrote about each response, with a title: feedback, a better version, and what it changes."""
    own = [
        {"title": title % {"letter": sheet.letter}, "text": text}
        for sheet in ratings.sheets
        if (rating := rater.ratings.get(sheet.response.pk))
        for title, text in (
            (_("Feedback on response %(letter)s"), rating.feedback),
            (_("Better version of response %(letter)s"), rating.edit),
            (_("What the better version of response %(letter)s changes"), rating.edit_summary),
        )
        if text
    ]
    came = _came_with_preferences(ratings).get(rater.annotation.pk, ())
    title = _("Feedback on response %(letter)s")
    return own + [
        {"title": title % {"letter": letter}, "text": text} for letter, text in zip("AB", came, strict=False) if text
    ]


def _came_with_preferences(ratings: Reviewed) -> dict[int, tuple[str, str]]:
    """Returns what imported raters wrote about the two responses, by their annotations."""
    if "individual_preference" not in ratings.task.metadata:
        return {}
    given = (rater.annotation for rater in ratings.raters if rater.annotation.origin == Origin.IMPORTED)
    votes = sorted(given, key=lambda annotation: annotation.pk)
    said = [(annotation.preference, annotation.justification) for annotation in votes]
    return dict(zip((annotation.pk for annotation in votes), by_raters(ratings.task.metadata, said), strict=True))


def imported_feedback(ratings: Reviewed) -> list[dict[str, str]]:
    """Returns what came with each response, with a title: its raters are known by their places in the file's list."""
    title = _("Imported rater %(number)s on response %(letter)s")
    return [
        {"title": title % {"number": number, "letter": sheet.letter}, "text": text}
        for sheet in ratings.sheets
        for number, text in enumerate(texts_of(sheet.response.metadata.get("feedback")), 1)
    ]
