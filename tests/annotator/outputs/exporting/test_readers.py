"""Exports as the tools read them that people take them to, each in an environment of its own (READERS=FOLDER)."""

import json
from pathlib import Path
from typing import Any

import pytest

from annotator.models import Project, Rating, Response
from annotator.outputs.exporting.export_rows import export
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.sources import read_rows
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, TaskRow
from rewards.models import Score
from tests.annotator.outputs.exporting.test_helpsteer3 import CONFIGURATIONS
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.annotator.segmented import make_segmented_project, make_segmented_task, rate_segments
from tests.builders import ATTRIBUTES, imported, make_member, make_task, rate
from tests.conftest import Cast
from tests.environments import needs_readers, python_with, said_by, trl
from tests.rewards.scored import make_model

pytestmark = [needs_readers, pytest.mark.slow, pytest.mark.xdist_group("readers")]
TASKS = 4


@pytest.fixture
def rated(project: Project, cast: Cast) -> Project:
    for number in range(TASKS):
        preferred(project, cast, 2, 2, 2, level=[1, 3], name=f"t-{number}", prompt=f'=1+{number}, "or\nnot"?')
    Rating.objects.update(feedback="=Right", edit='A "better",\none', edit_summary="It is longer.")
    project.refresh_from_db()
    return project


@pytest.fixture
def ranked_and_scored(rated: Project, cast: Cast) -> Project:
    for number in range(TASKS):
        first, second, third = make_task(rated, f"ranked-{number}", responses=3).responses.all()
        for user in cast.annotators:
            rate(rated, user, ranking=[[first.pk], [second.pk, third.pk]])
    champion = make_model(rated, is_champion=True)
    for response in Response.objects.filter(task__project=rated):
        scores = dict.fromkeys(ATTRIBUTES, 1.5)
        Score.objects.create(reward_model=champion, response=response, scores=scores, reward=2.5)
    return rated


@pytest.fixture
def segmented(cast: Cast) -> Project:
    project = make_segmented_project("spans")
    for number in range(TASKS):
        make_segmented_task(project, f"t-{number}", prompt=f'=1+{number}, "or\nnot"?')
    for user, level in zip(cast.annotators, (4, 3, 4), strict=True):
        make_member(project, user)
        for _ in range(TASKS):
            rate_segments(project, user, [level, 1, 2])
    return project


def written(project: Project, folder: Path, layout: str, format: str) -> Path:
    file = folder / f"{layout}.{format}"
    file.write_bytes(b"".join(export(project, layout=layout, format=format)))
    return file


FLAT = ("helpsteer2", "labels", "preference", "wide")
"""Layouts without objects in cells, of which CSV makes columns."""
PANDAS = """
import json, sys
import pandas
csv, parquet = pandas.read_csv(sys.argv[1], keep_default_na=False), pandas.read_parquet(sys.argv[2])
shown = {"columns": list(csv.columns) == list(parquet.columns), "rows": len(csv) == len(parquet), "unlike": []}
for name in parquet.columns:
    if parquet[name].map(lambda value: isinstance(value, str)).all():
        whole = csv[name].astype(str).str.replace(r"^'(?='*[=+@\\t\\r-])", "", regex=True)
        shown["unlike"] += [] if (whole == parquet[name]).all() else [name]
    elif parquet[name].dtype.kind in "if" and not parquet[name].isna().any():
        shown["unlike"] += [] if (csv[name].astype(float) == parquet[name].astype(float)).all() else [name]
print(json.dumps(shown))
"""


@pytest.mark.parametrize("layout", FLAT)
def test_pandas_reads_csv_and_parquet_alike(rated: Project, tmp_path: Path, layout: str) -> None:
    python = python_with("pandas", "pandas", "pyarrow")
    files = [written(rated, tmp_path, layout, format) for format in ("csv", "parquet")]
    assert json.loads(said_by(python, PANDAS, *files)) == {"columns": True, "rows": True, "unlike": []}


DATASETS = """
import json, sys
from datasets import load_dataset
loaded = [load_dataset(builder, data_files=file, split="train") for builder, file in map(str.split, sys.argv[1:])]
print(json.dumps([rows.num_rows for rows in loaded]))
"""


def read_by_datasets(project: Project, folder: Path, layout: str) -> list[int]:
    """Returns the numbers of rows that `datasets` reads in each format."""
    builders = {"jsonl": "json", "csv": "csv", "parquet": "parquet"}
    names = [f"{builder} {written(project, folder, layout, format)}" for format, builder in builders.items()]
    counts = json.loads(said_by(python_with("datasets", "datasets"), DATASETS, *names, HOME=str(folder)))
    assert isinstance(counts, list)
    return counts


