"""What the stages refuse. Each door turns a Refusal into its own answer: an HTTP error, a message, an exit code.

Refusal
    assignment.NotLeased, assignment.NotAtWork, annotation.Refused, annotation.IncompleteRating
    review: verdicts.CommentNeeded, verdicts.OwnWork
    importing: UnreadableFile, FileTooLarge, AlreadyRated, TakenBack; exporting.UnknownExport
    storable: UnstorableText, TextTooLong; parameters.BadParameter; annotation.drafts.DraftTooLarge
    pii: quoting.NotInTheText, quoting.MarksWithoutReason, redacting.CannotRedact
    logins.TooManyFailures, tokens.UnusableToken, projects.members.RefusedName
    workers.NoWorker, disk.DiskNearlyFull, artifacts.ForeignArtifacts
    rewards: retraining.AlreadyRunning, snapshots.NotEnoughLabels, scoring.NoChampion
"""

from collections.abc import Mapping


class Refusal(Exception):
    """Something that was asked for and cannot be done; the message says why, and what to do."""

    status = 409
    code = "refused"
    errors: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
