"""Whether the process lives, and whether everything it needs answers."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.launch.health import readiness


class LiveSerializer(serializers.Serializer[Any]):
    status = serializers.CharField()


class QueueSerializer(serializers.Serializer[Any]):
    workers = serializers.IntegerField()
    heartbeat_age = serializers.FloatField(allow_null=True, help_text="seconds since the youngest heartbeat")


class ReadySerializer(serializers.Serializer[Any]):
    status = serializers.ChoiceField(choices=["ready", "degraded", "unavailable"])
    database = serializers.BooleanField()
    redis = serializers.BooleanField()
    queues = serializers.DictField(child=QueueSerializer())
    disk = serializers.BooleanField(help_text="false: nearly full; imports, snapshots and runs are refused")
    artifacts = serializers.BooleanField(help_text="false: this process sees other files than the installation's")
    failures = serializers.IntegerField(help_text="periodic tasks that fail; the admin says which")
    error = serializers.CharField(allow_blank=True)


class Live(APIView):
    """Answers as long as the web does."""

    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses=LiveSerializer)
    def get(self, request: Request) -> Response:
        return Response({"status": "alive"})


class Ready(APIView):
    """Database, Redis, each queue's workers, disk and artifacts. 503 without database or Redis; the rest is shown."""

    authentication_classes = ()
    permission_classes = [AllowAny]

    @extend_schema(responses={200: ReadySerializer, 503: ReadySerializer})
    def get(self, request: Request) -> Response:
        state = readiness()
        return Response(state.as_json(), status=503 if state.status == "unavailable" else 200)