@pytest.mark.parametrize("layout", [name for name, layout in LAYOUTS.items() if not layout.of_segments])
def test_datasets_reads_every_format(ranked_and_scored: Project, tmp_path: Path, layout: str) -> None:
    counts = read_by_datasets(ranked_and_scored, tmp_path, layout)
    assert len(set(counts)) == 1
    assert counts[0] >= TASKS


@pytest.mark.parametrize("layout", [name for name, layout in LAYOUTS.items() if layout.of_segments])
def test_datasets_reads_every_format_of_segments(segmented: Project, tmp_path: Path, layout: str) -> None:
    counts = read_by_datasets(segmented, tmp_path, layout)
    assert len(set(counts)) == 1
    assert counts[0] >= TASKS


ARGILLA = """
import json, sys
from argilla.records._io._json import JsonIO
records = JsonIO._records_from_json(sys.argv[1])
print(json.dumps([[str(r.id), sorted(r.fields.to_dict()), len(list(r.suggestions))] for r in records]))
"""


def test_argilla_reads_records_with_their_labels(rated: Project, tmp_path: Path) -> None:
    python = python_with("argilla", "argilla", "requests")
    records = json.loads(said_by(python, ARGILLA, written(rated, tmp_path, "argilla", "json")))
    fields = ["conversation", "response_1", "response_2"]
    assert records == [[f"t-{number}", fields, 2 * len(ATTRIBUTES) + 1] for number in range(TASKS)]


HELPSTEER3 = """
import json, sys
from datasets import load_dataset
for builder, file in map(str.split, sys.argv[1:]):
    rows = load_dataset(builder, data_files=file, split="train")
    print(builder, sorted(rows.column_names), rows.num_rows)
print(json.dumps([{name: value for name, value in row.items() if value is not None} for row in rows]))
"""


def test_datasets_reads_helpsteer3_s_configurations_as_they_came(project: Project, tmp_path: Path) -> None:
    imported(project, *CONFIGURATIONS.values())
    names = [f"{name} {written(project, tmp_path, 'helpsteer3', name)}" for name in ("csv", "parquet")]
    said = said_by(python_with("datasets", "datasets"), HELPSTEER3, *names, HOME=str(tmp_path))
    assert json.loads(said) == list(CONFIGURATIONS.values())


ARGILLA_ANSWERS = """
import json, sys
from uuid import UUID
from argilla import Response
from argilla.records._io._json import JsonIO
records = JsonIO._records_from_json(sys.argv[1])
for record in records:
    for number in range(2):
        for question, value in json.loads(sys.argv[3]).items():
            record.responses.add(Response(question, value, user_id=UUID(int=number), status="submitted"))
JsonIO.to_json(records, sys.argv[2])
print(len(records))
"""


def test_what_argilla_s_annotators_answer_comes_in_beside_our_labels(rated: Project, tmp_path: Path) -> None:
    ours, theirs = written(rated, tmp_path, "argilla", "json"), tmp_path / "theirs.json"
    answers = {f"{key}_{number}": 4 for key in ATTRIBUTES for number in (1, 2)}
    said_by(python_with("argilla", "argilla", "requests"), ARGILLA_ANSWERS, ours, theirs, json.dumps(answers))
    scores = dict.fromkeys(ATTRIBUTES, 3)
    assert set(as_said(theirs)) == {f"t-{number}" for number in range(TASKS)}
    for task in tasks_in(theirs):
        assert [answer.ratings for answer in task.annotations] == 2 * [{0: scores, 1: scores}]
        assert [response.label["helpfulness"] for response in task.responses] == [1, 3]
        assert task.preference == 2


TRL = """
import json, sys
from datasets import load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer
rows = load_dataset("json", data_files=sys.argv[1], split="train")
words = Tokenizer(models.WordLevel({"<unk>": 0, "<eos>": 1}, unk_token="<unk>"))
words.pre_tokenizer = pre_tokenizers.Whitespace()
tokens = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>", pad_token="<eos>")
tokens.chat_template = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {{ eos_token }}{% endfor %}"
small = LlamaConfig(
    vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, pad_token_id=1
)
how = dict(output_dir=sys.argv[2], max_steps=1, per_device_train_batch_size=2, use_cpu=True, report_to="none")
how["bf16"] = False
LlamaForCausalLM(small).save_pretrained(sys.argv[2] + "/policy")
tokens.save_pretrained(sys.argv[2] + "/policy")
policy = DPOTrainer(
    sys.argv[2] + "/policy", args=DPOConfig(**how), train_dataset=rows, processing_class=tokens
).train()
small.num_labels = 1
reward = RewardTrainer(
    LlamaForSequenceClassification(small), args=RewardConfig(**how), train_dataset=rows, processing_class=tokens
).train()
print(json.dumps([policy.global_step, reward.global_step, rows.num_rows]))
"""


