"""Reads what is said of the parts of a response: segments with levels, marked spans, and steps with verdicts."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from annotator.stages.importing.conversations import answered_messages, rest_of
from annotator.stages.importing.field_checks import (
    BadRow,
    check_responses,
    identifier,
    language_as_written,
    metadata_of,
    required,
    shown,
    storable_text,
    whole,
    whole_of_cell,
)
from annotator.stages.importing.task_rows import ImportRules, ResponseRow, SegmentLabel, TaskRow
from annotator.stages.segmenting import (
    NotAPartition,
    Range,
    Unit,
    covered,
    cut,
    cut_at_marks,
    partition,
    partition_by_texts,
)

VERDICTS = frozenset({-1, 0, 1})
"""Verdicts on a step of PRM800K (arXiv 2305.20050). TRL's stepwise supervision says true or false."""
PROMPTS = ("prompt", "problem", "question")
VERDICT_COLUMNS = ("labels", "ratings")
STEP_CELLS = ("completions", "steps", "label", *VERDICT_COLUMNS)
KINDS = ("irrelevant", "redundant", "incoherent", "wrong_grounding", "unverifiable")
"""The kinds of error that FineGrainedRLHF's spans mark, as keys of aspects: no span of a kind means no such error."""


def segments_of(value: Any, text: str, name: str) -> tuple[Range, ...]:
    """Reads segments that are given as pairs [start, end], as objects {start, end}, or as texts. Raises BadRow."""
    if value in (None, [], ""):
        return ()
    if not isinstance(value, list):
        raise BadRow(f"{name} is {shown(value)}: it must be a list of [start, end], or of texts", name)
    try:
        if all(isinstance(item, str) for item in value):
            return partition_by_texts(text, value)
        return partition(
            text,
            [
                [item["start"], item["end"]] if isinstance(item, dict) and {"start", "end"} <= item.keys() else item
                for item in value
            ],
        )
    except NotAPartition as wrong:
        raise BadRow(f"{name}: {wrong}", name) from wrong


def lists_of_levels(values: Mapping[str, Any], rules: ImportRules, count: int) -> SegmentLabel | None:
    """Reads a list for each aspect, with a level or null for each of so many segments. Raises BadRow."""
    lists = {aspect: values[aspect] for aspect in rules.aspects if values.get(aspect) not in (None, [None] * count)}
    if not lists:
        return None
    for aspect, given in lists.items():
        if not isinstance(given, list) or len(given) != count:
            what = f"it must be a list with a level for each of {count} segments"
            raise BadRow(f"{aspect} is {shown(given)}: {what}", aspect)
        levels = rules.aspects[aspect]
        for value in given:
            value = whole(value)
            if value is not None and (type(value) is not int or not 0 <= value < levels):
                raise BadRow(f"{aspect} has {shown(value)}: its levels are 0 to {levels - 1}, or null", aspect)
    return SegmentLabel(tuple(lists), tuple(zip(*(map(whole, given) for given in lists.values()), strict=True)))


def _marked(
    text: str, spans: Sequence[Mapping[str, Any]], rules: ImportRules
) -> tuple[tuple[Range, ...], SegmentLabel | None]:
    """Returns the segments of a text with marked errors, and what the marks say of those aspects that are such kinds.

    The text is cut into sentences and at the ends of the marks. A segment that a mark covers has the lowest level of
    the mark's kind, any other one the highest. Raises BadRow.
    """
    ranges = [_span(span, text, number) for number, span in enumerate(spans)]
    segments = cut_at_marks(text, cut(text, Unit.SENTENCE), ranges)
    aspects = tuple(kind for kind in KINDS if kind in rules.aspects)
    if not aspects:
        return segments, None
    # The key by which a rubric knows a kind, such as `wrong_grounding`.
    kinds = [
        re.sub(r"[^a-z0-9]+", "_", str(span.get("aspect") or span.get("category") or "").lower()) for span in spans
    ]
    faults = {
        (kind.strip("_"), place)
        for kind, span in zip(kinds, ranges, strict=True)
        for place in covered(text, segments, span)
    }
    levels = (
        tuple(0 if (kind, place) in faults else rules.aspects[kind] - 1 for kind in aspects)
        for place in range(len(segments))
    )
    return segments, SegmentLabel(aspects, tuple(levels))


