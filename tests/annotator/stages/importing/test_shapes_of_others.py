"""Rows as public data sets and other tools write them: what each becomes, and what the result says of it."""

import io
import json
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory

from annotator.models import Annotation, Project, Task
from annotator.outputs.exporting.export_rows import export
from annotator.stages.importing import UnreadableFile, import_rows
from annotator.stages.importing.conversations import Message
from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.results import Notes
from annotator.stages.importing.sources import read_rows
from annotator.stages.importing.task_rows import ImportRules, RawRow, Rejected, TaskRow
from tests.builders import ATTRIBUTES, NOW, imported, label_row, task_row
from tests.servers import ROOT

CASES = ROOT.parent / "shared" / "cases"
USER = {"role": "user", "content": "Name a prime."}
SEVEN, EIGHT = ({"role": "assistant", "content": text} for text in "78")
PAIR = {"prompt": "Name a prime.", "response_a": "7", "response_b": "8"}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def answer(text: str) -> Message:
    return {"role": "assistant", "content": text}


def read(*rows: dict[str, Any], ties: bool = False, from_csv: bool = False) -> list[TaskRow | Rejected]:
    raw = [RawRow(number, row, from_csv=from_csv) for number, row in enumerate(rows, 1)]
    return list(read_tasks(raw, ImportRules(dict.fromkeys(ATTRIBUTES, 5), ties, {"right": 2}, "right")))


def accepted(row: dict[str, Any], **how: Any) -> TaskRow:
    (result,) = read(row, **how)
    assert isinstance(result, TaskRow), result
    return result


def refused(row: dict[str, Any]) -> Rejected:
    (result,) = read(row)
    assert isinstance(result, Rejected), result
    return result


def texts(task: TaskRow) -> list[str]:
    return [response.text for response in task.responses]


def told(*rows: TaskRow) -> str:
    notes = Notes()
    for row in rows:
        notes.add(row)
    return " ".join(note.text for note in notes.sentences())


def from_bytes(project: Project, data: bytes, **how: Any) -> Any:
    return import_rows(project, io.BytesIO(data), now=NOW, **how)


# What belongs to the prompt --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"instruction": "Sum up.", "input": "A text.", "output_1": "a", "output_2": "b"},
         [user("Sum up.\n\nA text.")]),
        ({"system": "Be brief.", **PAIR}, [{"role": "system", "content": "Be brief."}, USER]),
        ({"system": "Be brief.", "messages": [USER, SEVEN]}, [{"role": "system", "content": "Be brief."}, USER]),
        ({"tools": [{"name": "f"}], "messages": [USER, SEVEN]},
         [{"role": "system", "content": '```json\n[\n  {\n    "name": "f"\n  }\n]\n```'}, USER]),
        ({"history": [["Hi", "Hello"]], **PAIR}, [user("Hi"), answer("Hello"), USER]),
        ({"context": "A text.", "prompt": "Sum up.", "response": "a"}, [user("Sum up.\n\nA text.")]),
        ({"input": "Name a prime.", "output_1": "7", "output_2": "8"}, [USER]),
        ({"input": "Name a prime.", "chosen": "7", "rejected": "8"}, [USER]),
        ({"input": "", **PAIR}, [USER]),
        ({"metadata": {"input": "kept"}, "messages": [USER], "responses": ["7"]}, [USER]),
    ],
)  # fmt: skip
def test_what_stands_beside_a_prompt_is_shown(row: dict[str, Any], messages: list[Message]) -> None:
    assert accepted(row).messages == messages


def test_rows_that_differ_in_what_is_shown_are_tasks_of_their_own(project: Project) -> None:
    rows = [{"instruction": "Right?", "input": text, "response1": "Yes", "response2": "No"} for text in ("a b", "c d")]
    result = imported(project, *rows)
    assert (result.created, result.existing, result.rejected) == (2, 0, [])
    assert [note.text for note in result.notes] == ["Shown as part of the prompt: input."]
    assert imported(project, *rows).existing == 2


