"""Our side of PostgreSQL: prepared statements, retries, locks, timeouts, its clock, and the texts that it can store."""
