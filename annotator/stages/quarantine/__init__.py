"""Sets tasks aside for personal information or unsafe content, until a manager decides."""
