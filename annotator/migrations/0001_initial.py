"""All tables of the human half; databases of commit 6be395a0 have them already."""

import uuid

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.functions.math
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import annotator.models.account_names
import annotator.models.member
import annotator.models.project
import annotator.models.rubric
import annotator.models.scores
import annotator.models.user
from annotator.infrastructure.db import triggers
from annotator.managing.preset_rubrics import add_rubrics

SEQUENCE = "CREATE SEQUENCE annotator_task_line_seq"
# What is read as a whole and is compact already is stored uncompressed.
STORAGE = """
ALTER TABLE annotator_agreementtotal ALTER COLUMN cells SET STORAGE EXTERNAL;
ALTER TABLE annotator_countedtask ALTER COLUMN ratings SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True
    replaces = [
        ("annotator", "0001_tables_of_the_human_half"),
        ("annotator", "0002_rubrics"),
        ("annotator", "0003_slots_within_wanted"),
        ("annotator", "0004_gold_and_settings"),
        ("annotator", "0005_personal_information"),
        ("annotator", "0006_claims_review_and_audit"),
        ("annotator", "0007_held_by_triggers"),
        ("annotator", "0008_agreement_totals"),
        ("annotator", "0009_legal_transitions"),
        ("annotator", "0010_policy_of_the_loop"),
        ("annotator", "0011_uncertain_first"),
        ("annotator", "0012_unlikely_annotations"),
        ("annotator", "0013_extras"),
        ("annotator", "0014_slots_for_what_counts"),
        ("annotator", "0015_counting_within_wanted"),
        ("annotator", "0016_public_numbers_in_drafts"),
        ("annotator", "0017_projects_by_number"),
        ("annotator", "0018_a_pseudonym_for_everybody"),
        ("annotator", "0019_rows_by_number"),
        ("annotator", "0020_settings_within_their_bounds"),
        ("annotator", "0021_tokens_and_login_failures"),
        ("annotator", "0022_tokens_and_demo_accounts_of_before"),
        ("annotator", "0023_background_failures"),
        ("annotator", "0024_audit_is_never_truncated"),
        ("annotator", "0025_set_aside_waits_for_review"),
        ("annotator", "0026_imports"),
        ("annotator", "0027_active_seconds_clipped"),
        ("annotator", "0028_active_seconds_within_a_week"),
        ("annotator", "0029_rankings"),
        ("annotator", "0030_side_by_side_unless_chosen"),
        ("annotator", "0031_a_rating_may_become_a_skip"),
        ("annotator", "0032_labels_in_plain_words"),
        ("annotator", "0033_an_open_task_has_no_consensus"),
        ("annotator", "0034_no_order_by_uncertainty"),
        ("annotator", "0035_ties_in_preferences"),
        ("annotator", "0036_scales_and_versions_of_rubrics"),
        ("annotator", "0037_general_rubrics"),
        ("annotator", "0038_figures_of_the_overview"),
        ("annotator", "0039_words_of_tasks"),
        ("annotator", "0040_import_jobs"),
        ("annotator", "0041_invitations_and_password_links"),
        ("annotator", "0042_assignments_of_an_annotator_in_order"),
        ("annotator", "0043_bulk_changes"),
        ("annotator", "0044_export_jobs"),
        ("annotator", "0045_webhooks"),
        ("annotator", "0046_releases"),
        ("annotator", "0047_written_answers"),
        ("annotator", "0048_idempotent_calls"),
        ("annotator", "0049_one_index_of_responses_by_task"),
        ("annotator", "0050_imports_from_the_hub"),
        ("annotator", "0051_segment_scores"),
        ("annotator", "0052_segments_of_gold_tasks"),
        ("annotator", "0053_drop_redundant_indexes"),
        ("annotator", "0054_project_of_annotations"),
        ("annotator", "0055_audit_by_month"),
        ("annotator", "0056_scanned_tasks_first"),
        ("annotator", "0057_short_trigger_conditions"),
        ("annotator", "0058_project_of_labels"),
        ("annotator", "0059_edits_by_response"),
        ("annotator", "0060_answers_of_import_jobs"),
    ]

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
    ]

    operations = [
        migrations.CreateModel(
            name='Project',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slug', models.SlugField(help_text="Used in the project's URLs. Links to the old addresses stop working.", unique=True, validators=[annotator.models.account_names.require_addressable], verbose_name='Name in addresses')),
                ('name', models.CharField(max_length=120, verbose_name='Name')),
                ('description', models.TextField(blank=True, help_text='What the ratings are for. Everybody in the project sees it.', verbose_name='Purpose')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('archived_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('deleted_at', models.DateTimeField(blank=True, editable=False, help_text='the rest goes in portions', null=True)),
                ('releases_made', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='the number of the last release, which may be deleted')),
                ('base_annotators', models.PositiveSmallIntegerField(default=3, help_text='How many people rate each task at first.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(25)], verbose_name='Annotators for each task')),
                ('max_annotators', models.PositiveSmallIntegerField(default=5, help_text='The most people for one task, if the ratings are too far apart.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(25)], verbose_name='Maximum annotators per task')),
                ('escalate_above', models.PositiveSmallIntegerField(default=2, help_text='If the spread is above this, more annotators are asked.', validators=[django.core.validators.MaxValueValidator(6)], verbose_name='Ask more above a spread of')),
                ('keep', models.PositiveSmallIntegerField(default=3, help_text='The label is the mean of this many annotations, those that are closest to each other.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(25)], verbose_name='Annotations kept')),
                ('drop_above', models.PositiveSmallIntegerField(default=2, help_text='If the spread is above this, the task is dropped.', validators=[django.core.validators.MaxValueValidator(6)], verbose_name='Drop above a spread of')),
                ('spread_scope', models.CharField(choices=[('kept', 'Kept'), ('all', 'All')], default='kept', help_text='Whether the decision to drop a task looks at the kept annotations or at all of them.', max_length=4, verbose_name='Annotations whose spread drops a task')),
                ('spread_attribute', models.SlugField(default='helpfulness', help_text='The spread is the difference between the highest and the lowest rating.', verbose_name='Attribute whose spread decides')),
                ('spread_share', models.FloatField(db_default=0.0, default=0.0, help_text="For an aspect of segments. 0: one segment with a wider spread is enough; 0.2: a fifth of a response's segments may have one.", validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(0.9)], verbose_name='Share of segments that may differ more')),
                ('segment_unit', models.CharField(choices=[('sentence', 'Sentence'), ('step', 'Step'), ('text', 'Whole response')], db_default='sentence', default='sentence', help_text='What annotators rate one by one, if the rubric has attributes of segments. Responses that somebody has been given to rate keep their segments.', max_length=10, verbose_name='Segment unit')),
                ('allow_recut', models.BooleanField(db_default=False, default=False, help_text='Ratings of different segments are compared on the finest cut that they have in common.', verbose_name='Annotators may join and split segments')),
                ('lease_minutes', models.PositiveSmallIntegerField(default=30, help_text='How long an annotator who does nothing keeps a task.', validators=[django.core.validators.MinValueValidator(1)], verbose_name='Minutes until a task goes back')),
                ('paused', models.BooleanField(default=False, help_text='Nobody gets a task. Annotators can still submit what they have begun.', verbose_name='Paused')),
                ('quota', models.PositiveIntegerField(default=0, help_text='Tasks that one annotator may rate; 0 means no limit.', verbose_name='Tasks for one annotator')),
                ('allow_ties', models.BooleanField(default=False, verbose_name='Offer “equally good” as an answer')),
                ('ask_preference', models.BooleanField(default=False, help_text='Annotators choose between two responses, or rank more than two.', verbose_name='Ask which response is better')),
                ('ask_safety', models.BooleanField(default=False, help_text='A response may be marked as unsafe and is rated all the same.', verbose_name='Ask whether each response is safe')),
                ('ask_confidence', models.BooleanField(default=False, help_text='Three levels: very sure, somewhat sure and not sure.', verbose_name='Ask how sure the annotator is')),
                ('ask_feedback', models.BooleanField(db_default=False, default=False, help_text='A text on what is good and bad about it. It is required.', verbose_name='Ask for written feedback on each response')),
                ('ask_edit', models.BooleanField(db_default=False, default=False, help_text='Nobody has to. A manager can have the edits rated as responses.', verbose_name='Offer to write a better version of a response')),
                ('ask_language', models.BooleanField(db_default=False, default=False, help_text='The language that the task is in, besides the one it may have come with.', verbose_name='Ask for the language')),
                ('domains', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, db_default=[], default=list, help_text='Such as General, STEM, Code. Without any, the domain is not asked for.', size=None, validators=[annotator.models.rubric.names_of_domains], verbose_name='Domains to choose from')),
                ('qualification_required', models.BooleanField(default=False, help_text='Annotators must pass a test of gold tasks before their first task.', verbose_name='Annotators must pass a test first')),
                ('qualification_threshold', models.FloatField(default=0.5, help_text='Mean weighted kappa with the experts that is needed to pass the test.', validators=[django.core.validators.MinValueValidator(-1), django.core.validators.MaxValueValidator(1)], verbose_name='Kappa that passes the test')),
                ('qualification_tries', models.PositiveSmallIntegerField(default=3, help_text='How often the test may be taken.', validators=[django.core.validators.MinValueValidator(1)], verbose_name='Test attempts')),
                ('gold_every', models.PositiveSmallIntegerField(default=0, help_text='About one in this many tasks is a gold task; 0 means none.', verbose_name='Gold task frequency (1 in N)')),
                ('gold_window', models.PositiveSmallIntegerField(default=10, help_text="How many of an annotator's latest gold tasks are judged.", validators=[django.core.validators.MinValueValidator(2)], verbose_name='Gold tasks that are judged')),
                ('gold_threshold', models.FloatField(default=0.3, help_text='Annotators are paused if their mean weighted kappa with the experts is below this.', validators=[django.core.validators.MinValueValidator(-1), django.core.validators.MaxValueValidator(1)], verbose_name='Kappa below which annotators are paused')),
                ('retrain_after_labels', models.PositiveIntegerField(default=0, help_text='Retrain after this many new labels; 0 turns this off.', verbose_name='Retrain after new labels')),
                ('retrain_after_hours', models.PositiveIntegerField(default=0, help_text='Retrain when the last snapshot is this old and there are new labels; 0 turns this off.', verbose_name='Retrain after hours')),
                ('retrain_cooldown_minutes', models.PositiveIntegerField(default=30, help_text='Shortest time between the end of a run and the next automatic one.', verbose_name='Minutes between runs')),
                ('promote_automatically', models.BooleanField(default=True, help_text="Otherwise a better model waits for a manager's decision.", verbose_name='Promote a better model automatically')),
                ('review_unlikely_percent', models.PositiveSmallIntegerField(default=2, help_text='Percentage of annotations that go to review, because a model finds them most unlikely; 0 means none.', validators=[django.core.validators.MaxValueValidator(20)], verbose_name='Percent of annotations sent to review')),
                ('validation_share', models.FloatField(default=0.1, help_text='Share of prompts held out to judge models. Only this share and its text decide whether a prompt is held out.', validators=[django.core.validators.MinValueValidator(0.01), django.core.validators.MaxValueValidator(0.5)], verbose_name='Share of prompts held out')),
                ('training_config', models.JSONField(blank=True, default=dict, help_text='Settings for the trainer, such as epochs.', validators=[annotator.models.project.usable_by_the_trainer], verbose_name='Settings of the trainer')),
            ],
            options={
                'verbose_name': 'project',
                'verbose_name_plural': 'projects',
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='AuditArchive',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('month', models.DateField(help_text='its first day', unique=True)),
                ('file', models.CharField(max_length=100)),
                ('entries', models.PositiveBigIntegerField()),
                ('sha256', models.CharField(help_text='of the file', max_length=64)),
                ('chain_before', models.CharField(max_length=64)),
                ('chain', models.CharField(help_text='after the last entry', max_length=64)),
                ('archived_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'audit archive',
                'verbose_name_plural': 'audit archives',
            },
        ),
        migrations.CreateModel(
            name='Task',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=200, verbose_name='external id')),
                ('conversation', models.JSONField()),
                ('metadata', models.JSONField(blank=True, default=dict, verbose_name='metadata')),
                ('priority', models.SmallIntegerField(default=0, verbose_name='priority')),
                ('state', models.CharField(choices=[('open', 'Open'), ('complete', 'Complete'), ('quarantined', 'Quarantined'), ('retired', 'Retired'), ('gold', 'Gold')], default='open', max_length=12, verbose_name='state')),
                ('slots_wanted', models.PositiveSmallIntegerField(default=3, verbose_name='slots wanted')),
                ('open_slots', models.PositiveSmallIntegerField(default=3, verbose_name='open slots')),
                ('done', models.PositiveSmallIntegerField(db_default=0)),
                ('begun', models.GeneratedField(db_persist=True, expression=models.ExpressionWrapper(models.Q(('open_slots__lt', models.F('slots_wanted'))), output_field=models.BooleanField()), output_field=models.BooleanField())),
                ('shuffle', models.IntegerField(db_default=django.db.models.functions.comparison.Cast(django.db.models.functions.math.Floor(django.db.models.expressions.CombinedExpression(django.db.models.functions.math.Random(), '*', models.Value(2147483648))), models.IntegerField()))),
                ('line', models.BigIntegerField(db_default=0)),
                ('language', models.CharField(blank=True, db_default='', help_text='empty: for every annotator', max_length=16)),
                ('review_reason', models.CharField(blank=True, choices=[('dropped', 'Ratings too far apart'), ('safety', 'Disagreement on safety'), ('quarantine', 'Set aside'), ('unlikely', 'Unlikely according to the model')], db_default='', max_length=12)),
                ('review_spread', models.SmallIntegerField(db_default=0)),
                ('adjudicated', models.BooleanField(db_default=False, help_text='a reviewer has set its labels')),
                ('content_hash', models.CharField(max_length=64)),
                ('prompt_hash', models.CharField(max_length=64)),
                ('imported_preference', models.SmallIntegerField(blank=True, null=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('pii_scanned_at', models.DateTimeField(blank=True, null=True, verbose_name='scanned for personal information')),
                ('redacted_at', models.DateTimeField(blank=True, null=True, verbose_name='redacted at')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='annotator.project', verbose_name='project')),
            ],
            options={
                'verbose_name': 'task',
                'verbose_name_plural': 'tasks',
            },
        ),
        migrations.CreateModel(
            name='Import',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('made_at', models.DateTimeField()),
                ('file_name', models.CharField(blank=True, max_length=200)),
                ('file_hash', models.CharField(blank=True, help_text='SHA-256 of the bytes as they came', max_length=64)),
                ('file_bytes', models.BigIntegerField(default=0)),
                ('layouts', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=list, size=None)),
                ('created', models.PositiveIntegerField(default=0)),
                ('existing', models.PositiveIntegerField(default=0)),
                ('rejected', models.PositiveIntegerField(default=0)),
                ('first_task', models.BigIntegerField(blank=True, null=True)),
                ('last_task', models.BigIntegerField(blank=True, null=True)),
                ('taken_back_at', models.DateTimeField(blank=True, null=True)),
                ('removed', models.PositiveIntegerField(default=0)),
                ('all_gone_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='LoginFailures',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('count', models.PositiveIntegerField()),
                ('ends_at', models.DateTimeField(db_index=True, help_text='when counting begins anew')),
            ],
            options={
                'verbose_name_plural': 'login failures',
            },
        ),
        migrations.CreateModel(
            name='QueueOutage',
            fields=[
                ('queue', models.CharField(max_length=10, primary_key=True, serialize=False)),
                ('since', models.DateTimeField()),
                ('announced_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                ('staff_by_role', models.BooleanField(default=False, editable=False)),
                ('username', models.CharField(help_text='at most 150 letters, digits and @ . + - _', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator(), annotator.models.account_names.require_addressable, annotator.models.account_names.require_unmistakable])),
                ('layout', models.CharField(choices=[('below', 'Below'), ('beside', 'Beside')], default='beside', max_length=10)),
                ('keys', models.JSONField(blank=True, default=dict, help_text='own keys of the rating page: {action: key}')),
                ('must_change_password', models.BooleanField(default=False, help_text='somebody else chose the password; the pages ask for another one first')),
                ('made_by_demo', models.BooleanField(default=False, editable=False)),
                ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
            ],
            options={
                'verbose_name': 'user',
                'verbose_name_plural': 'users',
                'db_table': 'annotator_user',
                'abstract': False,
            },
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='AgreementState',
            fields=[
                ('project', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='agreement_state', serialize=False, to='annotator.project')),
                ('attributes', models.JSONField(default=list)),
                ('refreshed_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='ProjectFigures',
            fields=[
                ('project', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='figures', serialize=False, to='annotator.project')),
                ('figures', models.JSONField(default=dict)),
                ('as_of', models.DateTimeField(null=True)),
                ('took', models.FloatField(default=0)),
                ('wanted_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='AgreementTotal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('project', 'Project'), ('bucket', 'Bucket'), ('week', 'Week'), ('rater', 'Rater'), ('pair', 'Pair')], max_length=8)),
                ('one', models.BigIntegerField(default=0)),
                ('other', models.BigIntegerField(default=0)),
                ('shared', models.IntegerField(default=0)),
                ('cells', models.BinaryField()),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='agreement_totals', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='Assignment',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('slot', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('state', models.CharField(choices=[('leased', 'Leased'), ('submitted', 'Submitted'), ('skipped', 'Skipped'), ('released', 'Released'), ('expired', 'Expired')], default='leased', max_length=10)),
                ('response_order', django.contrib.postgres.fields.ArrayField(base_field=models.PositiveSmallIntegerField(), default=list, size=None)),
                ('counts', models.BooleanField(db_default=True)),
                ('extra', models.BooleanField(db_default=False, help_text='submitted when its task had no room; a reviewer may admit it')),
                ('leased_at', models.DateTimeField()),
                ('lease_expires_at', models.DateTimeField()),
                ('annotator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='assignments', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='assignments', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='Annotation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('revision', models.PositiveSmallIntegerField(default=1, verbose_name='revision')),
                ('is_current', models.BooleanField(default=True, verbose_name='is current')),
                ('origin', models.CharField(choices=[('person', 'Person'), ('imported', 'Imported'), ('simulated', 'Simulated')], default='person', max_length=10, verbose_name='origin')),
                ('preference', models.SmallIntegerField(blank=True, null=True, verbose_name='preference')),
                ('ranking', models.JSONField(blank=True, help_text='Tiers of response ids, the best first: [[response, ...], ...].', null=True, verbose_name='ranking')),
                ('justification', models.TextField(blank=True, verbose_name='justification')),
                ('domain', models.CharField(blank=True, db_default='', default='', max_length=40, verbose_name='domain')),
                ('language', models.CharField(blank=True, db_default='', default='', max_length=16, verbose_name='language')),
                ('aspects', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(), blank=True, db_default=[], default=list, help_text="the attributes of segments, in the order of the ratings' segment scores", size=None)),
                ('active_seconds', models.FloatField(blank=True, null=True, verbose_name='active seconds')),
                ('guideline_version', models.PositiveIntegerField(default=0, verbose_name='guideline version')),
                ('rubric_version', models.PositiveSmallIntegerField(db_default=1, default=1, verbose_name='rubric version')),
                ('content_hash', models.CharField(max_length=64, verbose_name='content hash')),
                ('submitted_at', models.DateTimeField(verbose_name='submitted at')),
                ('annotator', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.project')),
                ('assignment', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='annotations', to='annotator.assignment', verbose_name='assignment')),
            ],
            options={
                'verbose_name': 'annotation',
                'verbose_name_plural': 'annotations',
            },
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('actor', models.CharField(blank=True, help_text='username; empty: the system itself', max_length=150)),
                ('via', models.CharField(help_text='page, rest, admin, command or worker', max_length=20)),
                ('token', models.CharField(blank=True, help_text="the first characters of the token's digest", max_length=25, verbose_name='token')),
                ('project', models.CharField(blank=True, help_text='its slug at the time', max_length=50, verbose_name='project')),
                ('project_id', models.BigIntegerField(blank=True, help_text='its number, which no later project gets', null=True)),
                ('action', models.CharField(max_length=40)),
                ('subject', models.CharField(help_text='what was changed, like: task t-17', max_length=300, verbose_name='subject')),
                ('details', models.JSONField(default=dict)),
            ],
            options={
                'verbose_name': 'audit entry',
                'verbose_name_plural': 'audit entries',
                'indexes': [models.Index(fields=['-at'], name='audit_by_time'), models.Index(fields=['project_id', '-at'], name='audit_by_project'), models.Index(condition=models.Q(('action__in', ('task.changed', 'task.redacted', 'task.released', 'task.retired', 'label.withdrawn'))), fields=['project_id', 'subject'], name='audit_by_task')],
            },
        ),
        migrations.CreateModel(
            name='BackgroundFailure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.CharField(max_length=60)),
                ('first_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('times', models.PositiveIntegerField(default=1)),
                ('error', models.CharField(help_text='of the last time, without secrets', max_length=500)),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='background_failures', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='BulkChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('action', models.CharField(choices=[('priority', 'Set the priority'), ('retire', 'Retire'), ('reopen', 'Bring back into use'), ('release', 'Quarantine: false alarm, release'), ('uphold', 'Quarantine: justified, retire')], max_length=10)),
                ('priority', models.SmallIntegerField(blank=True, help_text='the new one, where the action sets it', null=True)),
                ('made_at', models.DateTimeField()),
                ('chosen', models.PositiveIntegerField(help_text='tasks that were chosen')),
                ('changed', models.PositiveIntegerField(default=0, help_text='tasks that the action applied to')),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('undo_asked_at', models.DateTimeField(blank=True, null=True)),
                ('put_back', models.PositiveIntegerField(default=0, help_text='tasks that are as before again')),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='bulk_changes', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='CountedTask',
            fields=[
                ('task', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='+', serialize=False, to='annotator.task')),
                ('ratings', models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name='TaskWords',
            fields=[
                ('task', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='words', serialize=False, to='annotator.task')),
                ('facets', django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None)),
                ('words', django.contrib.postgres.search.SearchVectorField()),
            ],
        ),
        migrations.CreateModel(
            name='Consensus',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kept', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, help_text='ids of the annotations that make the label', size=None)),
                ('annotators', models.PositiveSmallIntegerField()),
                ('spread', models.FloatField(help_text='of the deciding attribute over the kept annotations', null=True)),
                ('spread_of_all', models.FloatField(help_text='of the deciding attribute over all annotations', null=True)),
                ('preference', models.SmallIntegerField(null=True)),
                ('pairs', models.JSONField(db_default=[], default=list, help_text='[[better, worse], ...]: responses that rankings tell apart')),
                ('drop_reason', models.CharField(blank=True, max_length=60)),
                ('computed_at', models.DateTimeField()),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.project')),
                ('task', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='consensus', to='annotator.task')),
            ],
            options={
                'verbose_name_plural': 'consensus',
            },
        ),
        migrations.CreateModel(
            name='ChangedTask',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('applied', models.BooleanField(null=True)),
                ('state', models.CharField(blank=True, help_text="the task's state before", max_length=12)),
                ('priority', models.SmallIntegerField(default=0, help_text="the task's priority before")),
                ('reports', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('put_back', models.BooleanField(null=True)),
                ('change', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='tasks', to='annotator.bulkchange')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bulk_changes', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='Adjudication',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.JSONField()),
                ('aspects', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None)),
                ('segments', models.JSONField(blank=True, db_default={}, default=dict, help_text='{response: [[score, ...], ...]}, in the order of the aspects')),
                ('preference', models.SmallIntegerField(blank=True, null=True)),
                ('ranking', models.JSONField(blank=True, help_text='[[response, ...], ...]: tiers of ids, the best first', null=True)),
                ('reason', models.CharField(choices=[('ambiguous_prompt', 'The prompt can be read in more than one way'), ('guideline_gap', 'The guidelines leave this open'), ('slip', 'Somebody made a mistake'), ('other', 'Another reason')], max_length=20)),
                ('comment', models.TextField(blank=True)),
                ('made_at', models.DateTimeField()),
                ('is_current', models.BooleanField(default=True)),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='adjudications', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='Draft',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('form', models.JSONField(default=dict)),
                ('saved_at', models.DateTimeField()),
                ('assignment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='draft', to='annotator.assignment')),
            ],
        ),
        migrations.CreateModel(
            name='Exclusion',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.TextField(verbose_name='reason')),
                ('made_at', models.DateTimeField(verbose_name='excluded at')),
                ('readmitted_at', models.DateTimeField(blank=True, help_text="Since then, the annotator's work is being brought back.", null=True, verbose_name='readmitted at')),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='exclusions', to=settings.AUTH_USER_MODEL, verbose_name='annotator')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='excluded by')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='exclusions', to='annotator.project', verbose_name='project')),
            ],
            options={
                'verbose_name': 'exclusion',
                'verbose_name_plural': 'exclusions',
            },
        ),
        migrations.CreateModel(
            name='ExportJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('layout', models.CharField(max_length=30)),
                ('format', models.CharField(max_length=10)),
                ('gzip', models.BooleanField(default=False)),
                ('filters', models.JSONField(default=dict, help_text='the query parameters that choose rows')),
                ('fields', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, default=list, size=None)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('working', 'Working'), ('done', 'Done'), ('failed', 'Failed'), ('expired', 'Expired'), ('withdrawn', 'Withdrawn')], default='waiting', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='counts up with each worker')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='workers that were lost, and the current one')),
                ('rows_expected', models.PositiveBigIntegerField(blank=True, help_text='an estimate', null=True)),
                ('rows_done', models.PositiveBigIntegerField(default=0)),
                ('bytes_done', models.BigIntegerField(default=0)),
                ('sha256', models.CharField(blank=True, help_text='of the file; empty while there is none', max_length=64)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='export_jobs', to='annotator.project')),
                ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Gold',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('use', models.CharField(choices=[('practice', 'Practice'), ('test', 'Test'), ('stream', 'Stream')], max_length=10, verbose_name='use')),
                ('task', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='gold', to='annotator.task', verbose_name='task')),
            ],
            options={
                'verbose_name': 'gold task',
                'verbose_name_plural': 'gold tasks',
            },
        ),
        migrations.CreateModel(
            name='Guideline',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('text', models.TextField(verbose_name='text')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='guidelines', to='annotator.project')),
            ],
            options={
                'verbose_name': 'guideline',
                'verbose_name_plural': 'guidelines',
                'ordering': ['-version'],
            },
        ),
        migrations.CreateModel(
            name='IdempotentCall',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=128)),
                ('fingerprint', models.CharField(help_text='a digest of method, address and body', max_length=64)),
                ('attempt', models.UUIDField(default=uuid.uuid4)),
                ('begun_at', models.DateTimeField(db_index=True)),
                ('lost_at', models.DateTimeField(help_text='from then on a call without an answer is taken for lost')),
                ('status', models.PositiveSmallIntegerField(help_text='of HTTP; empty: no answer yet', null=True)),
                ('body', models.TextField(help_text='JSON, without secrets')),
                ('location', models.CharField(max_length=500)),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.AddField(
            model_name='task',
            name='from_import',
            field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='tasks', to='annotator.import'),
        ),
        migrations.AddField(
            model_name='import',
            name='by',
            field=models.ForeignKey(blank=True, help_text='empty: a command', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='import',
            name='project',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='annotator.project'),
        ),
        migrations.AddField(
            model_name='import',
            name='taken_back_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.CreateModel(
            name='ImportedRater',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('place', models.CharField(help_text='such as rater-1 or preference-2', max_length=40)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='imported_raters', to='annotator.project')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='imported_places', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ImportJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hub', models.CharField(blank=True, help_text='the data set, folder or file of the Hub, whose file the worker fetches', max_length=300)),
                ('fetch_only', models.BooleanField(default=False, help_text='the fetched file waits for a manager, as an upload does')),
                ('file_name', models.CharField(max_length=200)),
                ('file_hash', models.CharField(blank=True, help_text='SHA-256; empty while the file arrives', max_length=64)),
                ('file_bytes', models.BigIntegerField(default=0)),
                ('state', models.CharField(choices=[('uploaded', 'Uploaded'), ('waiting', 'Waiting'), ('working', 'Working'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='uploaded', max_length=10)),
                ('dry_run', models.BooleanField(default=False)),
                ('mapping', models.JSONField(blank=True, null=True)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='counts up with each worker')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='workers that were lost, and the current one')),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('bytes_read', models.BigIntegerField(default=0)),
                ('rows_done', models.PositiveIntegerField(default=0)),
                ('rules', models.CharField(blank=True, help_text='hash of what decides how a row is read', max_length=64)),
                ('created', models.PositiveIntegerField(default=0)),
                ('existing', models.PositiveIntegerField(default=0)),
                ('rejected', models.PositiveIntegerField(default=0)),
                ('ratings_added', models.PositiveIntegerField(default=0)),
                ('ratings_left_out', models.PositiveIntegerField(default=0, help_text='that do not count, although their rows went in')),
                ('layouts', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), blank=True, default=list, size=None)),
                ('has_answers', models.BooleanField(default=False, help_text='whether rows came with labels or ratings')),
                ('notes', models.JSONField(blank=True, default=dict, help_text='columns that were kept aside or shown, and what else is said of the rows')),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('import_row', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='annotator.import')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='import_jobs', to='annotator.project')),
                ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ImportJobError',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('line', models.PositiveBigIntegerField()),
                ('field', models.CharField(blank=True, max_length=200)),
                ('error', models.TextField()),
                ('job', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='errors', to='annotator.importjob')),
            ],
        ),
        migrations.CreateModel(
            name='ImportMapping',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('columns', models.JSONField()),
                ('changed_at', models.DateTimeField(auto_now=True)),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='import_mappings', to='annotator.project')),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='Installation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('artifacts_id', models.UUIDField()),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('pk', 1)), name='one_installation')],
            },
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('manager', 'Manager')], default='annotator', max_length=10, verbose_name='role')),
                ('languages', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), blank=True, default=list, size=None)),
                ('quota', models.PositiveIntegerField(blank=True, null=True, verbose_name='quota')),
                ('places', models.PositiveIntegerField(default=1, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(500)])),
                ('taken', models.PositiveIntegerField(default=0)),
                ('meant_for', models.CharField(blank=True, help_text="a name in the manager's words, for their list", max_length=150)),
                ('email', models.EmailField(blank=True, max_length=254)),
                ('mailed_at', models.DateTimeField(blank=True, null=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to='annotator.project')),
            ],
            options={
                'verbose_name': 'invitation',
                'verbose_name_plural': 'invitations',
            },
        ),
        migrations.CreateModel(
            name='InvitationUse',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('joined_at', models.DateTimeField()),
                ('invitation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='uses', to='annotator.invitation')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('manager', 'Manager')], default='annotator', max_length=10, verbose_name='role')),
                ('offered_role', models.CharField(blank=True, choices=[('annotator', 'Annotator'), ('reviewer', 'Reviewer'), ('manager', 'Manager')], default='', editable=False, max_length=10)),
                ('acknowledged_version', models.PositiveIntegerField(default=0, verbose_name='acknowledged version')),
                ('qualified_at', models.DateTimeField(blank=True, null=True, verbose_name='qualified at')),
                ('extra_tries', models.PositiveSmallIntegerField(default=0, help_text="Tries of the test in addition to the project's number.", verbose_name='extra tries')),
                ('paused_at', models.DateTimeField(blank=True, null=True, verbose_name='paused at')),
                ('pause_reason', models.CharField(blank=True, choices=[('gold', "ratings of gold tasks differ too much from the experts'"), ('manager', "a manager's decision")], max_length=20, verbose_name='paused because of')),
                ('quota', models.PositiveIntegerField(blank=True, help_text="Tasks that this person may rate. Leave it empty for the project's number; 0 means no limit.", null=True, verbose_name='quota')),
                ('languages', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=16), blank=True, default=list, help_text='Languages of the tasks that this person gets. Leave it empty for all languages.', size=None, verbose_name='languages')),
                ('gold_counts_from', models.DateTimeField(blank=True, null=True, verbose_name='gold tasks count from')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='annotator.project', verbose_name='project')),
                ('user', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL, verbose_name='user')),
            ],
            options={
                'verbose_name': 'member',
                'verbose_name_plural': 'members',
                'ordering': ['user__username'],
            },
        ),
        migrations.CreateModel(
            name='PasswordLink',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='password_link', to=settings.AUTH_USER_MODEL)),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='Pseudonym',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(default=annotator.models.member.new_pseudonym, max_length=32)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pseudonyms', to='annotator.project')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='pseudonyms', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='QualificationRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('practice', 'Practice'), ('test', 'Test')], max_length=10, verbose_name='kind')),
                ('number', models.PositiveSmallIntegerField(verbose_name='number')),
                ('started_at', models.DateTimeField(verbose_name='started at')),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('kappa', models.FloatField(blank=True, null=True, verbose_name='kappa')),
                ('passed', models.BooleanField(blank=True, null=True, verbose_name='passed')),
                ('draft', models.JSONField(blank=True, default=dict)),
                ('member', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='qualification_runs', to='annotator.membership')),
            ],
            options={
                'verbose_name': 'qualification run',
                'verbose_name_plural': 'qualification runs',
                'ordering': ['kind', 'number'],
            },
        ),
        migrations.CreateModel(
            name='RaterQuality',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('annotations', models.PositiveIntegerField()),
                ('measures', models.JSONField(default=dict)),
                ('flags', models.JSONField(default=list)),
                ('computed_at', models.DateTimeField()),
                ('annotator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='rater_qualities', to='annotator.project')),
            ],
            options={
                'verbose_name_plural': 'rater quality',
            },
        ),
        migrations.CreateModel(
            name='Rating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.JSONField()),
                ('segment_scores', models.JSONField(blank=True, null=True)),
                ('cut', models.JSONField(blank=True, help_text="[[start, end], ...]; empty: the response's own segments", null=True)),
                ('comments', models.JSONField(blank=True, db_default=[], default=list, help_text="[[start, end, text], ...] of the response's text")),
                ('checks', models.JSONField(default=list, verbose_name='checks')),
                ('confidence', models.PositiveSmallIntegerField(blank=True, help_text='2 is very sure, 1 somewhat sure, 0 not sure.', null=True, verbose_name='confidence')),
                ('safe', models.BooleanField(blank=True, null=True, verbose_name='safe')),
                ('unsafe_category', models.CharField(blank=True, max_length=40)),
                ('feedback', models.TextField(blank=True, db_default='', default='', verbose_name='feedback')),
                ('edit', models.TextField(blank=True, db_default='', default='', help_text='A better version of the response, by its annotator.', verbose_name='edit')),
                ('edit_summary', models.TextField(blank=True, db_default='', default='', verbose_name='summary of the edit')),
                ('annotation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='annotator.annotation')),
            ],
            options={
                'verbose_name': 'rating',
                'verbose_name_plural': 'ratings',
            },
        ),
        migrations.CreateModel(
            name='RecountWanted',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recounts_wanted', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='Release',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField(help_text='counts from 1 in each project; a number is never used again')),
                ('title', models.CharField(blank=True, max_length=120)),
                ('license', models.CharField(help_text='an identifier of the Hugging Face Hub, such as cc-by-4.0', max_length=60)),
                ('license_text', models.TextField(blank=True)),
                ('intended_use', models.TextField(blank=True)),
                ('limits', models.TextField(blank=True)),
                ('notes', models.TextField(blank=True)),
                ('rubric_version', models.PositiveSmallIntegerField(blank=True, help_text="the rubric's version that its labels were made under; empty: all", null=True)),
                ('leave_out_failing', models.BooleanField(default=False, help_text='tasks that fail a check are left out, and do not refuse the release')),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('working', 'Working'), ('done', 'Done'), ('failed', 'Failed'), ('withdrawn', 'Withdrawn')], default='waiting', max_length=10)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='counts up with each worker')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='workers that were lost, and the current one')),
                ('rows_expected', models.PositiveBigIntegerField(blank=True, help_text='known once the texts are checked', null=True)),
                ('rows_done', models.PositiveBigIntegerField(default=0)),
                ('bytes_done', models.BigIntegerField(default=0)),
                ('content_hash', models.CharField(blank=True, max_length=64)),
                ('counts', models.JSONField(blank=True, default=dict)),
                ('files', models.JSONField(blank=True, default=list, help_text='[{path, size, sha256}, ...]')),
                ('archive_size', models.BigIntegerField(default=0)),
                ('archive_sha256', models.CharField(blank=True, help_text='empty while there are no files', max_length=64)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='releases', to='annotator.project')),
                ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='ReleaseTask',
            fields=[
                ('pk', models.CompositePrimaryKey('task_id', 'release_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('task_id', models.BigIntegerField()),
                ('release', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='frozen', to='annotator.release')),
            ],
        ),
        migrations.CreateModel(
            name='Report',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('category', models.CharField(choices=[('harmful', 'Harmful or dangerous'), ('illegal', 'Illegal'), ('profanity', 'Profanity or sexual content'), ('bias', 'Bias or stereotype'), ('other', 'Something else')], max_length=20)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('decision', models.CharField(blank=True, choices=[('upheld', 'Upheld'), ('dismissed', 'Dismissed')], max_length=10)),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reports', to='annotator.assignment')),
            ],
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveSmallIntegerField(verbose_name='position')),
                ('external_id', models.CharField(blank=True, max_length=200)),
                ('text', models.TextField(verbose_name='text')),
                ('model', models.CharField(blank=True, max_length=200, verbose_name='model')),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('segments', models.JSONField(blank=True, help_text='[[start, end], ...] of the text; empty: nobody has cut it yet', null=True)),
                ('edit_of', models.ForeignKey(blank=True, db_index=False, help_text='The rating whose annotator wrote this response as a better version of another.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='edited_responses', to='annotator.rating', verbose_name='edit of')),
                ('task', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='responses', to='annotator.task')),
            ],
            options={
                'verbose_name': 'response',
                'verbose_name_plural': 'responses',
                'ordering': ['position'],
            },
        ),
        migrations.AddField(
            model_name='rating',
            name='response',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='annotator.response', verbose_name='response'),
        ),
        migrations.CreateModel(
            name='QualificationAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.JSONField()),
                ('aspects', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None)),
                ('segment_scores', models.JSONField(blank=True, null=True)),
                ('answered_at', models.DateTimeField()),
                ('run', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='answers', to='annotator.qualificationrun')),
                ('response', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotator.response')),
            ],
        ),
        migrations.CreateModel(
            name='PiiSpan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('turn', models.PositiveIntegerField(blank=True, null=True)),
                ('start', models.PositiveIntegerField()),
                ('end', models.PositiveIntegerField()),
                ('kind', models.CharField(help_text='one of PiiKind, a list that grows', max_length=10)),
                ('source', models.CharField(choices=[('detected', 'Detected'), ('annotator', 'Annotator')], max_length=10)),
                ('created_at', models.DateTimeField()),
                ('marked_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('task', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pii_spans', to='annotator.task')),
                ('response', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='pii_spans', to='annotator.response')),
            ],
        ),
        migrations.CreateModel(
            name='Label',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(choices=[('adjudicated', 'Adjudicated'), ('consensus', 'Consensus'), ('imported', 'Imported')], max_length=12)),
                ('scores', models.JSONField()),
                ('means', models.JSONField()),
                ('aspects', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None)),
                ('segment_scores', models.JSONField(blank=True, null=True)),
                ('segment_means', models.JSONField(blank=True, null=True)),
                ('cut', models.JSONField(blank=True, null=True)),
                ('rubric_version', models.PositiveSmallIntegerField(db_default=1, default=1, help_text='the newest version of the rubric among what made the label')),
                ('made_at', models.DateTimeField()),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.project')),
                ('response', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='labels', to='annotator.response')),
            ],
        ),
        migrations.CreateModel(
            name='ExpertRating',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.JSONField()),
                ('aspects', django.contrib.postgres.fields.ArrayField(base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None)),
                ('segment_scores', models.JSONField(blank=True, null=True)),
                ('explanation', models.TextField(blank=True, verbose_name='explanation')),
                ('gold', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ratings', to='annotator.gold')),
                ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='expert_rating', to='annotator.response', verbose_name='response')),
            ],
            options={
                'verbose_name': 'expert rating',
                'verbose_name_plural': 'expert ratings',
            },
        ),
        migrations.CreateModel(
            name='Rubric',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.SlugField()),
                ('version', models.PositiveSmallIntegerField(default=1)),
                ('name', models.CharField(max_length=120)),
                ('made_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('made_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('previous', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='annotator.rubric')),
                ('project', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='own_rubrics', to='annotator.project')),
            ],
        ),
        migrations.AddField(
            model_name='project',
            name='rubric',
            field=models.ForeignKey(help_text='It cannot be replaced once something has been rated.', on_delete=django.db.models.deletion.RESTRICT, related_name='projects', to='annotator.rubric', verbose_name='Rubric'),
        ),
        migrations.CreateModel(
            name='Attribute',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.SlugField()),
                ('name', models.CharField(max_length=60)),
                ('description', models.TextField(blank=True)),
                ('levels', models.JSONField()),
                ('checks', models.JSONField(blank=True, default=list)),
                ('scope', models.CharField(choices=[('response', 'response'), ('segment', 'segment')], default='response', max_length=10)),
                ('weight', models.FloatField(blank=True, null=True)),
                ('position', models.PositiveSmallIntegerField(default=0)),
                ('rubric', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='attributes', to='annotator.rubric')),
            ],
            options={
                'ordering': ['position'],
            },
        ),
        migrations.CreateModel(
            name='Skip',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(choices=[('pii', 'Personal information'), ('non_english', 'Substantially not English'), ('needs_coding', 'Needs coding skills'), ('about_assistant', 'About the assistant itself'), ('other', 'Another reason')], max_length=20)),
                ('note', models.TextField(blank=True)),
                ('created_at', models.DateTimeField()),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='skips', to='annotator.assignment')),
            ],
        ),
        migrations.CreateModel(
            name='StaleAgreement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.project')),
                ('task', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='StaleWords',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='Tally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('done', models.PositiveIntegerField(db_default=0)),
                ('line', models.BigIntegerField(db_default=0)),
                ('annotator', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='tallies', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tallies', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='Token',
            fields=[
                ('token_key', models.CharField(db_index=True, max_length=25)),
                ('created', models.DateTimeField(auto_now_add=True)),
                ('expiry', models.DateTimeField(blank=True, null=True)),
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('digest', models.CharField(max_length=128, unique=True)),
                ('name', models.CharField(blank=True, help_text="What it is for, in its owner's words.", max_length=80, verbose_name='name')),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=annotator.models.user.every_scope, size=None, verbose_name='scopes')),
                ('last_used_at', models.DateTimeField(editable=False, help_text='Accurate to the hour.', null=True, verbose_name='last used at')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='auth_token_set', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'token',
                'verbose_name_plural': 'tokens',
                'db_table': 'annotator_token',
            },
        ),
        migrations.CreateModel(
            name='UnlikelyAnnotation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('unlikeliness', models.FloatField()),
                ('evidence', models.JSONField(help_text='[{response, attribute, given, expected}], the widest first')),
                ('noted_at', models.DateTimeField()),
                ('annotation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='unlikely', to='annotator.annotation')),
                ('task', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='unlikely_annotations', to='annotator.task')),
            ],
        ),
        migrations.CreateModel(
            name='Verdict',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('decision', models.CharField(choices=[('accepted', 'Accepted'), ('rejected', 'Rejected')], max_length=10)),
                ('comment', models.TextField(blank=True)),
                ('made_at', models.DateTimeField()),
                ('assignment', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='verdicts', to='annotator.assignment')),
                ('by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='Webhook',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.CharField(max_length=500)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), blank=True, default=list, size=None)),
                ('secret', models.CharField(max_length=100)),
                ('previous_secret', models.CharField(blank=True, max_length=100)),
                ('previous_until', models.DateTimeField(blank=True, null=True)),
                ('active', models.BooleanField(default=True)),
                ('end_reason', models.CharField(blank=True, choices=[('failing', 'All deliveries of the last 5 days have failed.'), ('gone', 'The receiver has answered 410: it wants no more messages.')], max_length=10)),
                ('failing_since', models.DateTimeField(blank=True, null=True)),
                ('tried_at', models.DateTimeField(blank=True, help_text='when a worker last sent something', null=True)),
                ('created_at', models.DateTimeField()),
                ('made_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='webhooks', to='annotator.project')),
            ],
        ),
        migrations.CreateModel(
            name='WebhookDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('message', models.UUIDField(default=uuid.uuid4)),
                ('event', models.CharField(max_length=40)),
                ('data', models.JSONField(help_text='with primary keys of tasks, for which `payload` has public numbers')),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('delivered', 'Delivered'), ('failed', 'Failed')], default='waiting', max_length=10)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('next_attempt_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ('attempted_at', models.DateTimeField(blank=True, null=True)),
                ('seconds', models.FloatField(blank=True, help_text='that the last attempt took', null=True)),
                ('status', models.PositiveSmallIntegerField(blank=True, help_text='of HTTP, in the last answer', null=True)),
                ('error', models.CharField(blank=True, help_text='of the last attempt', max_length=500)),
                ('webhook', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='annotator.webhook')),
            ],
        ),
        migrations.AddConstraint(
            model_name='user',
            constraint=models.CheckConstraint(condition=models.Q(('username__regex', '^[^-._@+]')), name='account_names_begin_with_a_letter_or_a_digit'),
        ),
        migrations.AddIndex(
            model_name='agreementtotal',
            index=models.Index(fields=['project', 'kind', '-shared'], name='total_by_shared'),
        ),
        migrations.AddConstraint(
            model_name='agreementtotal',
            constraint=models.UniqueConstraint(fields=('project', 'kind', 'one', 'other'), name='one_total_of_each_kind'),
        ),
        migrations.AddIndex(
            model_name='annotation',
            index=models.Index(condition=models.Q(('is_current', True)), fields=['project', 'id'], name='annotation_by_project'),
        ),
        migrations.AddIndex(
            model_name='annotation',
            index=models.Index(condition=models.Q(('is_current', True)), fields=['project', 'annotator', 'id'], name='annotation_by_annotator'),
        ),
        migrations.AddIndex(
            model_name='annotation',
            index=models.Index(condition=models.Q(('is_current', True), ('ranking__isnull', False)), fields=['project'], name='annotation_with_a_ranking'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.UniqueConstraint(fields=('assignment', 'revision'), name='revision_once_per_assignment'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('assignment',), name='one_current_annotation_per_assignment'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.CheckConstraint(condition=models.Q(('preference__isnull', True), ('preference__in', (-100, -3, -2, -1, 0, 1, 2, 3)), _connector='OR'), name='preference_on_the_scale'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.CheckConstraint(condition=models.Q(('ranking__isnull', True), annotator.models.scores._EveryTier(models.F('ranking')), _connector='OR'), name='ranking_is_tiers_of_ids'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.CheckConstraint(condition=models.Q(('preference__isnull', True), ('ranking__isnull', True), _connector='OR'), name='a_preference_or_a_ranking'),
        ),
        migrations.AddConstraint(
            model_name='annotation',
            constraint=models.CheckConstraint(condition=models.Q(('active_seconds__isnull', True), ('active_seconds__range', (0, 604800)), _connector='OR'), name='active_seconds_within_a_week'),
        ),
        migrations.AddConstraint(
            model_name='backgroundfailure',
            constraint=models.UniqueConstraint(fields=('task', 'project'), name='one_failure_per_task_and_project', nulls_distinct=False),
        ),
        migrations.AddIndex(
            model_name='bulkchange',
            index=models.Index(fields=['project', '-id'], name='bulk_change_by_project'),
        ),
        migrations.AddIndex(
            model_name='bulkchange',
            index=models.Index(condition=models.Q(('finished_at', None), models.Q(('undo_asked_at__isnull', False), ('undone_at', None)), _connector='OR'), fields=['id'], name='bulk_change_unfinished'),
        ),
        migrations.AddConstraint(
            model_name='bulkchange',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('action', 'priority'), ('priority__isnull', False)), models.Q(models.Q(('action', 'priority'), _negated=True), ('priority', None)), _connector='OR'), name='a_priority_where_one_is_set'),
        ),
        migrations.AddConstraint(
            model_name='bulkchange',
            constraint=models.CheckConstraint(condition=models.Q(('undone_at', None), ('undo_asked_at__isnull', False), _connector='OR'), name='undone_once_asked'),
        ),
        migrations.AddConstraint(
            model_name='bulkchange',
            constraint=models.CheckConstraint(condition=models.Q(('changed__lte', models.F('chosen')), ('put_back__lte', models.F('changed'))), name='no_more_than_chosen'),
        ),
        migrations.AddField(
            model_name='countedtask',
            name='project',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='annotator.project'),
        ),
        migrations.AddIndex(
            model_name='taskwords',
            index=django.contrib.postgres.indexes.GinIndex(fields=['facets', 'words'], name='task_by_words'),
        ),
        migrations.AddIndex(
            model_name='consensus',
            index=models.Index(condition=models.Q(('drop_reason', ''), _negated=True), fields=['task'], name='consensus_dropped'),
        ),
        migrations.AddIndex(
            model_name='consensus',
            index=models.Index(fields=['project'], name='consensus_by_project'),
        ),
        migrations.AddConstraint(
            model_name='changedtask',
            constraint=models.UniqueConstraint(fields=('change', 'task'), name='task_once_per_bulk_change'),
        ),
        migrations.AddConstraint(
            model_name='changedtask',
            constraint=models.CheckConstraint(condition=models.Q(('put_back', None), ('applied', True), _connector='OR'), name='put_back_what_was_applied'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'leased')), fields=['lease_expires_at'], name='lease_by_expiry'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'leased')), fields=['annotator'], name='lease_by_annotator'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state', 'expired')), fields=['annotator'], name='expired_by_annotator'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(condition=models.Q(('state__in', ['released', 'skipped'])), fields=['annotator', 'leased_at'], name='passed_by_annotator'),
        ),
        migrations.AddIndex(
            model_name='assignment',
            index=models.Index(fields=['annotator', 'id'], name='assignment_by_annotator'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(fields=('task', 'annotator'), name='one_assignment_per_annotator_and_task'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['leased', 'submitted'])), fields=('task', 'slot'), name='one_assignment_per_slot'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('slot__isnull', True), ('slot__gte', 1), _connector='OR'), name='slots_count_from_one'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'leased'), _negated=True), ('slot__isnull', False), _connector='OR'), name='a_lease_holds_a_slot'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['leased', 'submitted']), ('slot__isnull', True), _connector='OR'), name='only_work_holds_a_slot'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('counts', True), ('slot__isnull', True), _connector='OR'), name='what_does_not_count_holds_no_slot'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'submitted'), _negated=True), ('counts', False), ('slot__isnull', False), ('response_order', []), _connector='OR'), name='what_counts_holds_a_slot'),
        ),
        migrations.AddConstraint(
            model_name='assignment',
            constraint=models.CheckConstraint(condition=models.Q(('extra', False), ('counts', False), _connector='OR'), name='an_extra_does_not_count'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.UniqueConstraint(condition=models.Q(('is_current', True)), fields=('task',), name='one_current_adjudication_per_task'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.CheckConstraint(condition=models.Q(('ranking__isnull', True), annotator.models.scores._EveryTier(models.F('ranking')), _connector='OR'), name='settled_ranking_is_tiers_of_ids'),
        ),
        migrations.AddConstraint(
            model_name='adjudication',
            constraint=models.CheckConstraint(condition=models.Q(('preference__isnull', True), ('ranking__isnull', True), _connector='OR'), name='a_settled_preference_or_a_ranking'),
        ),
        migrations.AddConstraint(
            model_name='exclusion',
            constraint=models.UniqueConstraint(fields=('project', 'annotator'), name='one_exclusion_per_annotator_and_project'),
        ),
        migrations.AddIndex(
            model_name='exportjob',
            index=models.Index(fields=['project', 'requested_by', 'id'], name='export_job_of_a_person'),
        ),
        migrations.AddIndex(
            model_name='exportjob',
            index=models.Index(condition=models.Q(('state__in', ['waiting', 'working'])), fields=['id'], name='export_job_under_way'),
        ),
        migrations.AddConstraint(
            model_name='exportjob',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('state__in', ['waiting', 'working'])), models.Q(('finished_at__isnull', False), ('state__in', ['done', 'failed', 'expired', 'withdrawn'])), _connector='OR'), name='export_job_finished_once_ended'),
        ),
        migrations.AddConstraint(
            model_name='exportjob',
            constraint=models.CheckConstraint(condition=models.Q(('state', 'done'), ('sha256', ''), _connector='XOR'), name='export_job_has_a_hash_while_it_has_a_file'),
        ),
        migrations.AddConstraint(
            model_name='guideline',
            constraint=models.UniqueConstraint(fields=('project', 'version'), name='guideline_version_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='idempotentcall',
            constraint=models.UniqueConstraint(fields=('user', 'key'), name='one_call_per_account_and_key'),
        ),
        migrations.AddConstraint(
            model_name='idempotentcall',
            constraint=models.CheckConstraint(condition=models.Q(('status', None), models.Q(('status__gte', 200), ('status__lt', 300)), _connector='OR'), name='only_done_calls_are_answered_again'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(fields=['project', 'id'], name='task_by_project'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(fields=['project', 'content_hash'], name='task_by_content'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(fields=['project', 'state', 'id'], name='task_by_state'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(condition=models.Q(('review_spread__gt', 0)), fields=['project', '-review_spread', 'id'], name='task_by_spread'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(condition=models.Q(('pii_scanned_at__isnull', True)), fields=['id'], name='task_unscanned'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(condition=models.Q(('imported_preference__isnull', False)), fields=['project'], name='task_with_a_preference'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(condition=models.Q(('begun', True), ('open_slots__gt', 0), ('state', 'open')), fields=['project', 'line'], name='task_in_line'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('project'), models.OrderBy(models.F('priority'), descending=True), models.ExpressionWrapper(models.Q(('pii_scanned_at__isnull', True)), output_field=models.BooleanField()), models.F('shuffle'), condition=models.Q(('begun', False), ('open_slots__gt', 0), ('state', 'open')), name='task_untouched'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(models.F('project'), models.F('language'), models.OrderBy(models.F('priority'), descending=True), models.ExpressionWrapper(models.Q(('pii_scanned_at__isnull', True)), output_field=models.BooleanField()), models.F('shuffle'), condition=models.Q(('begun', False), ('open_slots__gt', 0), ('state', 'open'), models.Q(('language', ''), _negated=True)), name='task_untouched_by_language'),
        ),
        migrations.AddIndex(
            model_name='task',
            index=models.Index(condition=models.Q(('review_reason', ''), _negated=True), fields=['project', '-review_spread', 'id'], name='task_review_order'),
        ),
        migrations.AddConstraint(
            model_name='task',
            constraint=models.UniqueConstraint(fields=('project', 'external_id'), name='task_external_id_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='task',
            constraint=models.CheckConstraint(condition=models.Q(('open_slots__lte', django.db.models.expressions.CombinedExpression(models.F('slots_wanted'), '-', models.F('done')))), name='open_slots_within_wanted'),
        ),
        migrations.AddIndex(
            model_name='import',
            index=models.Index(fields=['project', 'id'], name='import_by_project'),
        ),
        migrations.AddIndex(
            model_name='import',
            index=models.Index(condition=models.Q(('all_gone_at__isnull', True), ('taken_back_at__isnull', False)), fields=['id'], name='import_being_taken_back'),
        ),
        migrations.AddConstraint(
            model_name='import',
            constraint=models.CheckConstraint(condition=models.Q(('all_gone_at__isnull', True), ('taken_back_at__isnull', False), _connector='OR'), name='gone_once_taken_back'),
        ),
        migrations.AddConstraint(
            model_name='importedrater',
            constraint=models.UniqueConstraint(fields=('project', 'place'), name='one_imported_rater_per_place'),
        ),
        migrations.AddIndex(
            model_name='importjob',
            index=models.Index(fields=['project', 'id'], name='import_job_by_project'),
        ),
        migrations.AddIndex(
            model_name='importjob',
            index=models.Index(condition=models.Q(('state__in', ['uploaded', 'waiting', 'working'])), fields=['id'], name='import_job_active'),
        ),
        migrations.AddConstraint(
            model_name='importjob',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('state__in', ['uploaded', 'waiting', 'working'])), models.Q(('finished_at__isnull', False), ('state__in', ['done', 'failed', 'cancelled'])), _connector='OR'), name='import_job_finished_once_ended'),
        ),
        migrations.AddConstraint(
            model_name='importjob',
            constraint=models.CheckConstraint(condition=models.Q(('dry_run', False), ('import_row__isnull', True), _connector='OR'), name='no_import_of_a_dry_run'),
        ),
        migrations.AddIndex(
            model_name='importjoberror',
            index=models.Index(fields=['job', 'id'], name='import_error_by_job'),
        ),
        migrations.AddConstraint(
            model_name='importmapping',
            constraint=models.UniqueConstraint(fields=('project', 'name'), name='one_import_mapping_of_a_name_per_project'),
        ),
        migrations.AddIndex(
            model_name='invitation',
            index=models.Index(fields=['project', '-id'], name='invitations_newest_first'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(('taken__lte', models.F('places'))), name='no_more_join_than_are_invited'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(('places__gte', 1), ('places__lte', 500)), name='an_invitation_is_for_somebody'),
        ),
        migrations.AddConstraint(
            model_name='invitation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('role', 'manager'), _negated=True), ('places', 1), _connector='OR'), name='one_manager_for_each_invitation'),
        ),
        migrations.AddConstraint(
            model_name='invitationuse',
            constraint=models.UniqueConstraint(fields=('invitation', 'user'), name='one_place_for_each_person'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('user', 'project'), name='one_role_per_user_and_project'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('paused_at__isnull', False), ('pause_reason', ''), _connector='OR'), name='a_reason_needs_a_pause'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('offered_role', ''), models.Q(('offered_role', models.F('role')), _negated=True), _connector='OR'), name='nobody_is_offered_what_they_have'),
        ),
        migrations.AddConstraint(
            model_name='pseudonym',
            constraint=models.UniqueConstraint(fields=('project', 'user'), name='one_pseudonym_per_person_and_project'),
        ),
        migrations.AddConstraint(
            model_name='pseudonym',
            constraint=models.UniqueConstraint(fields=('project', 'name'), name='one_person_per_pseudonym_and_project'),
        ),
        migrations.AddConstraint(
            model_name='qualificationrun',
            constraint=models.UniqueConstraint(fields=('member', 'kind', 'number'), name='qualification_run_number_once'),
        ),
        migrations.AddConstraint(
            model_name='qualificationrun',
            constraint=models.UniqueConstraint(condition=models.Q(('finished_at__isnull', True)), fields=('member', 'kind'), name='one_open_qualification_run'),
        ),
        migrations.AddConstraint(
            model_name='raterquality',
            constraint=models.UniqueConstraint(fields=('project', 'annotator'), name='one_quality_per_annotator_and_project'),
        ),
        migrations.AddIndex(
            model_name='release',
            index=models.Index(condition=models.Q(('state__in', ['waiting', 'working'])), fields=['id'], name='release_under_way'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.UniqueConstraint(fields=('project', 'number'), name='release_number_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', True), ('state__in', ['waiting', 'working'])), models.Q(('finished_at__isnull', False), ('state__in', ['done', 'failed', 'withdrawn'])), _connector='OR'), name='release_finished_once_ended'),
        ),
        migrations.AddConstraint(
            model_name='release',
            constraint=models.CheckConstraint(condition=models.Q(('state', 'done'), ('archive_sha256', ''), _connector='XOR'), name='release_has_a_hash_while_it_has_files'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(fields=('task', 'position'), name='response_position_once_per_task'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(condition=models.Q(('edit_of__isnull', False)), fields=('edit_of',), name='an_edit_becomes_a_response_once'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.CheckConstraint(condition=annotator.models.scores._Ranges(models.F('segments')), name='segments_are_ranges'),
        ),
        migrations.AddIndex(
            model_name='rating',
            index=models.Index(condition=models.Q(('edit', ''), _negated=True), fields=['-id'], name='rating_with_an_edit'),
        ),
        migrations.AddIndex(
            model_name='rating',
            index=models.Index(condition=models.Q(('edit', ''), _negated=True), fields=['response'], name='edit_of_response'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.UniqueConstraint(fields=('annotation', 'response'), name='one_rating_per_annotation_and_response'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryValue(models.F('scores'), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'), name='scores_are_whole_and_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.CheckConstraint(condition=models.Q(('confidence__isnull', True), ('confidence__lte', 2), _connector='OR'), name='confidence_has_three_levels'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.CheckConstraint(condition=models.Q(('edit_summary', ''), models.Q(('edit', ''), _negated=True), _connector='OR'), name='a_summary_is_of_an_edit'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryCell(models.F('segment_scores'), path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))'), name='segment_scores_are_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='rating',
            constraint=models.CheckConstraint(condition=annotator.models.scores._Ranges(models.F('cut')), name='an_own_cut_is_ranges'),
        ),
        migrations.AddConstraint(
            model_name='qualificationanswer',
            constraint=models.UniqueConstraint(fields=('run', 'response'), name='one_answer_per_run_and_response'),
        ),
        migrations.AddConstraint(
            model_name='qualificationanswer',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryValue(models.F('scores'), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'), name='answer_scores_are_whole_and_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='qualificationanswer',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryCell(models.F('segment_scores'), path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))'), name='answer_segment_scores_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='piispan',
            constraint=models.UniqueConstraint(fields=('task', 'turn', 'response', 'start', 'end', 'kind', 'source', 'marked_by'), name='pii_span_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='piispan',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('response__isnull', False), ('turn__isnull', True)), models.Q(('response__isnull', True), ('turn__isnull', False)), _connector='OR'), name='a_pii_span_stands_in_one_text'),
        ),
        migrations.AddConstraint(
            model_name='piispan',
            constraint=models.CheckConstraint(condition=models.Q(('start__lt', models.F('end'))), name='a_pii_span_is_not_empty'),
        ),
        migrations.AddConstraint(
            model_name='piispan',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('marked_by__isnull', True), ('source', 'detected')), models.Q(('marked_by__isnull', False), ('source', 'annotator')), _connector='OR'), name='a_pii_span_is_marked_by_annotators_only'),
        ),
        migrations.AddIndex(
            model_name='label',
            index=models.Index(fields=['made_at'], name='label_by_time'),
        ),
        migrations.AddIndex(
            model_name='label',
            index=models.Index(fields=['project', 'id'], name='label_by_project'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.UniqueConstraint(fields=('response', 'source'), name='one_label_per_response_and_source'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryValue(models.F('scores'), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'), name='label_scores_are_whole_and_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryValue(models.F('means'), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6)'), name='label_means_are_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryCell(models.F('segment_scores'), path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))'), name='label_segment_scores_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryCell(models.F('segment_means'), path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6))'), name='label_segment_means_on_scale'),
        ),
        migrations.AddConstraint(
            model_name='label',
            constraint=models.CheckConstraint(condition=annotator.models.scores._Ranges(models.F('cut')), name='a_label_is_of_ranges'),
        ),
        migrations.AddConstraint(
            model_name='expertrating',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryValue(models.F('scores'), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'), name='expert_scores_are_whole_and_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='expertrating',
            constraint=models.CheckConstraint(condition=annotator.models.scores._EveryCell(models.F('segment_scores'), path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))'), name='expert_segment_scores_on_a_scale'),
        ),
        migrations.AddConstraint(
            model_name='rubric',
            constraint=models.UniqueConstraint(condition=models.Q(('project', None)), fields=('key',), name='offered_rubrics_have_their_own_keys'),
        ),
        migrations.AddConstraint(
            model_name='rubric',
            constraint=models.UniqueConstraint(fields=('project', 'version'), name='rubric_version_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('max_annotators__gte', models.F('base_annotators'))), name='max_annotators_reach_base', violation_error_message='Max annotators must be at least base annotators.'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('base_annotators__gte', 1), ('keep__gte', 1)), name='somebody_annotates'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('keep__lte', 25), ('max_annotators__lte', 25)), name='no_task_asks_for_a_crowd'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('drop_above__lte', 6), ('escalate_above__lte', 6)), name='spreads_lie_on_the_scale'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('gold_threshold__range', (-1, 1)), ('gold_window__gte', 2), ('lease_minutes__gte', 1), ('qualification_threshold__range', (-1, 1)), ('qualification_tries__gte', 1), ('review_unlikely_percent__lte', 20), ('spread_share__range', (0, 0.9)), ('validation_share__range', (0.01, 0.5))), name='settings_lie_within_their_bounds'),
        ),
        migrations.AddConstraint(
            model_name='project',
            constraint=models.CheckConstraint(condition=models.Q(('deleted_at', None), ('archived_at__isnull', False), _connector='OR'), name='only_the_archived_are_deleted'),
        ),
        migrations.AddConstraint(
            model_name='attribute',
            constraint=models.UniqueConstraint(fields=('rubric', 'key'), name='attribute_key_once_per_rubric'),
        ),
        migrations.AddConstraint(
            model_name='attribute',
            constraint=models.CheckConstraint(condition=annotator.models.rubric._HowMany(models.F('levels')), name='attributes_have_2_to_7_levels'),
        ),
        migrations.AddIndex(
            model_name='staleagreement',
            index=models.Index(fields=['project', 'id'], name='stale_by_project'),
        ),
        migrations.AddConstraint(
            model_name='tally',
            constraint=models.UniqueConstraint(fields=('annotator', 'project'), name='one_tally_per_annotator'),
        ),
        migrations.AddConstraint(
            model_name='verdict',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('decision', 'rejected'), _negated=True), models.Q(('comment', ''), _negated=True), _connector='OR'), name='a_rejection_has_a_comment'),
        ),
        migrations.AddConstraint(
            model_name='webhook',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('active', True), _negated=True), ('end_reason', ''), _connector='OR'), name='webhook_ended_is_inactive'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['webhook', 'id'], name='delivery_of_a_webhook'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(condition=models.Q(('state', 'waiting')), fields=['webhook', 'next_attempt_at'], name='delivery_waiting'),
        ),
        migrations.AddIndex(
            model_name='webhookdelivery',
            index=models.Index(fields=['created_at'], name='delivery_by_time'),
        ),
        migrations.RunSQL([SEQUENCE, STORAGE], migrations.RunSQL.noop),
        triggers.installed(triggers.ANNOTATOR, without=["rating"]),
        migrations.RunPython(add_rubrics, migrations.RunPython.noop),
    ]
