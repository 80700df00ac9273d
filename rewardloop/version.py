"""The only place that holds the version: the wheel and the REST schema take it from here."""

VERSION = "0.1.0"
