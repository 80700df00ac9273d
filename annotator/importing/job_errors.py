"""The rows of an upload that were refused, as people download them."""

from collections.abc import Iterator

from annotator.exporting.spreadsheets import csv_lines
from annotator.models import ImportJob

COLUMNS = ("line", "field", "error")


def errors_csv(job: ImportJob) -> Iterator[bytes]:
    """Yields the kept errors as CSV that spreadsheets can open safely."""
    return csv_lines(job.errors.order_by("pk").values(*COLUMNS).iterator(), COLUMNS)
