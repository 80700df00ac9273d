"""Three responses and more are ranked: each of the task's exactly once, in tiers, the best first."""

from django.db import migrations, models
from django.db.models import Q

from annotator.models.ranking import tiers_of_ids

TIERS = "[[response, ...], ...]: tiers of ids, the best first"
# After the row, so that the CHECK has seen to its shape.
MAKE = """
CREATE FUNCTION annotator_ranking_of_every_response() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE task bigint; ranked bigint[]; responses bigint[];
BEGIN
    IF TG_TABLE_NAME = 'annotator_annotation' THEN
        SELECT s.task_id INTO task FROM annotator_assignment s WHERE s.id = NEW.assignment_id;
    ELSE
        task := NEW.task_id;
    END IF;
    SELECT array_agg(listed.id::bigint ORDER BY listed.id::bigint) INTO ranked
        FROM jsonb_array_elements(NEW.ranking) AS tier (ids), jsonb_array_elements_text(tier.ids) AS listed (id);
    SELECT array_agg(r.id ORDER BY r.id) INTO responses FROM annotator_response r WHERE r.task_id = task;
    IF ranked IS DISTINCT FROM responses OR cardinality(responses) < 3 THEN
        RAISE EXCEPTION 'ranking_of_every_response: task % has responses %, ranked are %', task, responses, ranked
            USING ERRCODE = 'check_violation', CONSTRAINT = 'ranking_of_every_response';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER ranking_of_every_response AFTER INSERT OR UPDATE OF ranking ON annotator_annotation
    FOR EACH ROW WHEN (NEW.ranking IS NOT NULL) EXECUTE FUNCTION annotator_ranking_of_every_response();
CREATE TRIGGER ranking_of_every_response AFTER INSERT OR UPDATE OF ranking ON annotator_adjudication
    FOR EACH ROW WHEN (NEW.ranking IS NOT NULL) EXECUTE FUNCTION annotator_ranking_of_every_response();
"""
DROP = """
DROP TRIGGER ranking_of_every_response ON annotator_adjudication;
DROP TRIGGER ranking_of_every_response ON annotator_annotation;
DROP FUNCTION annotator_ranking_of_every_response();
"""
# Counts of agreement have a column more, so that those of before cannot be read; the light worker counts again.
COUNT_AGAIN = """
DELETE FROM annotator_agreementstate;
DELETE FROM annotator_agreementtotal;
DELETE FROM annotator_countedtask;
DELETE FROM annotator_staleagreement;
INSERT INTO annotator_staleagreement (project_id, task_id) SELECT t.project_id, t.id FROM annotator_task t
    WHERE EXISTS (SELECT FROM annotator_assignment s WHERE s.task_id = t.id AND s.state = 'submitted');
"""


class Migration(migrations.Migration):
    dependencies = [("annotator", "0028_active_seconds_within_a_week")]
    operations = [
        migrations.AddField("annotation", "ranking", models.JSONField(blank=True, help_text=TIERS, null=True)),
        migrations.AddField("adjudication", "ranking", models.JSONField(blank=True, help_text=TIERS, null=True)),
        migrations.AddField(
            "consensus",
            "pairs",
            models.JSONField(
                db_default=[], default=list, help_text="[[better, worse], ...]: responses that rankings tell apart"
            ),
        ),
        migrations.AddConstraint(
            "annotation",
            models.CheckConstraint(condition=tiers_of_ids("ranking"), name="ranking_is_tiers_of_ids"),
        ),
        migrations.AddConstraint(
            "annotation",
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(ranking__isnull=True), name="a_preference_or_a_ranking"
            ),
        ),
        migrations.AddConstraint(
            "adjudication",
            models.CheckConstraint(condition=tiers_of_ids("ranking"), name="settled_ranking_is_tiers_of_ids"),
        ),
        migrations.AddConstraint(
            "adjudication",
            models.CheckConstraint(
                condition=Q(preference__isnull=True) | Q(ranking__isnull=True),
                name="a_settled_preference_or_a_ranking",
            ),
        ),
        migrations.RunSQL(MAKE, DROP),
        migrations.RunSQL(COUNT_AGAIN, migrations.RunSQL.noop),
    ]
