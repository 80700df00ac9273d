"""What every page and call goes through: Markdown, headers, files, parameters, limits, answers without PostgreSQL."""
