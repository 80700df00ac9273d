"""Personal information in tasks: patterns find it, pages mark it, annotators quote it, and managers redact it."""
