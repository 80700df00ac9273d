"""Checks that a rating answers everything that its project asks, on its scale."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from django.utils.translation import gettext as _

from annotator.infrastructure.db.storable_text import check_written, fault_in, shown_name
from annotator.infrastructure.limits import (
    LONGEST_EDIT,
    LONGEST_EVIDENCE,
    LONGEST_JUSTIFICATION,
    LONGEST_NOTE,
    LONGEST_WRITTEN,
    MOST_COMMENTS,
    MOST_EVIDENCE,
)
from annotator.infrastructure.refusals import Refusal
from annotator.models import FEWEST_RANKED, LONGEST_ACTIVE_SECONDS, PREFERENCES, TIE, Attribute, Project
from annotator.models.public_ids import response_number
from annotator.reading import languages
from annotator.stages.annotation.content import ResponseRating, Submission
from annotator.stages.annotation.cuts import Cuts
from annotator.stages.segmenting import Range

Errors = dict[str, list[str]]


class IncompleteRating(Refusal):
    """The rating lacks an answer or has one off the scale. `errors` maps each place to what is wrong there."""

    status = 400
    code = "incomplete"

    def __init__(self, errors: Errors) -> None:
        texts = "; ".join(text for texts in errors.values() for text in texts)
        super().__init__(_("The rating is not complete: %(errors)s") % {"errors": texts})
        self.errors = errors


def check_complete(
    submission: Submission,
    *,
    project: Project,
    responses: Sequence[int],
    cuts: Cuts,
    lengths: Mapping[int, int] = MappingProxyType({}),
) -> None:
    """Checks that everything the project asks for is answered, on its scale.

    `responses` are the ids of the task's responses, in the order of their positions, and `cuts` the segments by which
    each is rated; empty where no segments are rated. `lengths` has the length of each text that evidence is quoted of.

    Raises:
        IncompleteRating: with all mistakes at once, by place.
        UnstorableText, TextTooLong: a written answer cannot be stored as it is.
    """
    _check_texts(submission)
    errors = _scale_errors(submission, project, responses)
    if too_long := written_fault(submission.texts()):
        errors.setdefault("ratings", []).append(too_long)
    for response in responses:
        rating = submission.ratings.get(response)
        if rating is None:
            continue
        faults = _unanswered(rating, project) + segment_errors(rating, project.aspects(), cuts.get(response, ()))
        faults += evidence_errors(rating, project, lengths.get(response, 0))
        if faults:
            errors.setdefault(f"ratings.{response_number(response)}", []).extend(faults)
    if project.domains and not submission.domain:
        errors["domain"] = [_no_answer(_("Domain"))]
    if project.ask_language and not submission.language:
        errors["language"] = [_no_answer(_("Language"))]
    if errors:
        raise IncompleteRating(errors)


def check_scores(submission: Submission, *, project: Project, responses: Sequence[int], cuts: Cuts) -> None:
    """Checks that every response has its scores and the task its comparison, as far as a label needs them.

    Segments are checked where `cuts` has those of the response.

    Raises:
        IncompleteRating: with all mistakes at once, by place.
    """
    errors = _scale_errors(submission, project, responses)
    for response, rating in submission.ratings.items():
        if response in cuts and (faults := segment_errors(rating, project.aspects(), cuts[response])):
            errors.setdefault(f"ratings.{response_number(response)}", []).extend(faults)
    if errors:
        raise IncompleteRating(errors)


def _scale_errors(submission: Submission, project: Project, responses: Sequence[int]) -> Errors:
    errors: Errors = {}
    for stranger in sorted(set(submission.ratings).difference(responses))[:MOST_NAMED]:
        text = _("response id %(id)s does not belong to this task") % {"id": response_number(stranger)}
        errors.setdefault("ratings", []).append(text)
    for number, response in enumerate(responses):
        rating = submission.ratings.get(response)
        place = f"ratings.{response_number(response)}"
        if rating is None:
            errors[place] = [_("response %(number)s is not rated") % {"number": number + 1}]
        elif faults := _rating_errors(rating, project):
            errors[place] = faults
    if faults := _preference_errors(submission, project, len(responses)):
        errors["preference"] = faults
    if faults := _ranking_errors(submission, project, responses):
        errors["ranking"] = faults
    seconds = submission.active_seconds
    # Written so that NaN is refused: every comparison with it is false.
    if seconds is not None and not 0 <= seconds <= LONGEST_ACTIVE_SECONDS:
        text = _("the active seconds must be between 0 and %(most)s")
        errors["active_seconds"] = [text % {"most": LONGEST_ACTIVE_SECONDS}]
    if faults := _domain_errors(submission.domain, project):
        errors["domain"] = faults
    if submission.language and languages.code_of(submission.language) != submission.language:
        text = _("%(language)s is not the code of a language, such as en or pt-br")
        errors["language"] = [text % {"language": shown_name(submission.language)}]
    compared = submission.preference is not None or submission.ranking is not None
    scored = any(rating.scores or rating.segments for rating in submission.ratings.values())
    if not errors and not compared and not scored:
        errors["ratings"] = [_("the rating is empty: it has no score, no preference and no ranking")]
    return errors


def _check_texts(submission: Submission) -> None:
    check_written(submission.justification, "justification", longest=LONGEST_JUSTIFICATION)
    for response, rating in submission.ratings.items():
        if rating.feedback or rating.edit or rating.edit_summary:
            place = f"ratings.{response_number(response)}"
            check_written(rating.feedback, f"{place}.feedback", longest=LONGEST_JUSTIFICATION)
            check_written(rating.edit, f"{place}.edit", longest=LONGEST_EDIT)
            check_written(rating.edit_summary, f"{place}.edit_summary", longest=LONGEST_JUSTIFICATION)


def written_fault(texts: Iterable[str]) -> str:
    """Returns what is wrong with the length of all that a rater wrote about a task together; empty if nothing is."""
    count = sum(map(len, texts))
    if count <= LONGEST_WRITTEN:
        return ""
    text = _("What you wrote about this task has %(count)s characters in all, and at most %(most)s can be stored.")
    return text % {"count": count, "most": LONGEST_WRITTEN}


def _rating_errors(rating: ResponseRating, project: Project) -> list[str]:
    attributes = project.attributes_for()
    highest = {attribute.key: len(attribute.levels) - 1 for attribute in attributes}
    errors = [_no_answer(attribute.shown_name) for attribute in attributes if attribute.key not in rating.scores]
    errors += [
        _("%(key)s is not an attribute of this project") % {"key": shown_name(key)}
        for key in sorted(set(rating.scores) - set(highest))[:MOST_NAMED]
    ]
    errors += [
        _("%(key)s is %(score)r: it must be a whole number from 0 to %(highest)s")
        % {"key": key, "score": score, "highest": highest[key]}
        for key, score in rating.scores.items()
        # Not isinstance: True and False are ints as well.
        if key in highest and (type(score) is not int or not 0 <= score <= highest[key])
    ]
    known_checks = {check[0] for attribute in attributes for check in attribute.checks}
    unknown_checks = sorted(set(rating.checks).difference(known_checks))[:MOST_NAMED]
    errors += [_("%(check)s is not a check of this project") % {"check": shown_name(check)} for check in unknown_checks]
    if len(set(rating.checks)) != len(rating.checks):
        errors.append(_("the same check is named twice"))
    errors += safety_errors(rating.safe, rating.unsafe_category)
    if rating.edit_summary and not rating.edit:
        errors.append(_("a summary of an edit requires the edit itself"))
    return errors


def _unanswered(rating: ResponseRating, project: Project) -> list[str]:
    """Returns what is missing of a response's rating besides its scores. An edit never is."""
    errors = []
    if project.ask_confidence and rating.confidence is None:
        errors.append(_no_answer(_("Confidence")))
    if project.ask_safety and rating.safe is None:
        errors.append(_no_answer(_("Safety")))
    if project.ask_feedback and not rating.feedback.strip():
        errors.append(_no_answer(_("Feedback")))
    return errors


