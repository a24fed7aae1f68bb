"""SQL over the rows of a study."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from apenet.study.rows import Row, columns


def query_rows(rows: Sequence[Row], sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names of columns and rows of a SELECT over the table `rows`. Raises sqlite3.Error.

    The table is a copy in memory, so that no statement changes the study.
    """
    database = sqlite3.connect(":memory:")
    try:
        names = columns(rows)
        quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
        database.execute(f"CREATE TABLE rows ({', '.join(quoted) or 'nothing'})")
        marks = ", ".join("?" * len(names))
        database.executemany(
            f"INSERT INTO rows VALUES ({marks})",  # noqa: S608 (marks only)
            ([row.get(name) for name in names] for row in rows),
        )
        cursor = database.execute(sql)
        if cursor.description is None:
            raise sqlite3.ProgrammingError("the statement has no result")
        return [column[0] for column in cursor.description], cursor.fetchall()
    finally:
        database.close()
