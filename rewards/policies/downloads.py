"""Lists and sends the files of a policy: a plain Hugging Face directory with `alignment.json`."""

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.storage import store
from annotator.infrastructure.web.tar_archives import Member
from rewards.model_downloads.files import ModelFile
from rewards.model_downloads.sending import answer_with_archive, answer_with_file, file_with_path
from rewards.models import Policy
from rewards.policies.policy_registry import MANIFEST


def files_of(policy: Policy) -> list[ModelFile]:
    """Returns the policy's files with their hashes, in the order of their names.

    Raises:
        Refusal: there are none, or not here.
    """
    if policy.is_erased():
        raise Refusal(
            _("The files were erased, because the policy learnt from texts that had to be erased."), code="files_erased"
        )
    hashes = {**policy.manifest.get("files", {}), MANIFEST: policy.artifact_hash}
    folder = policy.directory()
    try:
        sizes = {name: store.size_of(folder / name) for name in hashes}
    except OSError as error:
        raise Refusal(_("The policy's files cannot be read here."), code="files_missing", status=503) from error
    return [ModelFile(name, sizes[name], hashes[name], folder / name) for name in sorted(hashes)]


def sent_file(request: HttpRequest, policy: Policy, path: str) -> HttpResponseBase:
    """Returns the file with this path. Raises Http404, and Refusal as `files_of` does."""
    file = file_with_path(files_of(policy), path)
    _note(policy, file=path)
    return answer_with_file(request, file)


def sent_archive(request: HttpRequest, policy: Policy) -> HttpResponseBase:
    """Returns all files as a tar file. Raises Refusal as `files_of` does."""
    files = files_of(policy)
    name = f"{policy.project.slug}-policy-{policy.version}"
    _note(policy, part="all")
    members = [Member(f"{name}/{file.path}", file.size, file.content) for file in files]
    return answer_with_archive(request, files, members, name=name)


def _note(policy: Policy, **details: str) -> None:
    audit.record("policy.downloaded", f"policy {policy.version}", project=policy.project, **details)
