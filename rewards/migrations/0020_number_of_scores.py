"""Keeps the number of scores with each model, by triggers."""

from django.db import migrations, models

# The lock keeps scores away that would be neither in the count nor seen by the triggers.
COUNT = """
LOCK TABLE rewards_score IN SHARE MODE;
UPDATE rewards_rewardmodel m SET scored = x.number
    FROM (SELECT reward_model_id, count(*) AS number FROM rewards_score GROUP BY 1) x WHERE m.id = x.reward_model_id;
"""
KEEP = """
CREATE OR REPLACE FUNCTION rewards_scores_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE sign int := CASE TG_OP WHEN 'INSERT' THEN 1 ELSE -1 END;
BEGIN
    PERFORM FROM rewards_rewardmodel m WHERE m.id IN (SELECT reward_model_id FROM changed)
        ORDER BY m.id FOR NO KEY UPDATE;
    UPDATE rewards_rewardmodel m SET scored = m.scored + sign * x.number
        FROM (SELECT reward_model_id, count(*) AS number FROM changed GROUP BY 1) x WHERE m.id = x.reward_model_id;
    RETURN NULL;
END $$;
CREATE TRIGGER new_scores_are_counted AFTER INSERT ON rewards_score REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_scores_are_counted();
CREATE TRIGGER deleted_scores_are_counted AFTER DELETE ON rewards_score REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION rewards_scores_are_counted();
"""
FORGET = """
DROP TRIGGER new_scores_are_counted ON rewards_score;
DROP TRIGGER deleted_scores_are_counted ON rewards_score;
DROP FUNCTION rewards_scores_are_counted();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0019_drop_redundant_indexes"),
    ]

    operations = [
        migrations.AddField(
            "rewardmodel",
            "scored",
            models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="responses that have its score; triggers keep the number",
            ),
        ),
        migrations.RunSQL(COUNT + KEEP, FORGET),
    ]
