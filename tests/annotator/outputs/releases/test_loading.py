"""The folder of a release as `datasets.load_dataset` reads it, in an environment of its own: `DATASETS=1 pytest ...`.

The library pins other versions of what ours pins, so it is installed where nothing of ours is. That takes minutes and a
network, so only who asks for it waits.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from annotator.models import Task
from tests.annotator.outputs.releases.conftest import Made
from tests.builders import ATTRIBUTES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("DATASETS" not in os.environ, reason="DATASETS=1 installs the package datasets and tries it"),
]
LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
folder = sys.argv[1]
shown = {"configurations": get_dataset_config_names(folder)}
for name in shown["configurations"]:
    loaded = load_dataset(folder, name)
    shown[name] = {split: [rows.num_rows, rows.column_names] for split, rows in loaded.items()}
shown["without a name"] = sorted(load_dataset(folder))
shown["ratings"] = load_dataset(folder, "disagreements")["train"][0]["verbosity"]
print(json.dumps(shown))
"""


def test_load_dataset_reads_every_configuration(rated: list[Task], made: Made, tmp_path: Path) -> None:
    release = made()
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "datasets"], check=True)
    done = subprocess.run(
        [python, "-c", LOAD, release.folder()],
        env={**os.environ, "HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown["configurations"] == ["default", "preference", "disagreements"]
    assert {split: number for split, (number, _) in shown["default"].items()} == release.counts["rows"]["default"]
    assert shown["default"]["train"][1][:7] == ["prompt", "response", *ATTRIBUTES]
    assert shown["without a name"] == ["train", "validation"]
    assert len(shown["ratings"]) == 3
