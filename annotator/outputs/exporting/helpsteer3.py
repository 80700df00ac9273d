"""The layouts of HelpSteer3: preferences, each task that came in another of its configurations as it came, and edits.

Its configurations are preference, feedback, edit and edit_quality (arXiv 2505.11475, 2503.04378).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, NullIf

from annotator.models import Import, Project, Rating
from annotator.models.annotation import TIE
from annotator.outputs.exporting.answered_tasks import AnsweredTask, Depth, answered_tasks
from annotator.outputs.exporting.columns import INTEGER, MESSAGES, TEXT, Row, Type, counted_ratings
from annotator.outputs.exporting.copied import Lines, copied, response_name
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.selections import RowSelection, preferred_or_kept_tasks, preferred_tasks
from annotator.stages.importing.conversations import as_they_came
from annotator.stages.importing.field_checks import language_of
from annotator.stages.importing.layouts.helpsteer import FEEDBACK, PREFERRED, RESPONSES, by_raters, texts_of

_OF_EDITS: Mapping[Sequence[str], int] = {names: PREFERRED[names[0]] for names in RESPONSES if names[0] in PREFERRED}
"""The responses of the configurations of edits, and which of the two is better."""
_PAIR = ("response1", "response2")


def helpsteer3_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Iterator[Row]:
    """Yields a row for each task of two responses with a preference, and for each that came with feedback."""
    depth = Depth(votes=True, written=project.ask_feedback, metadata=True, kept=_has_come(project))
    for task, names in _shaped(_tasks(project, filters, depth).without(unseen), depth):
        yield {
            "domain": _most_named([vote.domain for vote in task.votes]) or str(task.metadata.get("domain", "")),
            "language": _most_named([vote.language for vote in task.votes]) or _language(task),
            "context": as_they_came(task.conversation),
            **{name: answer.text for name, answer in zip(names, task.responses, strict=True)},
            **_preferences(task, names),
            **_feedback(task, names),
        }


def helpsteer3_columns(project: Project, _filters: Filters) -> Mapping[str, Type]:
    by_people: Type = [{"score": INTEGER, "reasoning": TEXT, "feedback1": TEXT, "feedback2": TEXT}]
    head: dict[str, Type] = {"domain": TEXT, "language": TEXT, "context": MESSAGES, "response1": TEXT}
    preferences = {**head, "response2": TEXT, "overall_preference": INTEGER, "individual_preference": by_people}
    if not _has_come(project):
        return preferences
    others = [name for names in RESPONSES for name in names if name not in _PAIR]
    lists: dict[str, Type] = {name: [TEXT] for name in ("feedback1", "feedback2", "feedback")}
    return {**preferences, **dict.fromkeys((*others, "change_summary"), TEXT), **lists}


def count_helpsteer3(project: Project, filters: Filters) -> int:
    depth = Depth(texts=False, metadata=True, kept=_has_come(project))
    return sum(1 for _ in _shaped(_tasks(project, filters, depth), depth))


def _has_come(project: Project) -> bool:
    """Returns whether the project has tasks from HelpSteer3's files; without, only preferences can leave."""
    return Import.objects.filter(project=project, layouts__contains=["helpsteer3"]).exists()


def _tasks(project: Project, filters: Filters, depth: Depth) -> RowSelection:
    selected = preferred_or_kept_tasks if depth.kept else preferred_tasks
    return selected(project, filters)


def _shaped(tasks: RowSelection, depth: Depth) -> Iterator[tuple[AnsweredTask, Sequence[str]]]:
    """Yields the tasks about which something has been said, with the fields of their responses."""
    for task in answered_tasks(tasks, depth):
        names = _names(task)
        compared = len(names) == 2 and _preference(task) is not None
        if compared or any(_feedback(task, names).values()):
            yield task, names


def _names(task: AnsweredTask) -> Sequence[str]:
    """Returns the fields of the task's responses; none if no configuration has so many."""
    imported = tuple(answer.name for answer in task.responses)
    if imported in _OF_EDITS:
        return imported
    return _PAIR if len(imported) == 2 else ("response",) if len(imported) == 1 else ()


