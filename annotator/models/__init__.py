"""Tables of the human half with their constraints and reads; no workflow. `triggers/` lists each table's triggers."""

from annotator.models.agreement import AgreementState, AgreementTotal, CountedTask, StaleAgreement
from annotator.models.annotation import (
    LONGEST_ACTIVE_SECONDS,
    NEITHER_VALID,
    PREFERENCES,
    TIE,
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
from annotator.models.background import BackgroundFailure, Installation, RecountWanted
from annotator.models.bulk_changes import BulkChange, ChangedTask
from annotator.models.export_jobs import ExportJob
from annotator.models.figures import ProjectFigures
from annotator.models.gold import ExpertRating, Gold, QualificationAnswer, QualificationRun
from annotator.models.idempotency import IdempotentCall
from annotator.models.import_jobs import ImportJob, ImportJobError, ImportMapping
from annotator.models.imports import Import
from annotator.models.invitation import MOST_PLACES, Invitation, InvitationUse, PasswordLink
from annotator.models.label import Consensus, Label
from annotator.models.login import LoginFailures
from annotator.models.member import Membership, PauseReason, Tally
from annotator.models.pii import PiiKind, PiiSpan
from annotator.models.project import Guideline, Project, Role
from annotator.models.quality import RaterQuality
from annotator.models.ranking import FEWEST_RANKED
from annotator.models.rater import ImportedRater, Pseudonym
from annotator.models.releases import Release, ReleaseTask
from annotator.models.review import Adjudication, Exclusion, UnlikelyAnnotation, Verdict
from annotator.models.rubric import Attribute, Rubric
from annotator.models.scores import HIGHEST_SCORE
from annotator.models.task import Response, Task
from annotator.models.token import Scope, Token, every_scope
from annotator.models.user import User
from annotator.models.webhooks import LONGEST_URL, QueueOutage, Webhook, WebhookDelivery
from annotator.models.words import StaleWords, TaskWords
