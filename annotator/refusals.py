"""The base class of refusals. Each door turns a Refusal into its own answer: an HTTP error, a message or an exit code.

Each refusal stands beside the function that raises it; these are some, by package:

Refusal
    assignment.NotLeased, assignment.NotAtWork, annotation.Refused, annotation.IncompleteRating, annotation.TooMany
    annotation.drafts.DraftTooLarge, gold.qualification.NoTriesLeft, exporting.rows.UnknownExport
    review: verdicts.CommentNeeded, blindness.OwnWork, blindness.StillRating
    importing: expansion_limits.UnreadableFile, withdrawal.AlreadyRated, batches.TakenBack
    pii: quotations.NotInTheText, quotations.MarksWithoutReason, redaction.CannotRedact
    releases: folder.ChecksFailed, jobs.NoFiles, particulars.UnusableParticulars
    projects: members.RefusedName, deletion.NotConfirmed, archive.Archived
    accounts: logins.TooManyFailures, tokens.UnusableToken, call_limits.TooManyCalls
    db.storable_text.UnstorableText, web.query_parameters.BadParameter, background.heartbeats.NoWorker
    storage: disk_space.DiskNearlyFull, artifacts.ForeignArtifacts, hub.HubRefused
    rewards: runs.AlreadyRunning, snapshots.NotEnoughLabels, scoring.NoChampion
"""

from collections.abc import Mapping


class Refusal(Exception):
    """Somebody asked for something that cannot be done. The message says why, and what to do instead."""

    status = 409
    code = "refused"
    errors: Mapping[str, list[str]] = {}
    headers: Mapping[str, str] = {}
