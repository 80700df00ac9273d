"""Disks: how much room is left, whether this process sees the artifacts, texts that name no folder of the server."""
