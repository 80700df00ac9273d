"""Takes a model to the Hugging Face Hub: its reward at the top, where trainers look for it, and the whole below."""

from pathlib import Path

from annotator.infrastructure import audit
from annotator.infrastructure.storage import store
from annotator.infrastructure.storage.hub import uploads
from rewards.model_downloads.files import CARD, MODEL, REWARD, files_of
from rewards.models import RewardModel


def push(model: RewardModel, repository: str, *, public: bool) -> str:
    """Makes the model repository hold this version; returns the address of the commit.

    The files of `reward/` lie at the top, so that the repository's name is enough to load the reward; `model/` lies
    below. A repository that does not exist yet is made, private unless it is to be `public`.

    Raises:
        Refusal, FilesMissing: as `files_of` does.
        HubRefused: as `uploads` does.
    """
    files = {
        (
            file.path
            if file.path == CARD or file.path.startswith(f"{MODEL}/")
            else file.path.removeprefix(f"{REWARD}/")
        ): file.content
        for file in files_of(model)
    }
    with uploads("model") as api:
        from huggingface_hub import CommitOperationAdd

        api.create_repo(repository, repo_type="model", private=not public, exist_ok=True)
        commit = api.create_commit(
            repo_id=repository,
            repo_type="model",
            operations=[
                CommitOperationAdd(path, store.bring(content) if isinstance(content, Path) else content)
                for path, content in files.items()
            ],
            commit_message=f"Version {model.version} of {model.project.slug}",
        )
    address = str(commit.commit_url)
    subject = f"model version {model.version}"
    audit.record("model.pushed", subject, project=model.project, repository=repository, commit=address)
    return address
