"""Reads reasoning in steps, each with a verdict: TRL's stepwise supervision, and rows like PRM800K's."""

from collections.abc import Mapping
from typing import Any

from annotator.importing.conversations import answered_messages, rest_of
from annotator.importing.field_checks import BadRow, from_json_cells, identifier, metadata_of, shown, whole_of_cell
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.segment_fields import joined_steps, steps_label
from annotator.importing.sources import RawRow

PROMPTS = ("prompt", "problem", "question")
VERDICTS = ("labels", "ratings")
_CELLS = ("completions", "steps", "label", *VERDICTS)


def is_stepwise(values: Mapping[str, Any]) -> bool:
    asked = any(name in values for name in PROMPTS)
    listed = "completions" in values or "steps" in values
    return asked and listed and any(name in values for name in VERDICTS)


def stepwise_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a response of some steps with a verdict for each: true and false, or 1, 0 and -1. Raises BadRow."""
    if raw.from_csv:
        values = from_json_cells(values, _CELLS)
    prompt = next(name for name in PROMPTS if name in values)
    name = "completions" if "completions" in values else "steps"
    said = next(name for name in VERDICTS if name in values)
    return _row(raw, values, rules, prompt, (values[name], name), (values[said], said))


def is_first_error(values: Mapping[str, Any]) -> bool:
    asked = any(name in values for name in PROMPTS)
    return asked and "steps" in values and type(whole_of_cell(values.get("label"))) is int


def first_error_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads steps with the place of the first wrong one from 0, or -1, as ProcessBench has them. Raises BadRow.

    Nobody has looked at the steps behind the first wrong one.
    """
    if raw.from_csv:
        values = from_json_cells(values, _CELLS)
    prompt, steps, label = next(name for name in PROMPTS if name in values), values["steps"], values["label"]
    count, wrong = len(steps) if isinstance(steps, list) else 0, whole_of_cell(label)
    if not -1 <= wrong < count:
        raise BadRow(f"label is {shown(label)}: it must be the place of one of {count} steps from 0, or -1", "label")
    verdicts = [1] * count if wrong < 0 else [1] * wrong + [-1] + [None] * (count - wrong - 1)
    return _row(raw, values, rules, prompt, (steps, "steps"), (verdicts, "label"))


def is_prm800k(values: Mapping[str, Any]) -> bool:
    question, label = values.get("question"), values.get("label")
    return isinstance(question, dict) and isinstance(label, dict) and isinstance(label.get("steps"), list)


def prm800k_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a problem with the chosen completion of each step, or with a person's own step. Raises BadRow."""
    question, label = values["question"], values["label"]
    chosen = [_chosen(step, f"label.steps[{number}]") for number, step in enumerate(label["steps"])]
    # What nobody has chosen, and the right answer, are kept: raters do not see them.
    flat = {**values, "problem": question.get("problem"), "question": {**question, "problem": ""}}
    texts, verdicts = [text for text, _ in chosen], [verdict for _, verdict in chosen]
    return _row(raw, flat, rules, "problem", (texts, "label.steps"), (verdicts, "label.steps"))


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
    raw: RawRow,
    values: dict[str, Any],
    rules: Rules,
    prompt: str,
    steps: tuple[Any, str],
    verdicts: tuple[Any, str],
) -> TaskRow:
    text, segments = joined_steps(*steps)
    label = steps_label(verdicts[0], rules, verdicts[1], count=len(segments))
    kept = {} if label else {"labels": verdicts[0]}
    return TaskRow(
        line=raw.line,
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
        layout="stepwise",
        size=raw.size,
    )
