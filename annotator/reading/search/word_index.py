"""Takes the words of new and changed texts, so that tasks are found by them; triggers queue the tasks (StaleWords).

Words are taken in the background: an import need not wait for them.
"""

from django.db import transaction

from annotator.infrastructure.background import failures, pacing
from annotator.infrastructure.db.statements import Statement
from annotator.models import StaleWords

BATCH = 250
LONGEST_PROMPT, LONGEST_RESPONSE, LONGEST_RESPONSES = 40_000, 15_000, 60_000
"""Characters of a task's conversation, of one response and of all responses whose words are taken.

PostgreSQL refuses to store the words of texts that are longer than a megabyte.
"""

# A task locked FOR UPDATE is left for the next time: its texts may be about to be redacted. A claim locks it less.
_TAKE = Statement(
    """
    WITH taken AS (
        SELECT q.id, q.task_id, t.id AS found FROM (
            SELECT id, task_id FROM annotator_stalewords ORDER BY id LIMIT %(most)s FOR UPDATE SKIP LOCKED
        ) q LEFT JOIN annotator_task t ON t.id = q.task_id
    ), held AS (
        SELECT id FROM annotator_task WHERE id IN (SELECT found FROM taken) FOR KEY SHARE SKIP LOCKED
    )
    DELETE FROM annotator_stalewords s USING taken
    WHERE s.id = taken.id AND (taken.found IS NULL OR taken.found IN (SELECT id FROM held))
    RETURNING s.task_id
    """,
    prepared=False,
)
_WRITE = Statement(
    """
    INSERT INTO annotator_taskwords (task_id, facets, words)
    SELECT t.id,
        array_remove(ARRAY[
            'project ' || t.project_id,
            CASE WHEN t.language <> '' THEN 'language ' || lower(t.language) END,
            'import ' || t.from_import_id
        ], NULL) || coalesce(r.models, '{}'),
        to_tsvector('simple', t.external_id || E'\\n' || left(p.text, %(prompt)s) || E'\\n'
            || left(coalesce(r.text, ''), %(responses)s))
    FROM annotator_task t
    CROSS JOIN LATERAL (
        SELECT coalesce(string_agg(left(turn ->> 'content', %(prompt)s), E'\\n' ORDER BY number DESC), '') AS text
        FROM jsonb_array_elements(t.conversation) WITH ORDINALITY AS turns (turn, number)
    ) p
    CROSS JOIN LATERAL (
        SELECT string_agg(left(text, %(response)s), E'\\n' ORDER BY position) AS text,
            array_agg(DISTINCT 'model ' || lower(model)) FILTER (WHERE model <> '') AS models
        FROM annotator_response WHERE task_id = t.id
    ) r
    WHERE t.id = ANY(%(tasks)s)
    ON CONFLICT (task_id) DO UPDATE SET facets = excluded.facets, words = excluded.words
    """,
    prepared=False,
)


def take_words() -> int:
    """Takes the words of all tasks in the queue, unless a worker is at it; returns how many changes were in it."""
    with failures.as_whole("take_words"):
        return pacing.alone_in_slices("words", 0, _take_some)


@transaction.atomic
def _take_some() -> int:
    # In two statements: the second one sees what was committed before the tasks were locked by the first.
    changed = [task for (task,) in _TAKE.rows(most=BATCH)]
    if changed:
        _WRITE.run(
            tasks=sorted(set(changed)),
            prompt=LONGEST_PROMPT,
            response=LONGEST_RESPONSE,
            responses=LONGEST_RESPONSES,
        )
    return len(changed)


def waiting() -> bool:
    """Returns whether the words of some tasks are still to be taken."""
    return StaleWords.objects.exists()