def test_tasks_without_companions_keep_the_hash_that_is_stored() -> None:
    stored = "3cb53b97a9772176e6227f011f6512481ac6853524d24225229c515bd87acd7a"
    assert accepted(PAIR).content_hash == accepted({"messages": [USER], "responses": ["7", "8"]}).content_hash == stored


# Pairs -----------------------------------------------------------------------------------------------------

TWO = [answer("Number?"), user("17")]


@pytest.mark.parametrize(
    ("row", "messages", "responses"),
    [
        ({"prompt": "Write a dialogue.", "chosen": "Human: Hi!\n\nAssistant: Hello!",
          "rejected": "Human: Hi!\n\nAssistant: No."},
         [user("Write a dialogue.")], ["Human: Hi!\n\nAssistant: Hello!", "Human: Hi!\n\nAssistant: No."]),
        ({"prompt": [USER], "chosen": [*TWO, answer("a")], "rejected": [*TWO, answer("b")]}, [USER, *TWO], ["a", "b"]),
        ({"prompt": [{"role": "system", "content": "Be terse."}], "chosen": [USER, SEVEN], "rejected": [USER, EIGHT]},
         [{"role": "system", "content": "Be terse."}, USER], ["7", "8"]),
        ({"prompt": "You are a pirate.", "chosen": [USER, SEVEN], "rejected": [USER, EIGHT]},
         [{"role": "system", "content": "You are a pirate."}, USER], ["7", "8"]),
        ({"chosen": [USER, SEVEN, user("Sure?"), answer("Yes.")],
          "rejected": [USER, EIGHT, user("Sure?"), answer("No.")]},
         [USER], ["7\n\n**User:** Sure?\n\n**Assistant:** Yes.", "8\n\n**User:** Sure?\n\n**Assistant:** No."]),
        ({"prompt": "Human: Hi\n\nAssistant: Hello\n\nSum this up.", "chosen": "7", "rejected": "8"},
         [user("Human: Hi\n\nAssistant: Hello\n\nSum this up.")], ["7", "8"]),
        ({"prompt": "\n\nHuman: Name a prime.\n\nAssistant:", "chosen": "7", "rejected": "8"}, [USER], ["7", "8"]),
        ({"conversations": [{"from": "human", "value": "Name a prime."}], "chosen": {"from": "gpt", "value": "7"},
          "rejected": {"from": "gpt", "value": "8"}}, [USER], ["7", "8"]),
        ({"question": "Name a prime.", "chosen": "7", "rejected": "8"}, [USER], ["7", "8"]),
    ],
)  # fmt: skip
def test_nothing_of_a_pair_is_dropped(row: dict[str, Any], messages: list[Message], responses: list[str]) -> None:
    task = accepted(row)
    assert (task.messages, texts(task), task.preference) == (messages, responses, -1)


def test_two_equal_responses_are_said(project: Project) -> None:
    (note,) = imported(project, {"prompt": "A?", "chosen": "7", "rejected": "7"}, task_row("t")).notes
    assert (note.line, note.rows) == (1, 1)
    assert note.text.startswith("Both responses are the same.")


# Votes, ties, ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "preference"),
    [
        ({"label": "A>B"}, -1),
        ({"label": "[[B>>A]]"}, 1),
        ({"label": "B<A"}, -1),
        ({"score_0": 0.25, "score_1": -0.25}, -1),
        ({"score_0": -1, "score_1": 1}, 1),
        ({"model_a": "m", "model_b": "n", "winner": "n"}, 1),
        ({"better_response_id": 1.0}, 1),
        ({"winner_model_a": 1.0}, -1),
    ],
)
def test_votes_are_read_as_others_write_them(more: dict[str, Any], preference: int) -> None:
    assert accepted({**PAIR, **more}).preference == preference