def _domain_errors(domain: str, project: Project) -> list[str]:
    if not domain or domain in project.domains:
        return []
    if not project.domains:
        return [_("this project asks for no domain: leave it out")]
    text = _("%(domain)s is not a domain of this project: choose one of %(domains)s")
    return [text % {"domain": shown_name(domain), "domains": ", ".join(project.domains)}]


def safety_errors(safe: bool | None, category: str) -> list[str]:
    """Checks that a category of what is unsafe comes with the answer "unsafe", and that answer with a category."""
    if safe is False and not category:
        return [_("say what is unsafe about it")]
    if category and safe is not False:
        return [_("an unsafe category requires that the response is marked as unsafe")]
    return []


def _no_answer(question: str) -> str:
    return _("%(question)s has no answer") % {"question": question}


def _preference_errors(submission: Submission, project: Project, responses: int) -> list[str]:
    if submission.preference is not None and submission.preference not in PREFERENCES:
        return [_("the preference must be -3, -2, -1, 1, 2 or 3, or -100 if neither response is valid")]
    if submission.preference == TIE and not project.allow_ties:
        return [_("the preference must not be 0: this project allows no ties")]
    if submission.preference is not None and responses != 2:
        return [_("a preference needs exactly two responses: use `ranking` for three or more")]
    if project.ask_preference and responses == 2 and submission.preference is None:
        return [_no_answer(_("Preference"))]
    return []


