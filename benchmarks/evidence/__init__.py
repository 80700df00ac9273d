"""The data, the models and the questions of bench_evidence."""

import os

import django

# Before any module of this package imports a rule of the product, which stands beside Django's models.
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
django.setup()
