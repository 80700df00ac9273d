"""Bodies and files in the examples of the OpenAPI schema, where not every field has the value of example_values.py."""

import json
from typing import Any

from annotator.api.example_values import OTHER, RESPONSE, SCORES

_TASK_ROW = '{"id": "t-17", "messages": [{"role": "user", "content": "Name a prime above 10."}], "responses": '
_TASK_ROW += '[{"id": "a", "text": "11 is one."}, {"id": "b", "text": "12, I think."}]}\n'

REQUESTS: dict[str, Any] = {
    "Project": {"slug": "mine", "name": "Mine", "rubric": "helpsteer2", "guidelines": "# How to rate"},
    "PatchedProject": {"base_annotators": 3, "max_annotators": 5, "lease_minutes": 30},
    "Member": {"username": "alice", "role": "annotator", "quota": 200},
    "PatchedMemberChange": {"role": "reviewer"},
    "PatchedWebhookWish": {"active": False},
    "NewBulkChange": {"action": "priority", "priority": 5, "filters": {"state": "open", "source": 7}},
    "Start": {"dry_run": True, "mapping": "our columns"},
    "Wanted": {"layout": "wide", "format": "csv", "since": "2026-01-01"},
    "Acceptance": {"token": "aCvcVIUmrHSnbmNGZOcSqe", "username": "frank", "password": "a long one of their own"},
    "Wish": {"role": "annotator", "places": 20, "days": 14},
    "Submission": {
        "ratings": [
            {"response": RESPONSE, "scores": SCORES, "confidence": 2},
            {"response": OTHER, "scores": SCORES | {"helpfulness": 0, "correctness": 0}, "confidence": 2},
        ],
        "preference": -2,
        "justification": "12 is not a prime.",
    },
    "Adjudication": {
        "ratings": [
            {"response": RESPONSE, "scores": SCORES},
            {"response": OTHER, "scores": SCORES | {"helpfulness": 0, "correctness": 0}},
        ],
        "preference": -2,
        "reason": "guideline_gap",
        "comment": "Only primes answer the question.",
    },
    "Skip": {"reason": "needs_coding"},
}
"""Bodies that are sent, by component, where not every field is."""

ACCEPTED: dict[str, dict[str, Any]] = {
    "ExportJob": {"state": "waiting", "rows_done": 0, "bytes_done": 0, "sha256": ""},
    "ImportJob": {"state": "waiting", "rows_done": 0, "bytes_read": 0, "created": 0, "rejected": 0, "import_id": None},
    "Release": {"state": "waiting", "rows_done": 0, "bytes_done": 0, "archive_size": 0, "archive_sha256": ""},
    "BulkChange": {"changed": 0},
    "Delivery": {"state": "waiting", "attempts": 0, "attempted_at": None, "status": None, "seconds": None},
}
"""What is different in the answer 202, when the work has not been done yet."""

MEDIA: dict[str, Any] = {
    "application/json": [json.loads(_TASK_ROW)],
    "application/x-ndjson": _TASK_ROW,
    "application/octet-stream": _TASK_ROW,
    "text/csv": "id,prompt,response_a,response_b\nt-17,Name a prime above 10.,11 is one.,12 I think.\n",
}
"""Files that are sent."""
