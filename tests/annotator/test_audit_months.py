"""The audit's months: each has a table, and old ones leave the database as files that show every change."""

import gzip
import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from annotator import audit, audit_months
from annotator.audit_months import BrokenChain, NothingToArchive, archive, check, make_months
from annotator.models import AuditArchive, AuditEntry

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
PACKED = gzip.compress(b"[1]\n", mtime=0)


def make_entry(at: datetime, subject: str = "task t-1", **details: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT annotator_audit_has_month(%s)", [at.date().replace(day=1)])
    audit._ADD.run(**audit.entry("task.changed", subject, **details) | {"entry_at": at})


def table_of(subject: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT tableoid::regclass::text FROM annotator_auditentry WHERE subject = %s", [subject])
        return str(cursor.fetchone()[0])


@pytest.fixture
def months(tmp_path: Path) -> Path:
    """September and October lie behind, with three entries."""
    make_entry(datetime(2026, 9, 30, 23, 59, 59, 999999, UTC), "task last")
    make_entry(datetime(2026, 9, 1, tzinfo=UTC), "task first", note="a\u2028é\n", old=None)
    make_entry(datetime(2026, 10, 1, tzinfo=UTC), "task later")
    return tmp_path


def lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def rewrite(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_bytes(gzip.compress(b"".join(audit_months._line(row) for row in rows)))


def test_an_entry_is_in_the_table_of_its_month(months: Path) -> None:
    assert table_of("task first") == table_of("task last") == "annotator_auditentry_2026_09"
    assert table_of("task later") == "annotator_auditentry_2026_10"


def test_an_entry_of_a_month_without_a_table_is_kept() -> None:
    audit._ADD.run(**audit.entry("task.changed", "task far") | {"entry_at": datetime(2099, 1, 1, tzinfo=UTC)})
    assert table_of("task far") == "annotator_auditentry_other"
    assert make_months(now=datetime(2098, 12, 3, tzinfo=UTC)) == audit_months.AHEAD


def test_the_tables_of_the_next_year_are_there_already() -> None:
    assert make_months(now=datetime.now(UTC)) == 0
    later = datetime.now(UTC) + timedelta(days=62)
    assert make_months(now=later) == 2
    assert make_months(now=later) == 0


def test_months_become_files_and_leave_the_database(months: Path) -> None:
    september, october = archive(months, before=date(2026, 11, 1), now=NOW)
    assert [entry["subject"] for entry in lines(months / september.file)[1:]] == ["task first", "task last"]
    assert lines(months / september.file)[1]["details"] == {"note": "a\u2028é\n", "old": None}
    assert (september.entries, october.entries) == (2, 1)
    assert (september.chain_before, october.chain_before) == ("0" * 64, september.chain)
    assert not AuditEntry.objects.filter(action="task.changed").exists()
    assert AuditEntry.objects.filter(action="audit.archived").count() == 2
    assert [check(months / row.file).entries for row in (september, october)] == [2, 1]
    with pytest.raises(NothingToArchive):
        archive(months, before=date(2026, 11, 1), now=NOW)


def test_a_month_that_is_not_over_stays(months: Path) -> None:
    assert [row.month for row in archive(months, before=date(2027, 1, 1), now=datetime(2026, 10, 31, tzinfo=UTC))] == [
        date(2026, 9, 1)
    ]
    with pytest.raises(NothingToArchive, match="2026-10"):
        archive(months, before=date(2027, 1, 1), now=datetime(2026, 11, 1, 0, 30, tzinfo=UTC))


def test_a_month_stays_if_its_file_cannot_be_written(months: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        archive(months / "missing", before=date(2026, 11, 1), now=NOW)
    assert AuditEntry.objects.filter(action="task.changed").count() == 3
    assert not AuditArchive.objects.exists()


def _changed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [rows[0], rows[1] | {"actor": "somebody"}, *rows[2:]]


@pytest.mark.parametrize(
    "tampered",
    [
        _changed,
        lambda rows: [rows[0], *rows[2:]],
        lambda rows: rows[:-1],
        lambda rows: [rows[0], rows[2], rows[1]],
        lambda rows: [*rows, rows[-1]],
        lambda rows: rows[1:],
        lambda rows: [rows[0] | {"audit": "2026-08"}, *rows[1:]],
        lambda rows: [rows[0] | {"before": "1" * 64}, *rows[1:]],
        lambda rows: [],
    ],
    ids=["changed", "removed", "last removed", "swapped", "doubled", "no head", "other month", "other chain", "empty"],
)
def test_a_file_that_was_tampered_with_is_told(months: Path, tampered: Any) -> None:
    september = months / archive(months, before=date(2026, 10, 1), now=NOW)[0].file
    rewrite(september, tampered(lines(september)))
    with pytest.raises(BrokenChain):
        check(september)


def test_a_rewritten_chain_is_not_what_was_recorded(months: Path) -> None:
    september = months / archive(months, before=date(2026, 10, 1), now=NOW)[0].file
    head, *entries = _changed(lines(september))
    chain = head["before"]
    for entry in entries:
        entry.pop("chain")
        entry["chain"] = chain = audit_months._hash(chain, entry)
    rewrite(september, [head, *entries])
    assert audit_months.read_back(september).entries == 2
    with pytest.raises(BrokenChain, match="not the file"):
        check(september)


@pytest.mark.parametrize("content", [b"", b"no gzip", PACKED, PACKED[:4]], ids=["empty", "text", "packed", "cut"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BrokenChain):
        check(path)


def test_the_commands_archive_and_verify(months: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("archive_audit", str(months), "--before", "2026-10")
    assert "audit-2026-09.jsonl.gz: 2 entries" in capsys.readouterr().out
    call_command("verify_audit", str(months / "audit-2026-09.jsonl.gz"))
    assert "2 entries of 2026-09, as they were written" in capsys.readouterr().out
    with pytest.raises(CommandError, match="1 of 1 files failed"):
        call_command("verify_audit", str(months / "missing.gz"))
    with pytest.raises(CommandError, match="is no month"):
        call_command("archive_audit", str(months), "--before", "last year")
    with pytest.raises(CommandError, match="make it first"):
        call_command("archive_audit", str(months / "missing"), "--before", "2026-10")
    with pytest.raises(CommandError, match="still in the database"):
        call_command("archive_audit", str(months), "--before", "2026-10")
