"""What grows: tasks, segments, models, texts. `benchmarks/bench_scale.py` runs each by its name."""
