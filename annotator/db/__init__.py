"""How we talk to PostgreSQL: prepared statements, retries, locks, timeouts, its clock, and which texts it stores."""