@pytest.mark.parametrize(
    "row",
    [
        {**PAIR, "winner": "tie"},
        {**PAIR, "winner_tie": 1},
        {**PAIR, "label": "A=B"},
        {"prompt": "A?", "response_1": "7", "response_2": "8", "preference_strength": 0},
    ],
)
def test_a_tie_is_a_preference_where_ties_are_allowed_and_else_kept_by_name(row: dict[str, Any]) -> None:
    assert accepted(row, ties=True).preference == 0
    task = accepted(row)
    assert task.preference is None
    assert list(task.metadata) == list(row)[3:]
    assert list(row)[3] in told(task)


@pytest.mark.parametrize("column", ["annotator1", "preference", "label", "human_vote", "score_chosen", "gpt4_rating"])
def test_judgements_that_are_not_read_are_named(column: str) -> None:
    assert f"none was read from them; they are kept as metadata: {column}." in told(accepted({**PAIR, column: 2}))


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_a_column_that_is_empty_is_not_worth_a_word(nothing: object) -> None:
    assert "predictions" not in told(accepted({**PAIR, "predictions": nothing}))
    assert "predictions" in told(accepted({**PAIR, "predictions": 0}))


def test_long_texts_that_nobody_sees_are_named() -> None:
    assert "long texts, which annotators do not see; they are kept as metadata: story." in told(
        accepted({**PAIR, "story": "Once upon a time. " * 20, "split": "train"})
    )


RANKED = [{"text": f"It is {n}.", "rank": rank} for n, rank in enumerate((2.0, 1.0, 2.0))]


def test_ranks_of_three_are_an_imported_ranking(project: Project) -> None:
    result = imported(project, {"prompt": "Name a prime.", "completions": RANKED})
    assert (result.created, result.rejected) == (1, [])
    responses = list(Task.objects.get().responses.order_by("position").values_list("pk", flat=True))
    first, second, third = responses
    assert Annotation.objects.get().ranking == [[second], [first, third]]
    (left,) = map(json.loads, b"".join(export(project, layout="nemo", format="jsonl")).splitlines())
    texts = [(one["rank"], one["completion"][0]["content"]) for one in left["completions"]]
    assert sorted(texts) == [(0, "It is 1."), (1, "It is 0."), (1, "It is 2.")]


def message(role: str, text: str, *replies: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"message_id": text, "role": role, "text": text, "lang": "en", "replies": list(replies), **more}


def test_every_question_of_a_tree_is_a_task() -> None:
    more = message("prompter", "And?", message("assistant", "11", rank=1), message("assistant", "9", rank=0))
    root = message(
        "prompter", "Name a prime.", message("assistant", "7", more, rank=0), message("assistant", "8", rank=1)
    )
    first, second = read({"message_tree_id": "m-1", "tree_state": "ready", "prompt": root})
    assert isinstance(first, TaskRow)
    assert isinstance(second, TaskRow)
    assert (first.messages, texts(first), first.preference) == ([USER], ["7", "8"], -1)
    assert (second.messages, texts(second), second.preference) == ([USER, SEVEN, user("And?")], ["11", "9"], 1)
    assert (second.external_id, second.metadata["message_tree_id"], second.language) == ("And?", "m-1", "en")


# Ids that repeat -------------------------------------------------------------------------------------------


def arena(first: str, second: str, **more: Any) -> dict[str, Any]:
    return {"question_id": 81, "model_a": first, "model_b": second, "winner": "model_a", "judge": "j"} | {
        "conversation_a": [USER, answer(first), user("And?"), answer(f"{first} too")],
        "conversation_b": [USER, answer(second), user("And?"), answer(f"{second} too")],
    } | more  # fmt: skip


def test_an_id_of_a_question_stands_for_all_pairs_of_answers(project: Project) -> None:
    rows = [arena("7", "8", turn=1), arena("7", "9", turn=1), arena("8", "9", turn=1), arena("7", "8", turn=2)]
    result = imported(project, *rows)
    assert (result.created, result.existing, result.rejected) == (4, 0, [])
    assert {task.metadata["question_id"] for task in Task.objects.all()} == {81}
    assert Annotation.objects.count() == 4
    again = imported(project, *reversed(rows))
    assert (again.created, again.existing, again.rejected) == (0, 4, [])


