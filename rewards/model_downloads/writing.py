"""Has the learning core store a model once more, as one reward, where its run has not done so."""

import subprocess
import sys
from pathlib import Path

from django.conf import settings

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import artifacts, disk_space, store
from annotator.infrastructure.storage.hidden_paths import without_places
from rewards.models import RewardModel


def write_reward(model: RewardModel) -> Path:
    """Writes `reward/` beside the model's files and returns it, in a process of its own, as it imports torch.

    Raises:
        Refusal, ForeignArtifacts, DiskNearlyFull: there is nothing to read, or no room.
        Refusal: no class of transformers computes the reward, or the model cannot be read.
    """
    if model.is_erased():
        raise Refusal(f"The files of version {model.version} were erased.", code="files_erased")
    artifacts.require_ours()
    disk_space.require_room()
    command = [sys.executable, "-m", "rewards.learning", "reward", str(store.bring(model.directory()).parent)]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"The process ended with code {done.returncode}."]
        raise Refusal(without_places(words[-1]), code="not_written")
    store.put(model.reward_directory())
    return model.reward_directory()
