"""Django's PostgreSQL backend with a cheaper check of pooled connections; DATABASES names it as its ENGINE."""
