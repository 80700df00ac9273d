"""A client of Rewardloop's REST interface: `Client`, `AsyncClient`, what they answer, and what they raise.

It needs httpx and nothing of the server's. The command `rewardloop` is in `rewardloop.command_line`.
"""

from rewardloop.answers import (
    ExportJob,
    ImportResult,
    Lease,
    LeasedResponse,
    Me,
    Model,
    NothingToRate,
    Project,
    RefusedRow,
    Release,
    Response,
    Run,
    Score,
    Scores,
    StoredRating,
    Task,
    Token,
)
from rewardloop.async_client import AsyncClient
from rewardloop.calls import Rating
from rewardloop.client import Client
from rewardloop.errors import (
    Conflict,
    DamagedFile,
    Forbidden,
    Invalid,
    NotFound,
    NotSetUp,
    Refused,
    RewardloopError,
    ServerAway,
    ServerFault,
    TookTooLong,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    WorkFailed,
)
from rewardloop.progress import Advance
from rewardloop.version import VERSION

__all__ = [
    "VERSION",
    "Advance",
    "AsyncClient",
    "Client",
    "Conflict",
    "DamagedFile",
    "ExportJob",
    "Forbidden",
    "ImportResult",
    "Invalid",
    "Lease",
    "LeasedResponse",
    "Me",
    "Model",
    "NotFound",
    "NotSetUp",
    "NothingToRate",
    "Project",
    "Rating",
    "Refused",
    "RefusedRow",
    "Release",
    "Response",
    "RewardloopError",
    "Run",
    "Score",
    "Scores",
    "ServerAway",
    "ServerFault",
    "StoredRating",
    "Task",
    "Token",
    "TooManyRequests",
    "TookTooLong",
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
    "WorkFailed",
]
