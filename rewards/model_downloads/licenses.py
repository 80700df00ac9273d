"""The licence under which a model is passed on, as a manager states it."""

from django.db import transaction
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.stale_edits import Seen, require_as_seen
from annotator.outputs.releases.particulars import OTHER, UNKNOWN
from rewards.models import RewardModel

MODEL_LICENSES = (
    "apache-2.0", "mit", "bsd-3-clause", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc0-1.0",
    "openrail", "bigscience-openrail-m", "gemma", "llama2", "llama3", "llama3.1", "llama3.2", "llama3.3", "llama4",
    OTHER, UNKNOWN,
)  # fmt: skip
"""Identifiers that the Hugging Face Hub knows, those that suit models."""
LONGEST_TEXT = 2_000


class UnusableLicense(Refusal):
    """The licence is not one of the list, or its text is missing or too long; `errors` says which."""

    status = 400
    code = "invalid"

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.errors = {field: [text]}


@transaction.atomic
def set_license(model: RewardModel, name: str, text: str = "", *, seen: Seen | None = None) -> None:
    """States the model's licence, which its card then has; `text` says more, and must where the licence is *other*.

    Raises:
        UnusableLicense: nothing is changed.
        ChangedMeanwhile: the licence or its text is no longer what the caller has seen.
    """
    if seen:
        require_as_seen(RewardModel.objects.select_for_update().get(pk=model.pk), seen)
    text = text.strip()
    if name not in MODEL_LICENSES:
        known = ", ".join(MODEL_LICENSES)
        raise UnusableLicense("license", _("Choose one of these licences: %(known)s.") % {"known": known})
    if name == OTHER and not text:
        raise UnusableLicense("license_text", _("Write which licence it is, and where its text is found."))
    if len(text) > LONGEST_TEXT:
        raise UnusableLicense("license_text", _("At most %(most)d characters.") % {"most": LONGEST_TEXT})
    model.license, model.license_text = name, text
    model.save(update_fields=["license", "license_text"])
    audit.record("model.licensed", f"model version {model.version}", project=model.project, license=name)
