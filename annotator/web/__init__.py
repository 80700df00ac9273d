"""What every page and call goes through: Markdown, headers, parameters, limits, answers while PostgreSQL is away."""
