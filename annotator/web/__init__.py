"""What every page and call goes through: Markdown, headers, parameters, limits, and answers while PostgreSQL is away."""
