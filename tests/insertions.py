"""Inserts the rows that nearly every test has, by statements that are put together once.

Django's `bulk_create` prepares every value of every row and the statement around them each time, for the cast alone a
fifth of the time of a typical test.
"""

from functools import cache
from typing import Any, TypeVar

from django.db import connection
from django.db.models import DateTimeField, Model

from annotator.infrastructure.db.statements import Columns

M = TypeVar("M", bound=Model)


def insert(model: type[M], **values: list[Any]) -> list[M]:
    """Inserts a row for each place in the lists, which are of one length; other columns have the model's defaults."""
    sql, defaults, columns = _insertion(model, tuple(values), len(next(iter(values.values()))))
    given = {f"{name}_{place}": value for name, all_of_it in values.items() for place, value in enumerate(all_of_it)}
    with connection.cursor() as cursor:
        cursor.execute(sql, defaults | given)
        return [columns.instance(row) for row in cursor.fetchall()]


@cache
def _insertion(model: type[M], given: tuple[str, ...], count: int) -> tuple[str, dict[str, Any], Columns[M]]:
    columns, usual = Columns(model, model._meta.db_table), model()
    fields = [
        field
        for field in model._meta.concrete_fields
        if not (field.primary_key or field.generated or field.has_db_default())
    ]
    times = {field.attname for field in fields if isinstance(field, DateTimeField) and not field.null} - {*given}
    defaults = {
        field.attname: field.get_db_prep_save(getattr(usual, field.attname), connection)
        for field in fields
        if field.attname not in {*given, *times}
    }

    def value(name: str, place: int) -> str:
        if name in times:
            return "clock_timestamp()"
        return f"%({name})s" if name in defaults else f"%({name}_{place})s"

    rows = [f"({', '.join(value(field.attname, place) for field in fields)})" for place in range(count)]
    names = ", ".join(f'"{field.column}"' for field in fields)
    return f"INSERT INTO {columns.alias} ({names}) VALUES {', '.join(rows)} RETURNING {columns}", defaults, columns
