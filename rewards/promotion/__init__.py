"""The gate between a candidate and the champion."""
