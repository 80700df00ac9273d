"""Takes over the tokens that there were, with every scope, and marks the accounts that the demo has made."""

from typing import Any

from django.db import migrations

# The package's own table, which our model has taken the place of: not there where this is a new installation.
TAKE_OVER = """
DO $$ BEGIN
    IF to_regclass('knox_authtoken') IS NOT NULL THEN
        INSERT INTO annotator_token (digest, token_key, user_id, created, expiry, name, scopes)
            SELECT digest, token_key, user_id, created, expiry, '', '{read,annotate,manage,score}' FROM knox_authtoken
            ORDER BY created, digest ON CONFLICT (digest) DO NOTHING;
        DROP TABLE knox_authtoken;
    END IF;
END $$
"""
# An account of one of these names that a command made: people are made by REST and the admin, and `createsuperuser`
# leaves no entry.
MARK = """
UPDATE annotator_user SET made_by_demo = true
WHERE username IN ('manager', 'alice', 'bob', 'erin') AND EXISTS (
    SELECT FROM annotator_auditentry entry
    WHERE entry.action = 'account.created' AND entry.via = 'command' AND entry.subject = 'account ' || username
    AND entry.at BETWEEN date_joined - interval '1 minute' AND date_joined + interval '1 minute')
   OR username ~ '^simulated-[0-9]+$' AND NOT is_active AND password = '!'
"""


def take_over(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(TAKE_OVER)


def mark(apps: Any, schema_editor: Any) -> None:
    schema_editor.execute(MARK)


class Migration(migrations.Migration):
    dependencies = [("annotator", "0021_tokens_and_login_failures")]

    operations = [
        migrations.RunPython(take_over, migrations.RunPython.noop, elidable=True),
        migrations.RunPython(mark, migrations.RunPython.noop, elidable=True),
    ]