def test_a_judged_turn_ends_the_conversations_and_the_later_ones_stay() -> None:
    task = accepted(arena("7", "8", turn=1))
    assert (texts(task), task.metadata["conversation_a_later"]) == (["7", "8"], [user("And?"), answer("7 too")])


# Steps -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "levels"), [(-1, [1, 1, 1]), (0, [0, None, None]), (1, [1, 0, None]), (2.0, [1, 1, 0])]
)
def test_the_first_wrong_step_says_what_the_steps_before_it_are(label: float, levels: list[int | None]) -> None:
    task = accepted({"problem": "1 + 1?", "steps": ["Add.", "It is 3.", "Done."], "label": label, "generator": "m"})
    (response,) = task.responses
    assert response.segment_label is not None
    assert [score for (score,) in response.segment_label.scores] == levels
    assert response.model == "m"


def test_a_step_that_is_not_there_is_refused() -> None:
    assert refused({"problem": "1 + 1?", "steps": ["Add."], "label": 1}).error.startswith("label is 1: it must be")


# Tools, parts, empty turns ---------------------------------------------------------------------------------

CALLS = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}}]
CALLED = {"role": "assistant", "content": json.dumps(CALLS), "kind": "tool_calls"}
ANSWERED = {"role": "tool", "content": "sunny", "tool_call_id": "c1"}


@pytest.mark.parametrize("content", [None, "", "I look it up."])
def test_a_call_of_a_tool_is_a_turn_of_its_own(content: str | None) -> None:
    asked = [USER, {"role": "assistant", "content": content, "tool_calls": CALLS}, ANSWERED]
    said = [answer(content)] if content else []
    assert accepted({"messages": asked, "responses": ["7"]}).messages == [USER, *said, CALLED, ANSWERED]


def test_calls_are_shown_with_their_names_and_arguments(rf: RequestFactory) -> None:
    turns = [USER, CALLED, {**ANSWERED, "name": "weather"}]
    page = render_to_string("_turns.html", {"conversation": turns, "request": rf.get("/")})
    assert page.count("<article") == 3
    assert all(text in page for text in ("Tool call", "Tool result", "<summary><code>weather</code></summary>"))
    assert "&quot;city&quot;: &quot;Ulm&quot;" in page
    source = render_to_string("_turns.html", {"conversation": turns, "request": rf.get("/?raw=1")})
    assert "<summary>" not in source


@pytest.mark.parametrize(
    "calls", [{"content": "I look.", "tool_calls": CALLS}, {"content": None, "function_call": {"name": "f"}}]
)
def test_calls_are_exported_as_they_came(project: Project, calls: dict[str, Any]) -> None:
    prompt = [USER, {"role": "assistant", **calls}, ANSWERED]
    imported(project, {"prompt": prompt, "chosen": [SEVEN], "rejected": [EIGHT]})
    (row,) = map(json.loads, b"".join(export(project, layout="dpo", format="jsonl")).splitlines())
    assert row["prompt"] == prompt
    again = imported(project, row)
    assert (again.created, again.existing, again.rejected) == (0, 1, [])
    import pyarrow.parquet

    (table,) = pyarrow.parquet.read_table(
        io.BytesIO(b"".join(export(project, layout="dpo", format="parquet")))
    ).to_pylist()
    assert all(str(value)[:5] in table["prompt"][1]["content"] for value in calls.values() if isinstance(value, str))
    assert json.dumps(calls.get("tool_calls") or calls["function_call"]) in table["prompt"][1]["content"]


def test_a_tool_that_nobody_called_is_refused() -> None:
    error = refused({"messages": [ANSWERED], "responses": ["7"]}).error
    assert error == "messages[0].role is 'tool': the assistant must have called a tool before"


def test_parts_may_have_their_text_as_value() -> None:
    parts = [{"type": "text", "value": "Name a "}, {"type": "text", "text": "prime."}]
    assert accepted({"messages": [{"role": "user", "content": parts}, SEVEN]}).messages == [USER]