def _span(span: Any, text: str, number: int) -> Range:
    name = f"spans[{number}]"
    if not isinstance(span, dict):
        raise BadRow(f"{name} is {shown(span)}: it must be an object with aspect, start and end", name)
    start, end = span.get("start"), span.get("end")
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise BadRow(f"{name} is {shown(span)}: it must lie within the {len(text)} characters of the response", name)
    return Range(start, end)


def joined_steps(steps: Sequence[Any], name: str) -> tuple[str, tuple[Range, ...]]:
    """Returns the text of some steps, each on a line of its own, and their ranges. Raises BadRow."""
    if not isinstance(steps, list) or not steps:
        raise BadRow(f"{name} must be a list of at least one step", name)
    texts = [storable_text(step, f"{name}[{number}]") for number, step in enumerate(steps)]
    apart = [step if step[-1].isspace() else f"{step}\n" for step in texts[:-1]] + texts[-1:]
    return "".join(apart), segments_of(apart, "".join(apart), name)


def steps_label(verdicts: Sequence[Any], rules: ImportRules, name: str, *, count: int) -> SegmentLabel | None:
    """Returns verdicts on steps as levels of the deciding aspect, null where there is none. Raises BadRow."""
    if not isinstance(verdicts, list) or len(verdicts) != count:
        raise BadRow(f"{name} must be a list with a verdict for each of {count} steps", name)
    for number, verdict in enumerate(verdicts):
        if verdict is not None and not (isinstance(verdict, bool | int) and verdict in VERDICTS):
            raise BadRow(f"{name}[{number}] is {shown(verdict)}: it must be true or false, or -1, 0 or 1", name)
    if not rules.deciding_aspect or all(verdict is None for verdict in verdicts):
        return None
    highest = rules.aspects[rules.deciding_aspect] - 1
    # Of an even number of levels, the upper one of the two in the middle: a neutral step is none that went wrong.
    levels = (0, -(-highest // 2), highest)
    places = [
        verdict if verdict is None else 2 * verdict if isinstance(verdict, bool) else verdict + 1
        for verdict in verdicts
    ]
    return SegmentLabel(
        (rules.deciding_aspect,), tuple((place if place is None else levels[place],) for place in places)
    )


def is_stepwise(values: Mapping[str, Any]) -> bool:
    asked = any(name in values for name in PROMPTS)
    listed = "completions" in values or "steps" in values
    return asked and listed and any(name in values for name in VERDICT_COLUMNS)


def stepwise_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a response of some steps with a verdict for each: true and false, or 1, 0 and -1. Raises BadRow."""
    prompt = next(name for name in PROMPTS if name in values)
    name = "completions" if "completions" in values else "steps"
    said = next(name for name in VERDICT_COLUMNS if name in values)
    return _row(values, rules, prompt, (values[name], name), (values[said], said))


def is_first_error(values: Mapping[str, Any]) -> bool:
    asked = any(name in values for name in PROMPTS)
    return asked and "steps" in values and type(whole_of_cell(values.get("label"))) is int


def first_error_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads steps with the place of the first wrong one from 0, or -1, as ProcessBench has them. Raises BadRow.

    Nobody has looked at the steps behind the first wrong one.
    """
    prompt, steps, label = next(name for name in PROMPTS if name in values), values["steps"], values["label"]
    count, wrong = len(steps) if isinstance(steps, list) else 0, whole_of_cell(label)
    if not -1 <= wrong < count:
        raise BadRow(f"label is {shown(label)}: it must be the place of one of {count} steps from 0, or -1", "label")
    verdicts = [1] * count if wrong < 0 else [1] * wrong + [-1] + [None] * (count - wrong - 1)
    return _row(values, rules, prompt, (steps, "steps"), (verdicts, "label"))


def is_prm800k(values: Mapping[str, Any]) -> bool:
    question, label = values.get("question"), values.get("label")
    return isinstance(question, dict) and isinstance(label, dict) and isinstance(label.get("steps"), list)


def prm800k_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a problem with the chosen completion of each step, or with a person's own step. Raises BadRow."""
    question, label = values["question"], values["label"]
    chosen = [_chosen(step, f"label.steps[{number}]") for number, step in enumerate(label["steps"])]
    # What nobody has chosen, and the right answer, are kept: raters do not see them.
    flat = {**values, "problem": question.get("problem"), "question": {**question, "problem": ""}}
    texts, verdicts = [text for text, _ in chosen], [verdict for _, verdict in chosen]
    return _row(flat, rules, "problem", (texts, "label.steps"), (verdicts, "label.steps"))


def _chosen(step: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(step, dict):
        raise BadRow(f"{name} is {shown(step)}: it must be an object with completions", name)
    if isinstance(own := step.get("human_completion"), dict):
        return own.get("text"), own.get("rating", 1)
    completions, place = step.get("completions"), step.get("chosen_completion")
    if not isinstance(completions, list) or not completions:
        raise BadRow(f"{name} has no completions", name)
    # Where nobody has chosen one, the reasoning ended at the first, which went wrong.
    one = completions[place if type(place) is int and 0 <= place < len(completions) else 0]
    if not isinstance(one, dict):
        raise BadRow(f"{name}.completions has {shown(one)}: it must be an object with text and rating", name)
    return one.get("text"), one.get("rating")


def _row(
    values: dict[str, Any],
    rules: ImportRules,
    prompt: str,
    steps: tuple[Any, str],
    verdicts: tuple[Any, str],
) -> TaskRow:
    text, segments = joined_steps(*steps)
    label = steps_label(verdicts[0], rules, verdicts[1], count=len(segments))
    kept = {} if label else {"labels": verdicts[0]}
    return TaskRow(
        messages=answered_messages(values[prompt], prompt),
        responses=(
            ResponseRow(
                text,
                model=identifier(values.get("generator") or "", "generator"),
                segments=segments,
                segment_label=label,
                metadata=metadata_of(kept),
            ),
        ),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {"id", "generator", prompt, steps[1], verdicts[1]})),
        language=language_as_written(values.get("lang") or values.get("language")),
    )


def spans_row(values: dict[str, Any], rules: ImportRules) -> TaskRow:
    """Reads a task whose first response has the spans, kept as its metadata; `alternatives` follow.

    Where the project rates segments, the spans also cut the response, and aspects that are named by their kinds of
    error get labels. Raises BadRow.
    """
    alternatives = values.get("alternatives") or []
    if not isinstance(alternatives, list):
        raise BadRow("alternatives must be a list of texts", "alternatives")
    check_responses(1 + len(alternatives))
    text, metadata = storable_text(values["response"], "response"), metadata_of({"spans": values["spans"]})
    first = ResponseRow(text, metadata=metadata)
    if rules.aspects:
        if not isinstance(values["spans"], list):
            raise BadRow("spans must be a list of objects with aspect, start and end", "spans")
        segments, label = _marked(text, values["spans"], rules)
        first = ResponseRow(text, metadata=metadata, segments=segments, segment_label=label)
    others = [ResponseRow(storable_text(text, f"alternatives[{n}]")) for n, text in enumerate(alternatives)]
    return TaskRow(
        messages=answered_messages(required(values, "prompt"), "prompt"),
        responses=(first, *others),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {"id", "prompt", "response", "spans", "alternatives"})),
        language=language_as_written(values.get("lang") or values.get("language")),
    )
