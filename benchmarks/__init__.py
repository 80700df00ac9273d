"""What we claim about speed and quality: one module a claim, one `make bench-...` each, results in BENCHMARKS.md."""
