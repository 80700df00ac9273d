"""Tables of the human half: constraints and reads, no workflow."""

from annotator.models.agreement import AgreementState, AgreementTotal, CountedTask, StaleAgreement
from annotator.models.annotation import (
    NEITHER_VALID,
    PREFERENCES,
    Annotation,
    Assignment,
    Draft,
    Origin,
    Rating,
    Report,
    Skip,
    SkipReason,
    UnsafeCategory,
)
from annotator.models.audit import AuditEntry
from annotator.models.gold import ExpertRating, Gold, QualificationAnswer, QualificationRun
from annotator.models.imports import Import
from annotator.models.label import Consensus, Label
from annotator.models.pii import PiiKind, PiiSpan
from annotator.models.project import Attribute, Guideline, Membership, PauseReason, Project, Role, Rubric, Tally
from annotator.models.quality import RaterQuality
from annotator.models.review import Adjudication, Exclusion, UnlikelyAnnotation, Verdict
from annotator.models.task import Response, Task
from annotator.models.user import User

__all__ = [
    "NEITHER_VALID",
    "PREFERENCES",
    "Adjudication",
    "AgreementState",
    "AgreementTotal",
    "Annotation",
    "Assignment",
    "Attribute",
    "AuditEntry",
    "Consensus",
    "CountedTask",
    "Draft",
    "Exclusion",
    "ExpertRating",
    "Gold",
    "Guideline",
    "Import",
    "Label",
    "Membership",
    "Origin",
    "PauseReason",
    "PiiKind",
    "PiiSpan",
    "Project",
    "QualificationAnswer",
    "QualificationRun",
    "RaterQuality",
    "Rating",
    "Report",
    "Response",
    "Role",
    "Rubric",
    "Skip",
    "SkipReason",
    "StaleAgreement",
    "Tally",
    "Task",
    "UnlikelyAnnotation",
    "UnsafeCategory",
    "User",
    "Verdict",
]