@pytest.mark.parametrize("content", ["", " ", None])
def test_an_empty_system_message_is_left_out(content: str | None) -> None:
    system = {"role": "system", "content": content}
    assert accepted({"messages": [system, USER], "responses": ["7"]}).messages == [USER]


@pytest.mark.parametrize("column", ["images", "image", "video", "audio"])
def test_images_in_a_column_are_refused(column: str) -> None:
    wrong = refused({"messages": [user("<image>Who are they?"), SEVEN], column: ["x.jpg"]})
    assert (wrong.field, column in wrong.error) == (column, True)


# Numbers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("from_csv", [False, True])
def test_a_whole_number_may_be_written_with_a_point(from_csv: bool) -> None:
    level: Any = "4.0" if from_csv else 4.0
    task = accepted(label_row("p", "a", **dict.fromkeys(ATTRIBUTES, level)), from_csv=from_csv)
    assert task.responses[0].label == dict.fromkeys(ATTRIBUTES, 4)
    lists: Any = "[4.0, 2.0]" if from_csv else [4.0, 2.0]
    rated = accepted(label_row("p", "a", **dict.fromkeys(ATTRIBUTES, lists)), from_csv=from_csv)
    assert [rating["verbosity"] for rating in rated.responses[0].ratings] == [4, 2]
    row = {"prompt": "p", "response_1": "a", "response_2": "b", "preference_strength": -2.0}
    assert accepted(row).preference == -2
    table = [
        {"item_id": 7.0, "rater_id": 3.0, "attribute": name, "value": level, "response": 1.0} for name in ATTRIBUTES
    ]
    (merged,) = read(*table, from_csv=from_csv)
    assert isinstance(merged, TaskRow)
    assert (merged.external_id, merged.annotations[0].ratings) == ("7", {0: dict.fromkeys(ATTRIBUTES, 3)})


def test_a_number_that_json_cannot_say_is_kept_as_null(project: Project) -> None:
    row = b'{"id": "n", "messages": [{"role": "user", "content": "x"}], "responses": ["a"], "perplexity": NaN}\n'
    for data in (row, b"[" + row.strip() + b"]"):
        result = from_bytes(project, data)
        assert result.rejected == []
        assert "A number that JSON cannot say" in result.notes[0].text
    assert Task.objects.get().metadata == {"perplexity": None}


# Files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["question", "prompt"])
def test_code_in_the_cells_of_a_table_makes_it_no_json_lines(name: str) -> None:
    data = f'{name},answer_a,answer_b\nWrite.,"Here:\n{{\n  ""a"": 1\n}}\n{{""b"": 2}}",No.\n"Two\n{{""c"": 3}}",7,8\n'
    first, second = read_rows(io.BytesIO(data.encode()))
    assert first.values == {name: "Write.", "answer_a": 'Here:\n{\n  "a": 1\n}\n{"b": 2}', "answer_b": "No."}
    assert (second.line, second.values) == (7, {name: 'Two\n{"c": 3}', "answer_a": "7", "answer_b": "8"})


