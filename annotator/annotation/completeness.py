"""Whether a rating answers everything that its project asks, on its scale."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from annotator.annotation.content import ResponseRating, Submission
from annotator.models import PREFERENCES, Project
from annotator.public_ids import response_number
from annotator.refusals import Refusal

Errors = dict[str, list[str]]


class IncompleteRating(Refusal):
    """The rating lacks an answer or has one off the scale. `errors` maps each place to what is wrong there."""

    status = 400
    code = "incomplete"

    def __init__(self, errors: Errors) -> None:
        texts = "; ".join(text for texts in errors.values() for text in texts)
        super().__init__(_("The rating is not complete: %(errors)s") % {"errors": texts})
        self.errors = errors


def check_complete(submission: Submission, *, project: Project, responses: Sequence[int]) -> None:
    """Raises IncompleteRating unless everything that the project asks for is answered, on its scale.

    `responses` are the ids of the task's, by position.
    """
    errors: Errors = {}
    for stranger in set(submission.ratings).difference(responses):
        text = _("response id %(id)s does not belong to this task") % {"id": response_number(stranger)}
        errors.setdefault("ratings", []).append(text)
    for number, response in enumerate(responses):
        rating = submission.ratings.get(response)
        place = f"ratings.{response_number(response)}"
        if rating is None:
            errors[place] = [_("response %(number)s is not rated") % {"number": number + 1}]
        elif found := _rating_errors(rating, project):
            errors[place] = found
    if found := _preference_errors(submission, project, len(responses)):
        errors["preference"] = found
    if not errors and submission.preference is None and not any(each.scores for each in submission.ratings.values()):
        errors["ratings"] = [_("the rating says nothing: it has no score and no preference")]
    if errors:
        raise IncompleteRating(errors)


def _rating_errors(rating: ResponseRating, project: Project) -> list[str]:
    attributes = project.attributes_for()
    keys = {each.key for each in attributes}
    errors = [_no_answer(_(each.name)) for each in attributes if each.key not in rating.scores]
    errors += [
        _("%(key)s is not an attribute of this project") % {"key": key} for key in sorted(set(rating.scores) - keys)
    ]
    errors += [
        _("%(key)s is %(score)r: it must be a whole number from 0 to 4") % {"key": key, "score": score}
        for key, score in rating.scores.items()
        if type(score) is not int or not 0 <= score <= 4
    ]
    known_checks = {check[0] for each in attributes for check in each.checks}
    errors += [
        _("%(check)s is not a check of this project") % {"check": check}
        for check in rating.checks
        if check not in known_checks
    ]
    if project.ask_confidence and rating.confidence is None:
        errors.append(_no_answer(_("Confidence")))
    if project.ask_safety and rating.safe is None:
        errors.append(_no_answer(_("Safety")))
    return errors


def _no_answer(question: str) -> str:
    return _("%(question)s has no answer") % {"question": question}


def _preference_errors(submission: Submission, project: Project, responses: int) -> list[str]:
    if submission.preference is not None and submission.preference not in PREFERENCES:
        return [_("the preference must be -3, -2, -1, 1, 2 or 3, or -100 for neither valid")]
    if submission.preference is not None and responses != 2:
        return [_("a preference needs exactly two responses")]
    if project.ask_preference and responses == 2 and submission.preference is None:
        return [_no_answer(_("Preference"))]
    return []
