"""Personal information: found by patterns, marked softly, quoted by annotators, redacted by managers."""
