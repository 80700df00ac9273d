"""The command `rewardloop`: the client's verbs, and the programs of the server where that is installed."""

from rewardloop.command_line.door import main

__all__ = ["main"]
