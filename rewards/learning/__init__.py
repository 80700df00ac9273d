"""The learning core: files in, files out. It knows neither Django nor Celery."""
