"""Whether the process lives, and whether everything it needs answers."""

from dataclasses import asdict
from typing import Any

import redis
from django.db import DatabaseError, connection
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator import workers


class LiveSerializer(serializers.Serializer[Any]):
    status = serializers.CharField()


class QueueSerializer(serializers.Serializer[Any]):
    workers = serializers.IntegerField()
    heartbeat_age = serializers.FloatField(allow_null=True, help_text="seconds since the youngest heartbeat")


class ReadySerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["ready", "unavailable"])
    database = serializers.BooleanField()
    redis = serializers.BooleanField()
    queues = serializers.DictField(child=QueueSerializer())
    error = serializers.CharField()


class Live(APIView):
    """Answers as long as the web does."""

    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses=LiveSerializer)
    def get(self, request: Request) -> Response:
        return Response({"status": "alive"})


class Ready(APIView):
    """Database, Redis and each queue's workers. 503 without database or Redis; a queue without worker is shown."""

    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses={200: ReadySerializer, 503: ReadySerializer})
    def get(self, request: Request) -> Response:
        found = readiness()
        return Response(found, status=200 if found["status"] == "ready" else 503)


def readiness() -> dict[str, Any]:
    """{status, database, redis, queues: {name: {workers, heartbeat_age}}}"""
    database, error = True, ""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as down:
        database, error = False, str(down).strip()
    try:
        queues = {name: asdict(health) for name, health in workers.listening().items()}
        answers = True
    except redis.RedisError as down:
        queues, answers, error = {}, False, error or str(down)
    status = "ready" if database and answers else "unavailable"
    return {"status": status, "database": database, "redis": answers, "queues": queues, "error": error}
