"""Every layout that is read comes back from every format as it went, whatever is in the texts."""

import io
import json
import re
from functools import partial
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from annotator.models import Project, Rating, Response
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.stages.importing import import_rows
from tests.annotator.outputs.exporting.test_rows import AWKWARD, exported, rows
from tests.annotator.segmented import ASPECTS, make_segmented_project
from tests.builders import ATTRIBUTES, NOW, imported, make_project
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
TABLES = ("jsonl", "json", "csv", "parquet")
LISTS = ("jsonl", "json")
COLUMNS: dict[str, tuple[str, ...]] = {
    "helpsteer2": (),
    "disagreements": (),
    "preference": (),
    "helpsteer3": (),
    # By what two responses were told apart is a preference once it is imported.
    "dpo": ("prompt", "chosen", "rejected"),
    "nemo": (),
    # The names of the task and of its response are metadata.
    "helpsteer3_edit": (
        *("domain", "language", "context", "original_response", "edited_response"),
        *("change_summary", "feedback"),
    ),
    "helpsteer2d": (),
    "stepwise": (),
}
OF_SEGMENTS = ("helpsteer2d", "stepwise")
COMES_BACK_AS = {"helpsteer3_edit": "helpsteer3"}
"""An edit is a task of two responses once it is imported, which leaves as it came."""
CASES = [(layout, format) for layout in COLUMNS for format in FORMATS if format in TABLES] + [
    (layout, format) for layout in ("label_studio", "argilla") for format in LISTS
]
CODE = '{\n  "a": [1, 2],\n{"b": "c,d"}\n}'
texts = st.one_of(
    st.sampled_from([*AWKWARD, CODE, f"Look:\n{CODE}", "a,b\n{1}\n"]),
    st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40),
).filter(lambda text: bool(text.strip()) and "<extra_id_" not in text)
levels = st.integers(0, 4)


@st.composite
def rated_tasks(draw: Any) -> list[dict[str, Any]]:
    """Tasks of two responses that three people have rated, compared and explained."""
    prompts = draw(st.lists(texts, min_size=1, max_size=3, unique=True))
    return [
        {
            "prompt": prompt,
            "texts": draw(st.lists(texts, min_size=2, max_size=2, unique=True)),
            "level": draw(levels),
            "votes": [(draw(st.sampled_from([-3, -2, -1])), draw(texts)) for _ in range(3)],
            "edit": (draw(texts), draw(st.one_of(st.just(""), texts)), draw(st.one_of(st.just(""), texts))),
            # Steps without a space between them leave without it, and come back on lines of their own.
            "segments": [f"{part} " for part in draw(st.lists(texts, min_size=1, max_size=3))],
        }
        for prompt in prompts
    ]


def stored(project: Project, tasks: list[dict[str, Any]]) -> None:
    """Imports them by the layouts in which such things come: ratings of both responses, then preferences."""
    ratings = (
        {"prompt": task["prompt"], "response": text, **{key: [min(task["level"] + place, 4)] * 3 for key in ATTRIBUTES}}
        for task in tasks
        for place, text in enumerate(task["texts"])
    )
    assert imported(project, *ratings).rejected == []
    votes = (
        {
            "prompt": task["prompt"],
            "response_1": task["texts"][0],
            "response_2": task["texts"][1],
            "preference_strength": -1,
            "all_preferences_unprocessed": [{"strength": one, "justification": why} for one, why in task["votes"]],
        }
        for task in tasks
    )
    imported(project, *votes)


def edited(project: Project, tasks: list[dict[str, Any]]) -> None:
    """Has the first rater of each task write a better version of the first response."""
    for task in tasks:
        text, summary, feedback = task["edit"]
        response = Response.objects.filter(task__project=project, text=task["texts"][0], position=0)
        rating = Rating.objects.filter(response__in=response, edit="").order_by("pk").first()
        assert rating
        values = {"edit": f"{text} Better.", "edit_summary": summary, "feedback": feedback}
        Rating.objects.filter(pk=rating.pk).update(**values)


def segmented(project: Project, tasks: list[dict[str, Any]]) -> None:
    """Imports labels of segments; none of those of the aspect that decides is missing."""
    for task in tasks:
        ends = list(accumulate(map(len, task["segments"])))
        levels = [(task["level"] + place) % 5 for place in range(len(ends))]
        lists = {aspect: levels if aspect == ASPECTS[0] else [None, *levels[1:]] for aspect in ASPECTS}
        ranges = [[end - len(part), end] for end, part in zip(ends, task["segments"], strict=True)]
        row = {"prompt": task["prompt"], "response": "".join(task["segments"]), "segments": ranges, **lists}
        assert imported(project, row).rejected == []


def told(project: Project, layout: str, columns: tuple[str, ...]) -> list[str]:
    chosen = ({name: row.get(name) or None for name in columns or row} for row in rows(project, layout))
    # A rater has another pseudonym in each project.
    return sorted(re.sub(r"\br-[0-9a-f]{10}\b", "r", json.dumps(row, sort_keys=True)) for row in chosen)


@pytest.mark.parametrize(("layout", "format"), CASES)
@settings(
    max_examples=3,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tasks=rated_tasks())
def test_what_is_written_is_read_back_equal(
    db: None, cast: Cast, layout: str, format: str, tasks: list[dict[str, Any]]
) -> None:
    Project.objects.filter(slug__in=["from", "to"]).delete()
    make = make_segmented_project if layout in OF_SEGMENTS else partial(make_project, ask_preference=True)
    project, copy = make("from"), make("to")
    (segmented if layout in OF_SEGMENTS else stored)(project, tasks)
    if layout == "helpsteer3_edit":
        edited(project, tasks)
    went = told(project, layout, COLUMNS.get(layout, ()))
    assert len(went) >= len(tasks)
    back = import_rows(copy, io.BytesIO(exported(project, layout, format)), now=NOW)
    assert back.rejected == []
    assert told(copy, COMES_BACK_AS.get(layout, layout), COLUMNS.get(layout, ())) == went
