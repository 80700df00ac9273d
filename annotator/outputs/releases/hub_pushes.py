"""Takes a release's folder to the Hugging Face Hub."""

from annotator.infrastructure import audit
from annotator.infrastructure.storage import store
from annotator.infrastructure.storage.hub import uploads
from annotator.models import Release
from annotator.outputs.releases.release_rows import CONFIGURATIONS


def push(release: Release, repository: str, *, public: bool) -> str:
    """Makes the dataset repository hold what the release holds; returns the address of the commit.

    A repository that does not exist yet is made, private unless it is to be `public`. Files of earlier releases are
    replaced in the same commit.

    Raises:
        HubRefused: as `uploads` does.
    """
    old = [f"{configuration.folder}/*" for configuration in CONFIGURATIONS]
    with uploads("release") as api:
        api.create_repo(repository, repo_type="dataset", private=not public, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=str(store.bring(release.folder())),
            commit_message=f"Release {release.number}, {release.content_hash[:12]}",
            delete_patterns=old,
        )
    address = str(commit.commit_url)
    audit.record("release.pushed", str(release), project=release.project, repository=repository, commit=address)
    return address
