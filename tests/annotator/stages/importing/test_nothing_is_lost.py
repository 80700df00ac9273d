"""Nothing of a row is lost: it is shown, or kept where the result names it, or the row is refused."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.results import Notes
from annotator.stages.importing.task_rows import ImportRules, RawRow, Rejected, TaskRow
from tests.builders import ATTRIBUTES

USER = {"role": "user", "content": "Name a prime, please."}
SEVEN, EIGHT = ({"role": "assistant", "content": f"It is {text}."} for text in "78")
SCORES = dict.fromkeys(ATTRIBUTES, 3)
MARK = "a text that stands in no other column"
ROWS: dict[str, dict[str, Any]] = {
    "tasks": {"messages": [USER], "responses": [{"text": "It is 7."}, {"text": "It is 8."}]},
    "prompt and responses": {"prompt": "Name a prime.", "responses": ["It is 7."]},
    "conversation": {"messages": [USER, SEVEN]},
    "ShareGPT": {"conversations": [{"from": "human", "value": "Name a prime."}, {"from": "gpt", "value": "It is 7."}]},
    "tool calls": {
        "messages": [
            USER,
            {"role": "assistant", "content": "I look it up.", "tool_calls": [{"function": {"name": "list_primes"}}]},
            {"role": "tool", "tool_call_id": "c-1", "content": "seven, eleven"},
        ],
        "responses": ["It is 7."],
    },
    "completion": {"prompt": "Name a prime.", "completion": "It is 7."},
    "labels": {"prompt": "Name a prime.", "response": "It is 7.", **SCORES},
    "our labels": {"task": "t-1", "response": "r-1", "prompt": "A?", "text": "It is 7.", "made_at": "now", **SCORES},
    "preference": {"prompt": "Name a prime.", "response_1": "It is 7.", "response_2": "8.", "preference_strength": -2}
    | {"all_preferences_unprocessed": [{"strength": -2, "justification": "Eight is even."}]}
    | {"three_most_similar_preferences": [{"strength": -1, "justification": "Seven is odd."}]},
    "helpsteer3": {"context": [USER], "response1": "It is 7.", "response2": "8.", "overall_preference": -1}
    | {"individual_preference": [{"score": -1, "reasoning": "Eight is even.", "feedback1": "Quite right."}]},
    "feedback": {"context": [USER], "response": "It is 7.", "feedback": ["Quite right."]},
    "pair": {"prompt": "Name a prime.", "chosen": "It is 7.", "rejected": "It is 8."},
    "pair of messages": {"prompt": [USER], "chosen": [SEVEN], "rejected": [EIGHT]},
    "pair of conversations": {"chosen": [USER, SEVEN], "rejected": [USER, EIGHT]},
    "pair of dialogues": {
        "chosen": "\n\nHuman: A?\n\nAssistant: It is 7.",
        "rejected": "\n\nHuman: A?\n\nAssistant: 8.",
    },
    "ShareGPT pair": {
        "conversations": [{"from": "human", "value": "Name a prime."}],
        "chosen": {"from": "gpt", "value": "It is 7."},
        "rejected": {"from": "gpt", "value": "It is 8."},
    },
    "comparison": {"prompt": "Name a prime.", "response_a": "It is 7.", "response_b": "8.", "winner": "model_a"},
    "named winner": {"question": "A?", "answer_0": "It is 7.", "answer_1": "8.", "model_a": "m-1", "model_b": "m-2"}
    | {"winner": "m-2"},
    "arena": {"conversation_a": [USER, SEVEN], "conversation_b": [USER, EIGHT], "winner": "tie", "question_id": "q-1"},
    "judged turn": {
        "conversation_a": [USER, SEVEN, USER, SEVEN],
        "conversation_b": [USER, EIGHT, USER, SEVEN],
        "turn": 1,
    },
    "sources": {"question": {"full_text": "Name a prime.", "dataset": "eli5"}, "answer_0": "It is 7.", "answer_1": "8."}
    | {"quotes_0": {"extract": ["seven is a prime"]}, "score_0": 0.5, "score_1": -0.5},
    "completions": {"instruction": "Name a prime.", "completions": [{"response": "It is 7.", "model": "m-1"}, "8."]}
    | {"models": ["m-1", "m-2"]},
    "completions of turns": {"context": [USER], "completions": [{"completion": [SEVEN, USER, EIGHT], "rank": 0}]},
    "ranked answers": {"prompt": "\n\nHuman: Name three.\n\nAssistant: "}
    | {"answers": [{"answer": f"It is {n}.", "rank": n, "model": f"m-{n}"} for n in (1, 2, 3)]},
    "spans": {"prompt": "A?", "response": "It is 7.", "spans": [{"start": 0, "end": 2, "aspect": "wrong"}]}
    | {"alternatives": ["It is 8."], "corrected": "It is 11."},
    "steps": {"prompt": "1 + 1?", "completions": ["Add them.", "It is 2."], "labels": [True, False]},
    "first error": {"problem": "1 + 1?", "steps": ["Add them.", "It is 3."], "label": 1, "generator": "m-1"},
    "PRM800K": {
        "question": {"problem": "1 + 1?", "ground_truth_answer": "two"},
        "label": {"steps": [{"completions": [{"text": "Add.", "rating": 1}, {"text": "Guess.", "rating": -1}]}]},
    },
    "tree": {
        "message_tree_id": "m-1",
        "prompt": {"role": "prompter", "text": "Name a prime.", "message_id": "m-1"}
        | {"replies": [{"role": "assistant", "text": "It is 7.", "labels": {"quality": "very good"}}]},
    },
    "Label Studio": {"id": 5, "data": {"prompt": "Name a prime.", "response_1": "It is 7."}}
    | {"predictions": [{"model_version": "judge model"}]},
    "Argilla": {"id": "r-1", "fields": {"prompt": "Name a prime.", "response_1": "It is 7."}}
    | {"suggestions": {"helpfulness_1": {"value": 3, "agent": "a model"}}},
    "Potato": {"user_id": "ann", "instance_id": "t-1", "displayed_text": "what ann saw"}
    | {"label_annotations": {key: {"scale_3": "3"} for key in ATTRIBUTES}},
    "unknown": {"utterance": "Name a prime.", "Comments": ["None at all."]},
}
COMPANIONS = ("system", "system_prompt", "input", "context", "passage", "document", "tools", "functions", "instruction")
JUDGEMENTS = ("annotator1", "vote", "winner_text", "preference", "label", "judge", "annotator", "rank", "chosen_score")
OTHERS = (
    "source",
    "split",
    "lang",
    "language",
    "models",
    "model",
    "generator",
    "question",
    "query",
    "answer",
    "history",
)
PLACES = (
    "metadata",
    "id",
    "uid",
    "turn",
    "tokens_0",
    "quotes_0",
    "group",
    "kind",
    "name",
    "images",
)
COLUMNS = (*COMPANIONS, *JUDGEMENTS, *OTHERS, *PLACES)
WORDS = {
    "user",
    "assistant",
    "system",
    "tool",
    "human",
    "gpt",
    "prompter",
    "model_a",
    "tie",
    "now",
    "t-1",
    "q-1",
    "m-2",
}
"""Texts that say what something is, and are read as that. Those of people become hashes."""


RULES = ImportRules(dict.fromkeys(ATTRIBUTES, 5), ties=False)


def read(row: dict[str, Any], **how: Any) -> list[TaskRow | Rejected]:
    return list(read_tasks([RawRow(1, row, **how)], RULES))


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_of(item)


def is_there(text: str, results: list[TaskRow | Rejected]) -> bool:
    notes = Notes()
    for row in results:
        if isinstance(row, Rejected):
            return True
        notes.add(row)
        shown = [turn["content"] for turn in row.messages] + [response.text for response in row.responses]
        named = [turn.get("tool_call_id", "") for turn in row.messages]
        named += [row.external_id, row.language, *(each.external_id + each.model for each in row.responses)]
        said = [each.justification for each in row.annotations] + [each.justification for each in row.preferences]
        people = [each.rater for each in row.annotations]
        if any(text in one or json.dumps(text)[1:-1] in one for one in (*shown, *said, *named, *people)):
            return True
        kept = [*row.metadata.items()] + [(k, v) for one in row.responses for k, v in one.metadata.items()]
        if any(
            text in set(texts_of(value)) and {name, f"responses[].{name}"} & notes.kept.keys() for name, value in kept
        ):
            return True
    return any("is not read" in note.text or "is left out" in note.text for note in notes.sentences())


@pytest.mark.parametrize("name", ROWS)
def test_every_text_of_a_row_is_shown_or_kept_by_name_or_refused(name: str) -> None:
    row = ROWS[name]
    results = read(row)
    assert any(isinstance(result, Rejected) for result in results) == (name == "unknown"), results
    lost = [text for text in texts_of(row) if text not in WORDS and not is_there(text.strip(), results)]
    # A transcript is shown as the turns that it writes out.
    assert [text for text in lost if "Human:" not in text] == []


@pytest.mark.parametrize("name", ROWS)
def test_a_text_in_one_more_column_is_not_lost(name: str) -> None:
    row = ROWS[name]
    lost = [column for column in COLUMNS if column not in row and not is_there(MARK, read({**row, column: MARK}))]
    assert lost == []


OF_LANGUAGES: dict[str, dict[str, Any]] = {
    "Argilla": {"metadata": {"language": "Deutsch"}},
    "Label Studio": {"data": {"prompt": "A?", "response_1": "7", "language": "Deutsch"}},
    "tree": {
        "prompt": {"role": "prompter", "text": "A?", "lang": "Deutsch"}
        | {"replies": [{"role": "assistant", "text": "It is 7."}]}
    },
    "tasks": {"prompt": "A?", "responses": ["7"], "language": "Deutsch"},
    "conversation": {"messages": [USER, SEVEN], "lang": "Deutsch"},
    "flat": {"prompt": "A?", "response": "7", "lang": "Deutsch"},
    "pairs": {"prompt": "A?", "chosen": "7", "rejected": "8", "language": "Deutsch"},
    "HelpSteer3": {"context": [USER], "response1": "7", "response2": "8", "language": "Deutsch"},
    **{name: {"lang": "Deutsch"} for name in ("comparison", "completions", "spans", "steps", "first error", "PRM800K")},
}


@pytest.mark.parametrize("name", OF_LANGUAGES)
def test_a_language_in_words_that_are_not_known_is_told_and_kept(name: str) -> None:
    other = {**ROWS.get(name, {}), **OF_LANGUAGES[name]}
    known = json.loads(json.dumps(other).replace("Deutsch", "German"))
    # Rows of one prompt would be one task.
    again = {**other, "prompt": "B?"} if name == "flat" else other
    rows = list(read_tasks([RawRow(n, row) for n, row in enumerate((other, again, known), 1)], RULES))
    assert {row.language for row in rows if isinstance(row, TaskRow) and row.line < 3} == {""}
    assert [row.language for row in rows if isinstance(row, TaskRow)][-1] == "de"
    notes = Notes()
    for row in rows:
        assert isinstance(row, TaskRow)
        notes.add(row)
    (note,) = (note for note in Notes.from_json(notes.as_json()).sentences() if "not known" in note.text)
    assert (note.line, note.rows, "“Deutsch”." in note.text) == (1, 2, True)
    assert is_there("Deutsch", list(rows[:1]))


def test_of_very_many_languages_the_rest_is_counted_together() -> None:
    notes, whole = Notes(), Notes()
    for number in range(60):
        notes.add(TaskRow([], (), line=number + 1, unknown_language=f"Sprache {number}"))
        whole.add_all(notes)
        notes = Notes()
    (note,) = whole.sentences()
    assert (note.rows, note.text.count("“"), "“Sprache 19”, ..." in note.text) == (60, 20, True)


@pytest.mark.parametrize("column", COMPANIONS[:-1])
def test_what_belongs_to_a_prompt_is_shown_and_tells_tasks_apart(column: str) -> None:
    beside = [name for name, row in ROWS.items() if "prompt" in row and isinstance(row["prompt"], str)]
    for name in beside:
        first, second = (read({**ROWS[name], column: f"{MARK} {number}"}) for number in (1, 2))
        for one, other in zip(first, second, strict=True):
            assert isinstance(one, TaskRow)
            assert isinstance(other, TaskRow)
            assert f"{MARK} 1" in "".join(turn["content"] for turn in one.messages)
            assert one.content_hash != other.content_hash
            assert one.shown == (column,)
