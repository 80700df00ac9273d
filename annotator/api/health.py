"""Health probes: one says that the process lives, the other whether everything it needs answers."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.infrastructure.background.fitness import UnfitReason
from annotator.infrastructure.health import readiness


class LiveSerializer(serializers.Serializer[Any]):
    status = serializers.CharField()


class QueueSerializer(serializers.Serializer[Any]):
    workers = serializers.IntegerField()
    heartbeat_age = serializers.FloatField(allow_null=True, help_text="seconds since the youngest heartbeat")
    unfit = serializers.ListField(
        child=serializers.ChoiceField(choices=[fault.value for fault in UnfitReason]),
        help_text="for each worker that lives and takes no work: what it lacks",
    )


class ReadySerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["ready", "degraded", "unavailable"])
    database = serializers.BooleanField()
    redis = serializers.BooleanField()
    queues = serializers.DictField(child=QueueSerializer())
    disk = serializers.BooleanField(help_text="false: nearly full; imports, snapshots and runs are refused")
    artifacts = serializers.BooleanField(help_text="false: this process sees other files than the installation's")
    migrated = serializers.BooleanField(help_text="false: the database is older than the code")
    static_files = serializers.BooleanField(help_text="false: `prepare` has not run on this host")
    failures = serializers.IntegerField(help_text="periodic tasks that fail; the admin says which")
    error = serializers.CharField(allow_blank=True)


class Live(APIView):
    """Answers as long as the web process does."""

    # Without authentication, which reads the database: the process lives even while that is away.
    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses=LiveSerializer)
    def get(self, request: Request) -> Response:
        return Response({"status": "alive"})


class Ready(APIView):
    """Returns the state of the database, Redis, each queue's workers, the disk, the artifacts and the static files.

    The status is 503 where a load balancer should send people to another host: the database or Redis is away, the
    database is older than the code, or this host has no static files or other artifacts. Any other fault only shows in
    the body.
    """

    # Without authentication, which would fail, instead of answering 503, while the database is away.
    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses={200: ReadySerializer, 503: ReadySerializer})
    def get(self, request: Request) -> Response:
        state = readiness()
        return Response(state.as_json(), status=503 if state.status == "unavailable" else 200)
