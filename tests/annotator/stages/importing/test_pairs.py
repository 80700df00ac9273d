"""Pairs of a chosen and a rejected response, in the forms that people have."""

import gzip
import io
import json
from typing import Any

import pytest

from annotator.models import Project, Task
from annotator.outputs.exporting.export_rows import export
from annotator.stages.importing import import_rows
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.builders import NOW, imported
from tests.conftest import Cast
from tests.shared_data import needs_shared, shared

USER = {"role": "user", "content": "Name a prime."}
SEVEN, EIGHT = ({"role": "assistant", "content": text} for text in "78")


def texts(task: Task) -> list[str]:
    return [response.text for response in task.responses.order_by("position")]


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Name a prime.", "chosen": "7", "rejected": "8"},
        {"prompt": [USER], "chosen": [SEVEN], "rejected": [EIGHT]},
        {"chosen": [USER, SEVEN], "rejected": [USER, EIGHT]},
        {"prompt": "Name a prime.", "chosen": [USER, SEVEN], "rejected": [USER, EIGHT]},
        {"prompt": "Human: Name a prime.", "chosen": "7", "rejected": "8"},
        {
            "chosen": "\n\nHuman: Name a prime.\n\nAssistant: 7",
            "rejected": "\n\nHuman: Name a prime.\n\nAssistant: 8",
        },
    ],
    ids=["texts", "messages", "implicit", "UltraFeedback", "HH with a prompt", "HH"],
)
def test_every_form_makes_the_same_task(project: Project, row: dict[str, Any]) -> None:
    result = imported(project, row)
    assert (result.rejected, result.layouts) == ([], {"pairs"})
    task = Task.objects.get()
    assert task.conversation == [USER]
    assert texts(task) == ["7", "8"]
    assert task.imported_preference == -1


def test_a_dialogue_keeps_its_turns(project: Project) -> None:
    imported(project, {"prompt": "Human: Hi!\n\nAssistant: Hello.\n\nHuman: A prime?", "chosen": "7", "rejected": "8"})
    roles = [message["role"] for message in Task.objects.get().conversation]
    assert roles == ["user", "assistant", "user"]


def test_the_rest_is_kept_as_metadata(project: Project) -> None:
    imported(project, {"id": "p-1", "prompt": "A prime?", "chosen": "7", "rejected": "8", "score_chosen": 9.5})
    task = Task.objects.get()
    assert (task.external_id, task.metadata) == ("p-1", {"score_chosen": 9.5})


@pytest.mark.parametrize(
    ("row", "field", "error"),
    [
        ({"prompt": "A?", "chosen": "7"}, "rejected", "the field rejected is missing"),
        ({"chosen": "7", "rejected": "8"}, "prompt", "the field prompt is missing"),
        ({"prompt": "A?", "chosen": "", "rejected": "8"}, "chosen", "chosen"),
        ({"chosen": [USER], "rejected": [USER]}, "chosen", "must end with the assistant"),
        ({"chosen": [USER, SEVEN], "rejected": [SEVEN, EIGHT]}, "rejected", "must begin with the same message"),
        ({"prompt": [USER, SEVEN], "chosen": [SEVEN], "rejected": [EIGHT]}, "prompt", "must be the user"),
        ({"prompt": "Human: A?\n\nAssistant: B.", "chosen": "7", "rejected": "8"}, "prompt", "must be the user"),
        ({"prompt": "A?", "chosen": [{"role": "poet", "content": "7"}], "rejected": "8"}, "chosen[0].role", "poet"),
        ({"prompt": 5, "chosen": "7", "rejected": "8"}, "prompt", "prompt is 5"),
        ({"prompt": "A?", "chosen": "7", "rejected": "8", "by": "preference", "margin": 9}, "margin", "1, 2 or 3"),
    ],
)
def test_a_bad_row_is_refused_with_its_field(project: Project, row: dict[str, Any], field: str, error: str) -> None:
    (refused,) = imported(project, row).rejected
    assert refused.field == field
    assert error in refused.error


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_what_trl_reads_comes_back(project: Project, cast: Cast, format: str) -> None:
    preferred(project, cast, 2, 2, 2, name="one")
    file = b"".join(export(project, layout="dpo", format=format))
    other = Project.objects.create(slug="other", name="Other", rubric=project.rubric)
    result = import_rows(other, io.BufferedReader(io.BytesIO(file)), now=NOW)
    assert result.rejected == []
    task = Task.objects.get(project=other)
    assert task.conversation == Task.objects.get(project=project).conversation
    assert texts(task) == ["Answer 1 to one.", "Answer 0 to one."]
    assert task.imported_preference == -2


@needs_shared("hh_pairs_dev.jsonl.gz")
def test_anthropic_s_pairs_go_in_as_they_are(project: Project) -> None:
    """Of real pairs; most prompts have several turns."""
    with gzip.open(shared("hh_pairs_dev.jsonl.gz")) as file:
        lines = [json.loads(line) for line, _ in zip(file, range(200), strict=False)]
    result = imported(project, *lines)
    empty = [refused.field for refused in result.rejected if "is empty" in refused.error]
    assert (empty, len(result.rejected), result.created) == (["chosen"], 1, 199)  # one of them is empty indeed
    assert {task.conversation[-1]["role"] for task in Task.objects.all()} == {"user"}


# CSV of other separators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_columns_are_separated_by_what_the_header_has(project: Project, separator: str) -> None:
    rows = [["prompt", "chosen", "rejected"], ["A prime, or two?", '"7; or 5"', "8"]]
    cells = [[f'"{cell.replace(chr(34), 2 * chr(34))}"' for cell in row] for row in rows]
    file = "".join(f"{separator.join(row)}\r\n" for row in cells).encode("utf-8-sig")
    result = import_rows(project, io.BufferedReader(io.BytesIO(file)), now=NOW)
    assert result.rejected == []
    assert texts(Task.objects.get()) == ['"7; or 5"', "8"]
