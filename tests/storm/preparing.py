"""A process of its own: makes the tables, the crew, its manager and the tasks, and prints their tokens as JSON.

A trigger writes down what the product does not keep: how often a lease ran out, and whether anybody held two open tasks
at once, but for those ahead.
"""

import json
import os
import sys

import django
from django.core.management import call_command
from django.db import connection

SLUG = "storm"
_WATCH = """
CREATE TABLE storm_ran_out (assignment bigint);
CREATE TABLE storm_two_at_once (annotator bigint);
CREATE FUNCTION storm_watch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = 'expired' THEN
        INSERT INTO storm_ran_out VALUES (NEW.id);
    ELSIF NEW.state = 'leased' AND EXISTS (
        SELECT FROM annotator_assignment s JOIN annotator_task t ON t.id = s.task_id AND t.state = 'open'
        WHERE s.annotator_id = NEW.annotator_id AND s.state = 'leased' AND s.id <> NEW.id
            AND s.shift IS NULL AND NEW.shift IS NULL
    ) THEN
        INSERT INTO storm_two_at_once VALUES (NEW.annotator_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER storm_watch AFTER INSERT OR UPDATE OF state ON annotator_assignment
    FOR EACH ROW EXECUTE FUNCTION storm_watch();
"""


def main(annotators: int, tasks: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    django.setup()
    from benchmarks import filling

    call_command("migrate", interactive=False, verbosity=0)
    everybody = filling.make_crew(annotators + 1)
    project = filling.make_project(SLUG, crew=everybody, tasks=tasks, characters=100)
    manager = list(everybody.values())[-1]
    manager.memberships.filter(project=project).update(role="manager")
    with connection.cursor() as cursor:
        cursor.execute(_WATCH)
    print(json.dumps(list(everybody)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
