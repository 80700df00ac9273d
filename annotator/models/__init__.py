"""Tables of the human half with their constraints and reads; no workflow. `triggers/` lists each table's triggers."""

from annotator.models.agreement import (
    AgreementState,
    AgreementTotal,
    CountedTask,
    ProjectFigures,
    RaterQuality,
    StaleAgreement,
)
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
from annotator.models.background import BackgroundFailure, Installation, RecountWanted, StoredFile
from annotator.models.export_jobs import ExportJob
from annotator.models.gold import ExpertRating, Gold, QualificationAnswer, QualificationRun
from annotator.models.imports import Import, ImportJob, ImportJobError, ImportMapping
from annotator.models.label import Consensus, Label
from annotator.models.member import (
    MOST_PLACES,
    ImportedRater,
    Invitation,
    InvitationUse,
    Membership,
    PasswordLink,
    PauseReason,
    Pseudonym,
    Tally,
)
from annotator.models.pii import PiiKind, PiiSpan
from annotator.models.project import Guideline, Project, Role
from annotator.models.releases import Release, ReleaseTask
from annotator.models.review import (
    Adjudication,
    BulkChange,
    ChangedTask,
    Exclusion,
    GuidelineGap,
    UnlikelyAnnotation,
    Verdict,
)
from annotator.models.rubric import Attribute, Rubric
from annotator.models.scores import FEWEST_RANKED, HIGHEST_SCORE
from annotator.models.task import Response, StaleWords, Task, TaskWords
from annotator.models.user import LoginFailures, Scope, Token, User, every_scope
from annotator.models.webhooks import LONGEST_URL, QueueOutage, Webhook, WebhookDelivery