def _ranking_errors(submission: Submission, project: Project, responses: Sequence[int]) -> list[str]:
    if submission.ranking is None:
        if not project.asks_for_ranking(len(responses)):
            return []
        text = _("the ranking is missing: put all %(count)s responses into tiers of ids, the best first")
        return [text % {"count": len(responses)}]
    if len(responses) < FEWEST_RANKED:
        return [_("a ranking needs three responses or more: use `preference` for two")]
    named = Counter(response for tier in submission.ranking for response in tier)
    strangers = sorted(set(named).difference(responses))[:MOST_NAMED]
    doubled = [response for response in responses if named[response] > 1][:MOST_NAMED]
    errors = [
        _("response id %(id)s does not belong to this task") % {"id": response_number(stranger)}
        for stranger in strangers
    ]
    errors += [
        _("response id %(id)s is ranked twice: name it once") % {"id": response_number(response)}
        for response in doubled
    ]
    errors += [
        _("response %(number)s is not ranked: put its id %(id)s into a tier")
        % {"number": number, "id": response_number(response)}
        for number, response in enumerate(responses, 1)
        if response not in named
    ][:MOST_NAMED]
    if not all(submission.ranking):
        errors.append(_("a tier of the ranking is empty: leave it out"))
    return errors


def evidence_errors(rating: ResponseRating, project: Project, length: int) -> list[str]:
    """Returns what is wrong with the evidence of one response, whose text has so many characters."""
    if len(rating.evidence) > MOST_EVIDENCE:
        text = _("it has %(count)s pieces of evidence, and at most %(most)s are stored")
        return [text % {"count": len(rating.evidence), "most": MOST_EVIDENCE}]
    keys, errors = project.attribute_keys(), []
    for number, (attribute, start, end, note) in enumerate(rating.evidence, 1):
        if attribute not in keys:
            text = _("evidence %(number)s is for %(key)s, which is not an attribute of this project")
            errors.append(text % {"number": number, "key": shown_name(attribute)})
        if not 0 <= start < end <= length:
            text = _("evidence %(number)s is on characters %(start)s to %(end)s of a text that has %(length)s")
            errors.append(text % {"number": number, "start": start, "end": end, "length": length})
        elif end - start > LONGEST_EVIDENCE:
            text = _("evidence %(number)s has %(count)s characters, and at most %(most)s are stored")
            errors.append(text % {"number": number, "count": end - start, "most": LONGEST_EVIDENCE})
        if len(note) > LONGEST_NOTE:
            text = _("the note of evidence %(number)s has more than %(most)s characters")
            errors.append(text % {"number": number, "most": LONGEST_NOTE})
        elif fault := fault_in(note):
            text = _("the note of evidence %(number)s holds %(what)s, which cannot be stored")
            errors.append(text % {"number": number, "what": _(fault.what)})
    return errors[:MOST_NAMED]