def test_trl_trains_on_pairs_as_they_leave(rated: Project, tmp_path: Path) -> None:
    python = trl()
    said = said_by(python, TRL, written(rated, tmp_path, "dpo", "jsonl"), tmp_path / "out", HOME=str(tmp_path))
    assert json.loads(said) == [1, 1, TASKS]


def label_config() -> str:
    """The labelling interface that docs/formats.md describes."""
    questions = "".join(
        f'<Rating name="{key}_{number}" toName="response_{number}" maxRating="5"/>'
        for number in (1, 2)
        for key in ATTRIBUTES
    )
    choices = "".join(f'<Choice value="Response {n} is better than Response {3 - n}"/>' for n in (1, 2))
    return (
        '<View><Paragraphs name="conversation" value="$conversation" nameKey="role" textKey="content"/>'
        '<Text name="response_1" value="$response_1"/><Text name="response_2" value="$response_2"/>'
        f'{questions}<Choices name="preference" toName="conversation">{choices}</Choices>'
        '<TextArea name="justification" toName="conversation"/>'
        '<TextArea name="annotator" toName="conversation"/></View>'
    )


LABEL_STUDIO_SDK = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
interface = LabelInterface(sys.argv[2])
interface.validate()
tasks = json.load(open(sys.argv[1]))
answers = [answer for task in tasks for answer in task["annotations"]]
wrong = {"result": [{**answers[0]["result"][1], "to_name": "response_9"}]}
print(json.dumps([
    [interface.validate_task({"data": task["data"]}) for task in tasks],
    [interface.validate_prediction(answer, return_errors=True) for answer in answers],
    bool(interface.validate_prediction(wrong, return_errors=True)),
]))
"""


def test_label_studio_s_sdk_finds_no_fault_in_tasks_and_answers(rated: Project, tmp_path: Path) -> None:
    python = python_with("label-studio-sdk", "label-studio-sdk")
    file = written(rated, tmp_path, "label_studio", "json")
    tasks, answers, finds_faults = json.loads(said_by(python, LABEL_STUDIO_SDK, file, label_config()))
    assert (tasks, answers, finds_faults) == (TASKS * [True], 3 * TASKS * [[]], True)


LABEL_STUDIO = """
import json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "label_studio.core.settings.label_studio"
import label_studio
sys.path.insert(0, os.path.dirname(label_studio.__file__))
os.environ["DJANGO_SETTINGS_MODULE"] = "core.settings.label_studio"
import django
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from rest_framework.test import APIClient
from organizations.models import Organization
from users.models import User
user = User.objects.create_user("a@example.org", "a password of its own")
Organization.create_organization(created_by=user, title="Ours")
user.active_organization = user.organizations.first()
user.save()
client = APIClient()
client.force_authenticate(user)
post = lambda path, body: client.post(path, body, format="json")
project = post("/api/projects/", {"title": "Ours", "label_config": sys.argv[2]})
assert project.status_code == 201, project.content
number = project.json()["id"]
with open(sys.argv[1]) as file:
    answer = post(f"/api/projects/{number}/import", json.load(file))
assert answer.status_code == 201, answer.content
exported = client.get(f"/api/projects/{number}/export?exportType=JSON&download_all_tasks=true")
text = b"".join(exported.streaming_content) if exported.streaming else exported.content
with open(sys.argv[3], "wb") as file:
    file.write(text)
print(json.dumps([answer.json()["task_count"], answer.json()["annotation_count"]]))
"""


def test_label_studio_takes_our_tasks_and_gives_them_back(rated: Project, tmp_path: Path) -> None:
    python = python_with("label-studio", "label-studio")
    ours, theirs = written(rated, tmp_path, "label_studio", "json"), tmp_path / "theirs.json"
    variables = {
        "LABEL_STUDIO_BASE_DATA_DIR": str(tmp_path / "data"),
        "HOME": str(tmp_path),
        "COLLECT_ANALYTICS": "0",
        "SENTRY_DSN": "",
    }
    said = said_by(python, LABEL_STUDIO, ours, label_config(), theirs, **variables)
    assert json.loads(said) == [TASKS, 3 * TASKS]
    assert as_said(theirs) == as_said(ours)


def as_said(file: Path) -> dict[str, list[Any]]:
    """Each task's ratings and preferences, by the annotators' pseudonyms."""
    return {task.external_id: sorted(map(_parts, task.annotations)) for task in tasks_in(file)}


def tasks_in(file: Path) -> list[TaskRow]:
    with file.open("rb") as stream:
        tasks = list(read_tasks(read_rows(stream), ImportRules(dict.fromkeys(ATTRIBUTES, 5), ties=False)))
    assert all(isinstance(task, TaskRow) for task in tasks)
    return [task for task in tasks if isinstance(task, TaskRow)]


def _parts(said: GivenAnnotation) -> list[Any]:
    return [said.rater, sorted(said.ratings.items()), said.preference]
