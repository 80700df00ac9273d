"""Keeps the audit's months: makes their tables ahead of time, and archives old months to files with a chain of hashes.

Who changes, adds or removes a line of a file changes every hash after it, and the last one is stored here and in the
next month's file.
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils.translation import gettext as _

from annotator import audit
from annotator.db.statements import Statement
from annotator.models import AuditArchive, AuditEntry
from annotator.refusals import Refusal

AHEAD = 12
"""Months whose tables are made ahead of time. Entries of a month without a table of its own go to a common one."""
SETTLED = timedelta(hours=1)
"""A month is over when no transaction can be left that began in it."""
START = "0" * 64
"""The hash before the first entry of all."""
_TABLE = "annotator_auditentry"
_AT_ONCE = 2_000
_MAKE = Statement("SELECT annotator_audit_has_month(%(first)s)", prepared=False)
_MONTHS = Statement(
    """
    SELECT to_date(substring(c.relname FROM '\\d{4}_\\d\\d$'), 'YYYY_MM') AS month
    FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'annotator_auditentry'::regclass AND c.relname ~ '\\d{4}_\\d\\d$' ORDER BY month
    """,
    prepared=False,
)


class NothingToArchive(Refusal):
    """No month before the given one is over and still in the database."""

    code = "nothing_to_archive"


class BrokenChain(Refusal):
    """A file of the archive is not as it was written; the message names the line."""

    code = "broken_chain"


@dataclass(frozen=True)
class Checked:
    """What a file of the archive holds: its entries, and the hashes before the first and after the last of them."""

    month: str
    entries: int
    before: str
    chain: str
    sha256: str


def make_months(*, now: datetime) -> int:
    """Makes the tables of this month and of the next AHEAD months that have none; returns how many.

    A month whose first entries are in the common table already gets no table of its own.
    """
    made, first = 0, now.astimezone(UTC).date().replace(day=1)
    for _month in range(AHEAD + 1):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                # Whoever writes an entry waits behind this, so it does not wait long itself.
                cursor.execute("SET LOCAL lock_timeout = '2s'")
                made += bool(_MAKE.rows(first=first)[0][0])
        except IntegrityError:
            pass
        first = _next(first)
    return made


def archive(folder: Path, *, before: date, now: datetime) -> list[AuditArchive]:
    """Writes each month before the given one to a file in the folder, oldest first, and drops its table.

    A month leaves the database in the transaction that records its file, which is on the disk and has been read back
    by then.

    Raises:
        NothingToArchive: No such month is over, or all of them are archived.
        OSError: The folder cannot be written. The month stays in the database.
    """
    over = (now - SETTLED).astimezone(UTC).date().replace(day=1)
    months = [month for (month,) in _MONTHS.rows() if month < min(before, over)]
    if not months:
        text = _("No month before %(month)s is over and still in the database.")
        raise NothingToArchive(text % {"month": f"{min(before, over):%Y-%m}"})
    return [_archive_month(month, folder, now=now) for month in months]


@transaction.atomic
def _archive_month(month: date, folder: Path, *, now: datetime) -> AuditArchive:
    table = connection.ops.quote_name(f"{_TABLE}_{month:%Y_%m}")
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN SHARE MODE")  # nobody adds an entry; pages still read them
    last = AuditArchive.objects.order_by("-month").first()
    path = folder / f"audit-{month:%Y-%m}.jsonl.gz"
    written = _write(path, month, before=last.chain if last else START)
    row = AuditArchive.objects.create(
        month=month,
        file=path.name,
        entries=written.entries,
        sha256=written.sha256,
        chain_before=written.before,
        chain=written.chain,
        archived_at=now,
    )
    audit.record("audit.archived", f"month {month:%Y-%m}", file=path.name, entries=row.entries, sha256=row.sha256)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {_TABLE} DETACH PARTITION {table}")
        cursor.execute(f"DROP TABLE {table}")
    return row


def _write(path: Path, month: date, *, before: str) -> Checked:
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            # Without a name and a time in it, the same entries give the same file.
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                _write_lines(packed, month, before)
            file.flush()
            os.fsync(file.fileno())
        checked = read_back(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return checked


def _write_lines(file: gzip.GzipFile, month: date, chain: str) -> None:
    file.write(_line({"audit": f"{month:%Y-%m}", "before": chain}))
    start, end = (datetime(first.year, first.month, 1, tzinfo=UTC) for first in (month, _next(month)))
    entries = AuditEntry.objects.filter(at__gte=start, at__lt=end).order_by("at", "pk")
    names = [field.attname for field in AuditEntry._meta.concrete_fields]
    for row in entries.values(*names).iterator(chunk_size=_AT_ONCE):
        entry = {**row, "at": row["at"].astimezone(UTC).isoformat()}
        chain = _hash(chain, entry)
        file.write(_line({**entry, "chain": chain}))


def read_back(path: Path) -> Checked:
    """Computes every hash of a file of the archive again.

    Raises:
        BrokenChain: A line was changed, added or removed, or the file is none of the archive's.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    chain, number = "", 0
    head: Mapping[str, Any] = {}
    for number, line in enumerate(_lines(path)):
        if not head:
            head, chain = line, str(line.get("before", ""))
            continue
        stored = line.pop("chain", None)
        chain = _hash(chain, line)
        if stored != chain:
            raise BrokenChain(_("Line %(line)s of %(file)s is not as it was written.") % _at(path, number))
    if "audit" not in head:
        raise BrokenChain(_("%(file)s is no file of the audit's archive.") % _at(path, 0))
    return Checked(str(head["audit"]), number, str(head["before"]), chain, sha256)


def check(path: Path) -> Checked:
    """Compares a file of the archive with what was recorded when it was written.

    Raises:
        BrokenChain: As `read_back`, or the file is not the one that was recorded.
        OSError: The file cannot be read.
    """
    checked = read_back(path)
    recorded = AuditArchive.objects.filter(file=f"audit-{checked.month}.jsonl.gz").first()
    if recorded is None:
        raise BrokenChain(_("%(file)s is of a month that this installation has not archived.") % _at(path, 0))
    if (checked.chain, checked.entries) != (recorded.chain, recorded.entries):
        raise BrokenChain(
            _("%(file)s is not the file that was written: its last entries are missing or others.") % _at(path, 0)
        )
    return checked


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    read = 0
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError
                yield row
                read += 1
    except (ValueError, EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise BrokenChain(_("Line %(line)s of %(file)s cannot be read.") % _at(path, read)) from broken


def _at(path: Path, number: int) -> dict[str, Any]:
    return {"file": path.name, "line": number + 1}


def _hash(before: str, entry: Mapping[str, Any]) -> str:
    """SHA-256 of the hash before, a line end, and the entry as JSON with its keys in order and no spaces."""
    return hashlib.sha256(f"{before}\n{_json(entry)}".encode()).hexdigest()


def _line(row: Mapping[str, Any]) -> bytes:
    return f"{_json(row)}\n".encode()


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _next(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)