def test_empty_cells_at_the_end_of_a_row_may_be_left_out() -> None:
    assert [row.values for row in read_rows(io.BytesIO(b"a,b,c\n1\n1,2\n"))] == [
        {"a": "1", "b": "", "c": ""},
        {"a": "1", "b": "2", "c": ""},
    ]


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"prompt,response,response\na,b,c\n", "names 'response' more than once"),
        ("prompt;answer\nKöln?;Ja – nein\n".encode("cp1252"), "looks like Windows-1252"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused_once(data: bytes, error: str) -> None:
    with pytest.raises(UnreadableFile, match=error):
        list(read_rows(io.BytesIO(data)))


def test_potato_s_file_of_one_person_is_theirs_by_its_folder(project: Project) -> None:
    labels = {key: {"scale_3": "3"} for key in ATTRIBUTES}
    row = json.dumps({"id": "t-1", "displayed_text": "shown", "label_annotations": labels}).encode()
    imported(project, task_row("t-1", responses=1))
    (nobody,) = from_bytes(project, row).rejected
    assert nobody.field == "user_id"
    for person in ("ann", "bea"):
        result = from_bytes(project, row, file_name=f"annotation_output/{person}/annotated_instances.jsonl")
        assert (result.rejected, result.existing) == ([], 1)
        assert "The column displayed_text is not read" in result.notes[0].text
    assert Annotation.objects.count() == 2


def test_our_labels_come_back_as_texts_with_their_labels() -> None:
    row = {"task": "t", "response": "a", "prompt": "Name a prime.", "text": "7", "made_at": "2026-01-01", "source": "x"}
    task = accepted({**row, **dict.fromkeys(ATTRIBUTES, 3)})
    (response,) = task.responses
    assert (response.text, response.external_id, response.label["verbosity"]) == ("7", "a", 3)


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"id": 1, "text": "How?", "label": ["question"]}, "the row has id, text, label. A task needs a prompt and"),
        ({"prompt": "How?", "reply": "So."}, "the field response is missing: the row has prompt, reply."),
        ({"context": "A text.", "response1": "a", "response2": "b"}, "the field prompt is missing"),
    ],
)
def test_a_row_of_no_known_shape_says_what_is_there_and_what_is_needed(row: dict[str, Any], error: str) -> None:
    assert error in refused(row).error


# The result ------------------------------------------------------------------------------------------------


def test_a_dry_run_says_the_same_as_the_import(project: Project) -> None:
    rows = [{**PAIR, "annotator1": 1, "input": "Below 9."}, {"prompt": "A?", "chosen": "7", "rejected": "7"}]
    dry, real = (imported(project, *rows, dry_run=dry_run) for dry_run in (True, False))
    assert dry.notes == real.notes
    assert len(real.notes) == 3


def test_metadata_of_a_row_that_repeats_a_task_is_not_lost_in_silence(project: Project) -> None:
    rows = [{**PAIR, "split": "train"}, {**PAIR, "split": "test"}]
    for count, result in (
        (1, imported(project, *rows)),
        (1, imported(project, rows[1])),
        (0, imported(project, rows[0])),
    ):
        texts = [note.text for note in result.notes if "other metadata" in note.text]
        assert len(texts) == count
    assert Task.objects.get().metadata == {"split": "train"}


NEW = {
    "tool_calls.jsonl": (1, 0, 0),
    "identical_pair.jsonl": (2, 0, 0),
    "message_tree.jsonl": (2, 0, 0),
    "ranked_answers.jsonl": (1, 0, 0),
    "first_error_step.jsonl": (2, 0, 0),
    "comparison_with_sources.jsonl": (1, 0, 0),
    "text_with_labels.jsonl": (0, 0, 1),
    "nan_in_metadata.jsonl": (1, 0, 0),
    "empty_system.jsonl": (1, 0, 0),
    "prompt_thrown_away.jsonl": (4, 0, 0),
    "input_beside.jsonl": (2, 0, 0),
    "one_question_many_pairs.jsonl": (4, 0, 0),
    "code_in_cells.csv": (2, 0, 0),
    "image_in_a_column.jsonl": (0, 0, 1),
    "label_of_a_pair.jsonl": (2, 0, 0),
    "votes_of_three.json": (1, 0, 0),
    "transcript_in_prompt.jsonl": (2, 0, 0),
    "parts_with_value.jsonl": (1, 0, 0),
    "input_and_outputs.json": (1, 0, 0),
    "alpaca_eval_preference.json": (1, 0, 0),
}


@pytest.mark.skipif(not CASES.is_dir(), reason="the folder of cases is not there")
def test_the_cases_after_public_reports_go_in(project: Project) -> None:
    for name, counts in NEW.items():
        result = from_bytes(project, (CASES / name).read_bytes(), dry_run=True)
        assert (name, result.created, result.existing, result.rejected_total) == (name, *counts)
    with pytest.raises(UnreadableFile, match="Windows-1252"):
        from_bytes(project, (CASES / "windows_1252.csv").read_bytes())
