"""The statements by which `workspace_project` writes its rows: tasks, what people made of them, and what followed.

Tasks are numbered from 1 (`n`): first the complete ones, then the retired, quarantined, gold and open ones, and last
those of the newest import, which nobody has touched. Columns that have a default in the database are left to it.
"""

RARE_WORD, RARE_MODEL, RARE_LANGUAGE = "zanzibar", "prototype", "sw"
RARELY = 5_000
"""One task in so many has the rare word, the rare model and the rare language."""

# How many people have rated a task: gold tasks of the stream everybody, one task in 50 two people more than the others.
_RATED = """
    CASE x.state WHEN 'complete' THEN CASE WHEN n %% 50 = 0 THEN 5 ELSE 3 END WHEN 'quarantined' THEN 1
                 WHEN 'gold' THEN CASE WHEN n %% 3 = 0 THEN 15 ELSE 0 END
                 WHEN 'open' THEN CASE WHEN n > %(tasks)s - %(untouched)s THEN 0 ELSE n %% 4 %% 3 END ELSE 0 END
"""
TASKS = f"""
INSERT INTO annotator_task (project_id, external_id, conversation, metadata, priority, state, slots_wanted, open_slots,
                            done, language, review_reason, review_spread, adjudicated, content_hash, prompt_hash,
                            created_at, pii_scanned_at, from_import_id)
SELECT %(project)s, 't-' || n,
       jsonb_build_array(jsonb_build_object('role', 'user', 'content', 'Question ' || n || ': ' || one.text || E'\\n\\n'
           || other.text || CASE WHEN n %% {RARELY} = 1 THEN ' {RARE_WORD}' ELSE '' END)),
       jsonb_build_object('batch', n / 10000), 0, x.state,
       greatest(3, y.rated),
       CASE WHEN x.state IN ('open', 'quarantined') THEN greatest(3, y.rated) - y.rated ELSE 0 END,
       y.rated,
       CASE WHEN n %% {RARELY} = 2 THEN '{RARE_LANGUAGE}' WHEN n %% 20 = 3 THEN 'de' WHEN n %% 10 = 4 THEN ''
            ELSE 'en' END,
       CASE WHEN x.state = 'quarantined' THEN 'quarantine' WHEN x.state <> 'complete' OR n %% 80 = 0 THEN ''
            WHEN n %% 40 = 0 THEN 'dropped' WHEN n %% 97 = 0 THEN 'safety' WHEN n %% 101 = 0 THEN 'unlikely'
            ELSE '' END,
       CASE WHEN x.state <> 'complete' THEN 0 WHEN n %% 40 = 0 THEN 3 + n %% 2 ELSE n %% 3 END,
       x.state = 'complete' AND n %% 80 = 0,
       encode(sha256(('task ' || n)::bytea), 'hex'), encode(sha256(('prompt ' || n)::bytea), 'hex'),
       now() - (1 - n / %(tasks)s::float8) * interval '365 days' - interval '3 days', now(),
       (%(imports)s::bigint[])[width_bucket(n, %(starts)s::int[])]
FROM generate_series(1, %(tasks)s) AS n
CROSS JOIN LATERAL (SELECT CASE
    WHEN n <= %(complete)s THEN 'complete'
    WHEN n <= %(complete)s + %(retired)s THEN 'retired'
    WHEN n <= %(complete)s + %(retired)s + %(quarantined)s THEN 'quarantined'
    WHEN n <= %(complete)s + %(retired)s + %(quarantined)s + %(gold)s THEN 'gold' ELSE 'open' END AS state) x
CROSS JOIN LATERAL (SELECT {_RATED} AS rated) y
JOIN sentence one ON one.id = n * 31 %% 4096 JOIN sentence other ON other.id = n * 57 %% 4096
ORDER BY n
"""
_RESPONSES = f"""
INSERT INTO annotator_response (task_id, position, external_id, text, model, metadata)
SELECT t.id, place, '', a.text || E'\\n\\n- **' || b.text || E'**\\n- ' || c.text || E'\\n\\n' || d.text,
       CASE WHEN n %% {RARELY} = 3 AND place = 1 THEN '{RARE_MODEL}' ELSE 'model-' || (n + 5 * place) %% 11 END, '{{}}'
FROM annotator_task t CROSS JOIN LATERAL (SELECT t.id - %(first)s + 1 AS n) x CROSS JOIN generate_series(0, 1) AS place
JOIN sentence a ON a.id = (n * 13 + place * 7) %% 4096 JOIN sentence b ON b.id = (n * 17 + place * 11) %% 4096
JOIN sentence c ON c.id = (n * 19 + place * 3) %% 4096 JOIN sentence d ON d.id = (n * 23 + place * 5) %% 4096
WHERE t.project_id = %(project)s ORDER BY t.id, place
"""
# The raters of a task stand the same step apart, so that every two of the crew of 15 meet.
_PERSON = "(%(crew)s::bigint[])[1 + (n + place * (ARRAY[1, 2, 4, 7])[1 + n / 15 %% 4]) %% 15]"
_TASK = "FROM annotator_task t CROSS JOIN LATERAL (SELECT t.id - %(first)s + 1 AS n) x"
_HELD = """
INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, counts, leased_at,
                                  lease_expires_at)
"""
_ASSIGNMENTS = (
    f"""
    {_HELD} SELECT t.id, {_PERSON}, place + 1, 'submitted', '{{0,1}}', true, t.created_at, t.created_at
    {_TASK} CROSS JOIN LATERAL generate_series(0, t.done - 1) AS place WHERE t.project_id = %(project)s
    ORDER BY t.id, place
    """,
    # Rejected by a reviewer.
    f"""
    {_HELD} SELECT t.id, {_PERSON}, NULL, 'submitted', '{{0,1}}', false, t.created_at, t.created_at
    {_TASK} CROSS JOIN (SELECT 6) AS places (place)
    WHERE t.project_id = %(project)s AND t.state = 'complete' AND n %% 200 = 7
    """,
    # By somebody who was excluded later.
    f"""
    {_HELD} SELECT t.id, %(excluded)s, NULL, 'submitted', '{{0,1}}', false, t.created_at, t.created_at
    {_TASK} WHERE t.project_id = %(project)s AND t.state = 'complete' AND n <= 500
    """,
    # Being rated at this moment, skipped, and given back.
    f"""
    {_HELD} SELECT t.id, {_PERSON}, 3, 'leased', '{{0,1}}', true, now(), now() + interval '1 year'
    {_TASK} CROSS JOIN (SELECT 7) AS places (place)
    WHERE t.project_id = %(project)s AND t.state = 'open' AND n %% 4 = 1
        AND n BETWEEN %(tasks)s - 200 AND %(tasks)s - 100
    """,
    f"""
    {_HELD} SELECT t.id, {_PERSON}, NULL, (ARRAY['skipped', 'released', 'expired'])[1 + n %% 3], '{{0,1}}', true,
        t.created_at, t.created_at
    {_TASK} CROSS JOIN (SELECT 8) AS places (place)
    WHERE t.project_id = %(project)s AND (t.state = 'open' OR n %% 30 = 11) AND t.state <> 'gold'
        AND n <= %(tasks)s - %(untouched)s
    """,
    """
    UPDATE annotator_task t SET open_slots = open_slots - 1
    WHERE project_id = %(project)s
        AND EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id AND s.state = 'leased')
    """,
)
_WRITTEN = """
INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, preference, justification,
                                  active_seconds, guideline_version, content_hash, submitted_at, project_id,
                                  annotator_id)
"""
_ANNOTATIONS = (
    f"""
    {_WRITTEN} SELECT s.id, 1, s.id %% 50 <> 1, 'person',
        (ARRAY[-3, -2, -1, 1, 2, 3])[1 + (s.task_id %% 5 + s.id %% 2)],
        CASE WHEN s.id %% 10 = 0 THEN 'The second answer says more about the question.' ELSE '' END,
        exp(4 + random()), 12, s.id, s.leased_at + interval '1 day' * random() * 2, t.project_id, s.annotator_id
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND s.state = 'submitted' ORDER BY s.id
    """,
    f"""
    {_WRITTEN} SELECT assignment_id, 2, true, origin, preference, justification, active_seconds, guideline_version,
        content_hash, submitted_at + interval '1 hour', project_id, annotator_id
    FROM annotator_annotation WHERE NOT is_current ORDER BY id
    """,
    """
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, safe, unsafe_category, feedback, edit)
    SELECT a.id, r.id, $scores, '[]', random() < 0.98, '',
        CASE WHEN a.id %% 20 = 0 THEN 'Right, but short.' ELSE '' END,
        CASE WHEN a.id %% 20 = 0 THEN 'A longer answer, which explains.' ELSE '' END
    FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id
    JOIN annotator_response r ON r.task_id = s.task_id
    ORDER BY a.id, r.id
    """,
    """
    INSERT INTO annotator_tally (annotator_id, project_id, done)
    SELECT s.annotator_id, %(project)s, count(*) FROM annotator_assignment s WHERE s.state = 'submitted' GROUP BY 1
    """,
)
_CONSENSUS = (
    """
    INSERT INTO annotator_consensus (project_id, task_id, kept, annotators, spread, spread_of_all, preference,
                                     drop_reason, computed_at)
    SELECT t.project_id, t.id, array_agg(a.id ORDER BY a.id), t.done, t.review_spread, t.review_spread,
        (ARRAY[-3, -2, -1, 1, 2, 3])[1 + t.id %% 6],
        CASE WHEN t.review_spread > 2 THEN 'too far apart' ELSE '' END, t.created_at + interval '2 days'
    FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id AND s.slot IS NOT NULL
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    WHERE t.project_id = %(project)s AND t.state = 'complete' GROUP BY t.id
    """,
    """
    INSERT INTO annotator_label (project_id, response_id, source, scores, means, made_at)
    SELECT t.project_id, r.id, CASE WHEN t.adjudicated THEN 'adjudicated' ELSE 'consensus' END, $rounded, $means,
        t.created_at + interval '2 days'
    FROM annotator_task t JOIN annotator_response r ON r.task_id = t.id
    WHERE t.project_id = %(project)s AND t.state = 'complete' AND (t.review_spread <= 2 OR t.adjudicated)
    ORDER BY r.id
    """,
    """
    INSERT INTO annotator_adjudication (task_id, scores, reason, comment, by_id, made_at, is_current)
    SELECT t.id, jsonb_object_agg(r.id, $rounded), 'guideline_gap', 'See version 3.', %(manager)s,
        t.created_at + interval '3 days', true
    FROM annotator_task t JOIN annotator_response r ON r.task_id = t.id
    WHERE t.project_id = %(project)s AND t.adjudicated GROUP BY t.id
    """,
)
_REVIEW = (
    """
    INSERT INTO annotator_verdict (assignment_id, decision, comment, by_id, made_at)
    SELECT s.id, CASE WHEN s.counts THEN 'accepted' ELSE 'rejected' END, CASE WHEN s.counts THEN '' ELSE 'Hasty.' END,
        %(manager)s, s.leased_at + interval '4 days'
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND s.annotator_id <> %(excluded)s AND s.state = 'submitted'
        AND (NOT s.counts OR s.id %% 100 = 8)
    """,
    """
    INSERT INTO annotator_unlikelyannotation (annotation_id, task_id, unlikeliness, evidence, noted_at)
    SELECT DISTINCT ON (t.id) a.id, t.id, 3.5, jsonb_build_array(jsonb_build_object(
        'response', r.id, 'attribute', 'helpfulness', 'given', 0, 'expected', 3.2)), now() - interval '1 day'
    FROM annotator_task t JOIN annotator_assignment s ON s.task_id = t.id AND s.slot = 1
    JOIN annotator_annotation a ON a.assignment_id = s.id AND a.is_current
    JOIN annotator_response r ON r.task_id = t.id
    WHERE t.project_id = %(project)s AND t.review_reason = 'unlikely' ORDER BY t.id, r.id
    """,
    """
    INSERT INTO annotator_skip (assignment_id, reason, note, created_at)
    SELECT s.id, (ARRAY['pii', 'non_english', 'needs_coding', 'about_assistant', 'other'])[1 + s.id %% 5], '',
        s.leased_at
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND s.state = 'skipped'
    """,
    """
    INSERT INTO annotator_report (assignment_id, category, note, created_at, decision)
    SELECT s.id, 'harmful', 'Look at the second answer.', s.leased_at, ''
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    WHERE t.project_id = %(project)s AND t.state = 'quarantined'
    """,
    """
    INSERT INTO annotator_piispan (task_id, response_id, start, "end", kind, source, marked_by_id, created_at)
    SELECT s.task_id, r.id, 3, 12, 'phone', 'annotator', s.annotator_id, s.leased_at
    FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id
    JOIN annotator_response r ON r.task_id = t.id
    WHERE t.project_id = %(project)s AND t.state = 'quarantined'
    """,
    f"""
    INSERT INTO annotator_piispan (task_id, turn, start, "end", kind, source, created_at)
    SELECT t.id, 0, 3, 12, 'email', 'detected', t.created_at
    {_TASK} WHERE t.project_id = %(project)s AND n %% 300 = 0
    """,
    f"""
    INSERT INTO annotator_gold (task_id, use)
    SELECT t.id, (ARRAY['stream', 'practice', 'test'])[1 + n %% 3] {_TASK}
    WHERE t.project_id = %(project)s AND t.state = 'gold'
    """,
    """
    INSERT INTO annotator_expertrating (gold_id, response_id, scores, explanation)
    SELECT g.id, r.id, $rounded, 'It answers the question.'
    FROM annotator_gold g JOIN annotator_response r ON r.task_id = g.task_id
    """,
    """
    INSERT INTO annotator_qualificationrun (member_id, kind, number, started_at, finished_at, kappa, passed, draft)
    SELECT id, 'test', 1, created_at, created_at, 0.7, true, '{}' FROM annotator_membership
    WHERE project_id = %(project)s AND role = 'annotator'
    """,
)
FILL = (_RESPONSES, *_ASSIGNMENTS, *_ANNOTATIONS, *_CONSENSUS, *_REVIEW)
# Every response has a reward of the champion, one in seven another one of an earlier version.
SCORES = """
INSERT INTO rewards_score (reward_model_id, response_id, scores, reward, uncertainty, token_key, created_at)
SELECT m, r.id, $means, 3 * random() + r.id %% 5 / 5.0, random() / 4, gen_random_uuid(), now() - interval '1 day'
FROM annotator_task t JOIN annotator_response r ON r.task_id = t.id,
    unnest(%(models)s::bigint[]) WITH ORDINALITY AS x (m, place)
WHERE t.project_id = %(project)s AND (x.place = 1 OR r.id %% 7 = 0) ORDER BY m, r.id
"""
SNAPSHOT_TASKS = """
INSERT INTO rewards_snapshottask (task_id, snapshot_id)
SELECT id, %(snapshot)s FROM annotator_task WHERE project_id = %(project)s AND state = 'complete'
"""
AUDIT = """
INSERT INTO annotator_auditentry (at, actor, via, project, project_id, action, subject, details, token)
SELECT now() - (%(entries)s - n) * interval '2 minutes', 'annotator-' || 1 + n %% 15, 'page', %(slug)s, %(project)s,
    CASE WHEN n %% 40 = 0 THEN 'task.changed' WHEN n %% 500 = 1 THEN 'labels.exported' ELSE 'annotation.submitted' END,
    'task ' || %(first)s + n %% %(tasks)s, '{}', ''
FROM generate_series(1, %(entries)s) AS n
"""
