"""The learning core reads files and writes files. It knows neither Django nor Celery."""
