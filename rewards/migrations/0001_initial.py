"""All tables of the machine half; databases of commit 6be395a0 have them already."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from annotator.infrastructure.db import triggers


class Migration(migrations.Migration):

    initial = True
    replaces = [
        ("rewards", "0001_tables_of_the_machine_half"),
        ("rewards", "0002_lineage_and_marks"),
        ("rewards", "0003_scoring_in_lanes"),
        ("rewards", "0004_folders_without_an_owner"),
        ("rewards", "0005_doubt"),
        ("rewards", "0006_erasing_in_two_steps"),
        ("rewards", "0007_time_that_runs_worked"),
        ("rewards", "0008_runs_name_no_folders"),
        ("rewards", "0009_unlikely_noted_at"),
        ("rewards", "0010_unlikely_noted_before"),
        ("rewards", "0011_labels_in_plain_words"),
        ("rewards", "0012_no_order_by_uncertainty"),
        ("rewards", "0013_evaluation_jobs"),
        ("rewards", "0014_snapshot_jobs"),
        ("rewards", "0015_scores_by_reward"),
        ("rewards", "0016_licences_of_models"),
        ("rewards", "0017_policies"),
        ("rewards", "0018_segment_scores"),
        ("rewards", "0019_drop_redundant_indexes"),
        ("rewards", "0020_number_of_scores"),
    ]

    dependencies = [
        ('annotator', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Evaluation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('data_hash', models.CharField(max_length=64)),
                ('metrics', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name='OwnerlessFolder',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(help_text="relative to the artifacts' folder", max_length=300)),
            ],
        ),
        migrations.CreateModel(
            name='RewardModel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('path', models.CharField(help_text='Relative to the artifacts folder.', max_length=300, verbose_name='path')),
                ('attributes', models.JSONField()),
                ('attribute_weights', models.JSONField(verbose_name='attribute weights')),
                ('manifest', models.JSONField()),
                ('license', models.CharField(blank=True, help_text='an identifier of the Hugging Face Hub, such as apache-2.0', max_length=60)),
                ('license_text', models.TextField(blank=True)),
                ('is_champion', models.BooleanField(default=False, verbose_name='is the champion')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('promoted_at', models.DateTimeField(blank=True, null=True, verbose_name='promoted at')),
                ('scored', models.PositiveIntegerField(db_default=0, default=0, editable=False, help_text='responses that have its score; triggers keep the number')),
                ('score_precision', models.CharField(blank=True, db_default='', default='', editable=False, help_text='what all its stored scores are computed in; empty before the first, and where nobody noted it', max_length=10)),
                ('parent', models.ForeignKey(blank=True, help_text='the champion it met', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='rewards.rewardmodel')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='reward_models', to='annotator.project', verbose_name='project')),
            ],
            options={
                'verbose_name': 'reward model',
                'verbose_name_plural': 'reward models',
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='EvaluationJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('file_name', models.CharField(max_length=100)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('working', 'Evaluating'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('attempt', models.PositiveSmallIntegerField(default=0)),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('progress', models.JSONField(blank=True, default=dict, help_text='the newest event of the process that measures')),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('evaluation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='rewards.evaluation')),
                ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('reward_model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='evaluation_jobs', to='rewards.rewardmodel')),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.AddField(
            model_name='evaluation',
            name='reward_model',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='evaluations', to='rewards.rewardmodel'),
        ),
        migrations.CreateModel(
            name='Score',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('scores', models.JSONField(verbose_name='scores')),
                ('segment_scores', models.JSONField(help_text="[segments][aspects] in the order of the model's aspects; empty: not scored by segments", null=True)),
                ('reward', models.FloatField(verbose_name='reward')),
                ('uncertainty', models.FloatField(null=True, verbose_name='uncertainty')),
                ('token_key', models.UUIDField(null=True, verbose_name='token key')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('response', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='model_scores', to='annotator.response', verbose_name='response')),
                ('reward_model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scores', to='rewards.rewardmodel', verbose_name='reward model')),
            ],
            options={
                'verbose_name': 'score',
                'verbose_name_plural': 'scores',
            },
        ),
        migrations.CreateModel(
            name='ScoringJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('items', models.JSONField()),
                ('results', models.JSONField(null=True)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('requested_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('reward_model', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='rewards.rewardmodel')),
            ],
        ),
        migrations.CreateModel(
            name='ScoringPass',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('handed_out', models.BigIntegerField(default=0)),
                ('began_at', models.DateTimeField()),
                ('error', models.TextField(blank=True)),
                ('reward_model', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='scoring_pass', to='rewards.rewardmodel')),
            ],
        ),
        migrations.CreateModel(
            name='ScoringLane',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField()),
                ('turn', models.PositiveIntegerField(default=0)),
                ('first_task', models.BigIntegerField(null=True)),
                ('last_task', models.BigIntegerField(null=True)),
                ('moved_at', models.DateTimeField(null=True)),
                ('scoring_pass', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='lanes', to='rewards.scoringpass')),
            ],
        ),
        migrations.CreateModel(
            name='Snapshot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('content_hash', models.CharField(max_length=64, verbose_name='content hash')),
                ('path', models.CharField(help_text='Relative to the artifacts folder.', max_length=300, verbose_name='path')),
                ('manifest', models.JSONField(verbose_name='manifest')),
                ('train_tasks', models.PositiveIntegerField(verbose_name='training tasks')),
                ('validation_tasks', models.PositiveIntegerField(verbose_name='validation tasks')),
                ('labels', models.PositiveIntegerField(help_text='Labelled responses.', verbose_name='labels')),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('redacted_tasks', models.PositiveIntegerField(db_default=0, help_text='redacted after it was taken')),
                ('deleted_tasks', models.PositiveIntegerField(db_default=0, help_text='deleted after it was taken')),
                ('marked_at', models.DateTimeField(blank=True, help_text='of the last of these', null=True)),
                ('erasing_at', models.DateTimeField(blank=True, help_text='asked for; from then on nobody uses its files', null=True)),
                ('erased_at', models.DateTimeField(blank=True, help_text='its files and those of its models are gone', null=True)),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='snapshots', to='annotator.project', verbose_name='project')),
            ],
            options={
                'verbose_name': 'snapshot',
                'verbose_name_plural': 'snapshots',
                'ordering': ['-pk'],
            },
        ),
        migrations.CreateModel(
            name='SnapshotJob',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('building', 'Building'), ('done', 'Done'), ('failed', 'Failed')], default='queued', max_length=10)),
                ('tasks', models.PositiveIntegerField(default=0, help_text='written so far')),
                ('attempt', models.PositiveSmallIntegerField(default=0, help_text='counts up with each worker')),
                ('tries', models.PositiveSmallIntegerField(default=0, help_text='workers that were lost, and the current one')),
                ('code', models.CharField(blank=True, help_text='of the refusal', max_length=60)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='snapshot_jobs', to='annotator.project')),
                ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('snapshot', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='rewards.snapshot')),
            ],
        ),
        migrations.CreateModel(
            name='SnapshotTask',
            fields=[
                ('pk', models.CompositePrimaryKey('task_id', 'snapshot_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('task_id', models.BigIntegerField()),
                ('snapshot', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='seen', to='rewards.snapshot')),
            ],
        ),
        migrations.CreateModel(
            name='TrainingRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('reward', 'Reward model'), ('policy', 'Policy')], default='reward', max_length=10, verbose_name='kind')),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('snapshotting', 'Snapshotting'), ('training', 'Training'), ('evaluating', 'Evaluating'), ('awaiting_promotion', 'Awaiting Promotion'), ('promoted', 'Promoted'), ('rejected', 'Rejected'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('done', 'Done')], default='queued', max_length=20, verbose_name='state')),
                ('reason', models.CharField(help_text='Why the run was started.', max_length=200, verbose_name='reason')),
                ('config', models.JSONField(default=dict)),
                ('config_hash', models.CharField(blank=True, max_length=64, verbose_name='hash of the settings')),
                ('code_version', models.CharField(blank=True, max_length=40, verbose_name='code version')),
                ('seed', models.PositiveIntegerField(default=0, verbose_name='seed')),
                ('attempt', models.PositiveSmallIntegerField(default=0, verbose_name='attempt')),
                ('worker', models.CharField(blank=True, max_length=200, verbose_name='worker')),
                ('heartbeat_at', models.DateTimeField(blank=True, null=True)),
                ('worked_seconds', models.FloatField(db_default=0.0, help_text='of its trainer, in all attempts')),
                ('progress', models.JSONField(blank=True, default=dict)),
                ('losses', models.JSONField(blank=True, default=list)),
                ('metrics', models.JSONField(blank=True, default=dict)),
                ('verdict', models.JSONField(blank=True, default=dict)),
                ('error', models.TextField(blank=True)),
                ('log', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('started_at', models.DateTimeField(blank=True, null=True)),
                ('finished_at', models.DateTimeField(blank=True, null=True, verbose_name='finished at')),
                ('unlikely_noted_at', models.DateTimeField(blank=True, help_text='when annotations unlikely to its model were noted', null=True)),
                ('project', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='training_runs', to='annotator.project', verbose_name='project')),
                ('requested_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL, verbose_name='requested by')),
                ('snapshot', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='runs', to='rewards.snapshot', verbose_name='snapshot')),
            ],
            options={
                'verbose_name': 'training run',
                'verbose_name_plural': 'training runs',
                'ordering': ['-pk'],
            },
        ),
        migrations.AddField(
            model_name='rewardmodel',
            name='run',
            field=models.OneToOneField(on_delete=django.db.models.deletion.RESTRICT, related_name='reward_model', to='rewards.trainingrun', verbose_name='training run'),
        ),
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.PositiveIntegerField(verbose_name='version')),
                ('base', models.CharField(help_text="A name from the operator's list.", max_length=64, verbose_name='base policy')),
                ('method', models.CharField(max_length=20, verbose_name='method')),
                ('path', models.CharField(help_text='Relative to the artifacts folder.', max_length=300, verbose_name='path')),
                ('artifact_hash', models.CharField(max_length=64, verbose_name='hash of the artifact')),
                ('manifest', models.JSONField()),
                ('state', models.CharField(choices=[('candidate', 'Not judged'), ('offered', 'Offered'), ('refused', 'Refused')], default='candidate', max_length=10, verbose_name='state')),
                ('reason', models.TextField(help_text='Why it is in this state.', verbose_name='reason')),
                ('judgement', models.JSONField(blank=True, default=dict)),
                ('created_at', models.DateTimeField(auto_now_add=True, verbose_name='created at')),
                ('offered_at', models.DateTimeField(blank=True, null=True, verbose_name='offered at')),
                ('project', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='policies', to='annotator.project', verbose_name='project')),
                ('judge', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='judged_policies', to='rewards.rewardmodel', verbose_name='judged by')),
                ('run', models.OneToOneField(on_delete=django.db.models.deletion.RESTRICT, related_name='policy', to='rewards.trainingrun', verbose_name='training run')),
            ],
            options={
                'verbose_name': 'policy',
                'verbose_name_plural': 'policies',
                'ordering': ['-pk'],
            },
        ),
        migrations.AddConstraint(
            model_name='evaluation',
            constraint=models.UniqueConstraint(fields=('reward_model', 'name', 'data_hash'), name='evaluation_once_per_model_and_data'),
        ),
        migrations.AddIndex(
            model_name='score',
            index=models.Index(fields=['reward_model', 'token_key'], name='score_by_tokens'),
        ),
        migrations.AddIndex(
            model_name='score',
            index=models.Index(fields=['reward_model', 'reward'], name='score_by_reward'),
        ),
        migrations.AddConstraint(
            model_name='score',
            constraint=models.UniqueConstraint(fields=('reward_model', 'response'), name='one_score_per_model_and_response'),
        ),
        migrations.AddConstraint(
            model_name='scoringlane',
            constraint=models.UniqueConstraint(fields=('scoring_pass', 'number'), name='lane_number_once_per_pass'),
        ),
        migrations.AddConstraint(
            model_name='snapshot',
            constraint=models.UniqueConstraint(fields=('project', 'content_hash'), name='snapshot_content_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='snapshotjob',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'queued')), fields=('project',), name='one_queued_snapshot_job_per_project'),
        ),
        migrations.AddConstraint(
            model_name='trainingrun',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ('queued', 'snapshotting', 'training', 'evaluating', 'awaiting_promotion'))), fields=('project',), name='one_active_run_per_project'),
        ),
        migrations.AddConstraint(
            model_name='rewardmodel',
            constraint=models.UniqueConstraint(fields=('project', 'version'), name='model_version_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='rewardmodel',
            constraint=models.UniqueConstraint(condition=models.Q(('is_champion', True)), fields=('project',), name='one_champion_per_project'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.UniqueConstraint(fields=('project', 'version'), name='policy_version_once_per_project'),
        ),
        migrations.AddConstraint(
            model_name='policy',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state', 'offered'), _negated=True), ('offered_at__isnull', False), _connector='OR'), name='offered_policy_says_since_when'),
        ),
        triggers.installed(triggers.REWARDS),
    ]