# Segments ----------------------------------------------------------------------------------------------------


MOST_NAMED = 5
"""Mistakes of one kind that an answer lists: it need not be as long as what was sent."""


def segment_errors(rating: ResponseRating, aspects: Sequence[Attribute], cut: Sequence[Range]) -> list[str]:
    """Returns what is wrong with the scores and comments of one response, whose segments are `cut`."""
    if not aspects:
        asks = _("this project rates whole responses: leave out the segments")
        return [asks] if rating.segments or rating.cut or rating.comments else []
    errors = [*_score_errors(rating.segments, aspects, len(cut)), *_comment_errors(rating, cut)]
    return errors[:MOST_NAMED]


def _score_errors(segments: Sequence[Mapping[str, int | None]], aspects: Sequence[Attribute], count: int) -> list[str]:
    if len(segments) != count:
        text = _("it has %(count)s segments, and %(rated)s are rated: rate each by its index from 0")
        return [text % {"count": count, "rated": len(segments)}]
    highest = {aspect.key: len(aspect.levels) - 1 for aspect in aspects}
    names = {aspect.key: aspect.shown_name for aspect in aspects}
    errors: list[str] = []
    for number, scores in enumerate(segments, 1):
        for key in names.keys() - scores.keys():
            text = _("segment %(number)s: %(question)s has no answer")
            errors.append(text % {"number": number, "question": names[key]})
        for key in scores.keys() - names.keys():
            text = _("segment %(number)s: %(key)s is not an attribute of segments in this project")
            errors.append(text % {"number": number, "key": shown_name(key)})
        errors += [
            _(
                "segment %(number)s, %(key)s is %(score)r: it must be a whole number from 0 to %(highest)s, or null "
                "where it does not apply"
            )
            % {"number": number, "key": key, "score": score, "highest": highest[key]}
            for key, score in scores.items()
            # Not isinstance: True and False are ints as well.
            if key in highest and score is not None and (type(score) is not int or not 0 <= score <= highest[key])
        ]
        if len(errors) >= MOST_NAMED:
            break
    return errors


def _comment_errors(rating: ResponseRating, cut: Sequence[Range]) -> list[str]:
    if len(rating.comments) > MOST_COMMENTS:
        text = _("it has %(count)s comments, and at most %(most)s are stored")
        return [text % {"count": len(rating.comments), "most": MOST_COMMENTS}]
    length = cut[-1].end if cut else 0
    errors = []
    for number, (start, end, text) in enumerate(rating.comments, 1):
        if not 0 <= start < end <= length:
            place = _("comment %(number)s is on characters %(start)s to %(end)s of a text that has %(length)s")
            errors.append(place % {"number": number, "start": start, "end": end, "length": length})
        if not text.strip() or len(text) > LONGEST_NOTE:
            words = _("comment %(number)s is empty, or has more than %(most)s characters")
            errors.append(words % {"number": number, "most": LONGEST_NOTE})
        elif fault := fault_in(text):
            holds = _("comment %(number)s holds %(what)s, which cannot be stored")
            errors.append(holds % {"number": number, "what": _(fault.what)})
    return errors