def _preference(task: AnsweredTask) -> int | None:
    """Returns the preference in force, else the 0 that came with the task."""
    if task.preference is None and not task.dropped and task.metadata.get("overall_preference") == TIE:
        return TIE
    return task.preference


def _preferences(task: AnsweredTask, names: Sequence[str]) -> Row:
    """Returns the preferences, without one that the fields of the responses say already."""
    preference, votes = _preference(task), [vote for vote in task.votes if -3 <= vote.strength <= 3]
    if preference is None or (not votes and preference == _OF_EDITS.get(tuple(names))):
        return {}
    kept = by_raters(task.metadata, [(vote.strength, vote.justification) for vote in votes])
    return {
        "overall_preference": preference,
        "individual_preference": [
            {"score": vote.strength, "reasoning": vote.justification, "feedback1": first, "feedback2": second}
            for vote, came in zip(votes, kept, strict=True)
            for first, second in [vote.feedback if len(vote.feedback) == len(_PAIR) else came]
        ],
    }


def _feedback(task: AnsweredTask, names: Sequence[str]) -> Row:
    """Returns what came with the task besides preferences, in the fields of its configuration."""
    of_edits = tuple(names) in _OF_EDITS
    if not of_edits and not any(answer.feedback for answer in task.responses):  # as in most tasks
        return {}
    lists = {
        FEEDBACK[name]: texts_of(answer.feedback)
        for name, answer in zip(names, task.responses, strict=False)
        if name in FEEDBACK
    }
    if of_edits:
        kept = {name: task.metadata[name] for name in ("change_summary", "original_response") if name in task.metadata}
        return kept | (lists or {"feedback": texts_of(task.metadata.get("feedback"))})
    # A row of preferences has no such lists: its feedback stands with each preference.
    return lists if any(lists.values()) else {}


def _language(task: AnsweredTask) -> str:
    """Returns the task's language as its file wrote it, unless it has been changed since."""
    written = task.metadata.get("language")
    return written if isinstance(written, str) and language_of(written) == task.language else task.language


def _most_named(names: Iterable[str]) -> str:
    """Returns the name that most raters chose, the first one of several; empty if nobody chose one."""
    chosen = [name for name in names if name]
    return Counter(chosen).most_common(1)[0][0] if chosen else ""


# Better versions of responses, as annotators write them ----------------------------------------------------

TASKS_AT_ONCE = 4_000

_FEEDBACK = Rating.objects.filter(
    annotation__is_current=True, annotation__assignment__counts=True, response=OuterRef("response")
).exclude(feedback="")


def edit_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each edit that counts: the response, its better version, and the feedback on the response.

    The domain is the annotator's, or the one that the task came with; the language as well.
    """
    rows = _edits(project, filters).exclude(response__task__in=unseen)
    task = "response__task__"
    columns = rows.order_by("response__task", "response__position", "pk").values_list(
        f"{task}external_id",
        response_name("response__"),
        _first_of(F("annotation__domain"), KeyTextTransform("domain", f"{task}metadata")),
        _first_of(F("annotation__language"), F(f"{task}language")),
        f"{task}conversation",
        "response__text",
        "edit",
        "edit_summary",
        ArraySubquery(_FEEDBACK.order_by("pk").values("feedback")),
    )
    # Few responses have an edit: with as many tasks as usual, most of the time would go by between two parts.
    names = list(edit_columns(project, filters))
    return copied(project, columns, names, task="response__task", among=filters.among, at_once=TASKS_AT_ONCE)


def _first_of(chosen: F, known: Any) -> Coalesce:
    """Returns what the annotator has chosen, else what is known of the task, else an empty text."""
    return Coalesce(NullIf(chosen, Value("")), known, Value(""), output_field=TextField())


def edit_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "domain": TEXT, "language": TEXT, "context": MESSAGES}
    return {**head, "original_response": TEXT, "edited_response": TEXT, "change_summary": TEXT, "feedback": [TEXT]}


def count_edits(project: Project, filters: Filters) -> int:
    return int(_edits(project, filters).count())


def _edits(project: Project, filters: Filters) -> QuerySet[Rating]:
    edits: QuerySet[Rating] = counted_ratings(project, filters).filter(annotation__assignment__counts=True)
    return edits.exclude(edit="")
