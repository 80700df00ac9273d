"""REST: policy runs are started, listed, cancelled and retried; policies are listed, offered and downloaded."""

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.urls import reverse
from django.utils.translation import gettext as _
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, SettingsField, validated
from annotator.api.releases import RANGE
from annotator.api.transfer import WhateverIsAccepted
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.web.tar_archives import TAR
from annotator.models import Project
from annotator.reading import access
from rewards.access import managed_policy, managed_policy_run
from rewards.api.model_downloads import ModelFileSerializer
from rewards.api.serializers import LearntSerializer, RunSerializer
from rewards.models import WORKING_STATES, Policy, RunState, TrainingRun
from rewards.policies import downloads, policy_registry, policy_runs
from rewards.reasons import in_english
from rewards.runs import runs
from rewards.runs.policy_settings import SETTINGS

STATES = (*WORKING_STATES[:-1], RunState.QUEUED, RunState.DONE, RunState.FAILED, RunState.CANCELLED)
"""The states that a policy run may be in."""


@extend_schema_field(
    {
        "type": "object",
        "properties": {name: {"description": words.help} for name, words in SETTINGS.items()},
        "required": ["policy", "method"],
        "additionalProperties": False,
    }
)
class AlignmentSettingsField(SettingsField):
    """The settings of an alignment, with a sentence on each in the schema."""


class PolicyRunRequestSerializer(KnownFields):
    """Settings of the alignment, the snapshot to learn from (by default a new one), and the reason for the run."""

    config = AlignmentSettingsField()
    snapshot = serializers.CharField(required=False, help_text="a snapshot's content hash; by default a new snapshot")
    reason = serializers.CharField(required=False, max_length=200, default="requested over REST")


class PolicyRunSerializer(RunSerializer):
    """`state` goes from *queued* by *snapshotting*, *training* and *evaluating* to *done*, *failed* or *cancelled*."""

    policy: "serializers.PrimaryKeyRelatedField[Policy]" = serializers.PrimaryKeyRelatedField(
        read_only=True, allow_null=True
    )
    # A pattern, as an enum would share its name with the states of other work.
    state = serializers.RegexField(f"^({'|'.join(STATES)})$", read_only=True)

    class Meta(RunSerializer.Meta):
        fields = [*RunSerializer.Meta.fields, "error", "log", "policy", *RunSerializer.Meta.times]


class PolicySerializer(LearntSerializer[Policy]):
    """`judgement` is empty for a *candidate*, which nobody could judge; `reason` says in English why it is so."""

    project: "serializers.SlugRelatedField[Project]" = serializers.SlugRelatedField(slug_field="slug", read_only=True)
    # A pattern, as an enum would share its name with the states of other work.
    state = serializers.RegexField(f"^({'|'.join(Policy.State.values)})$", read_only=True)
    reason = serializers.SerializerMethodField()
    lineage = serializers.SerializerMethodField()

    class Meta:
        model = Policy
        fields = [
            "id",
            "project",
            "version",
            "run",
            "base",
            "method",
            "state",
            "reason",
            "judge",
            "judgement",
            "lineage",
            "marked",
            "erased",
            "created_at",
            "offered_at",
        ]

    def get_reason(self, policy: Policy) -> str:
        return in_english(policy.reason)

    def get_lineage(self, policy: Policy) -> dict[str, Any]:
        return policy_registry.lineage(policy)


class OfferRequestSerializer(KnownFields):
    """`confirm` asks for a policy that the rule has refused, or that nobody has judged."""

    confirm = serializers.BooleanField(default=False)


class PolicyRuns(generics.ListCreateAPIView[TrainingRun]):
    """A project's policy runs, for its managers; a POST starts one and answers 202, or says that no worker listens."""

    serializer_class = PolicyRunSerializer
    queryset = TrainingRun.objects.none()
    filterset_fields = ("state",)

    def get_queryset(self) -> QuerySet[TrainingRun]:
        project = access.managed_project(access.user_of(self.request), self.kwargs["slug"])
        policy_runs_of_project = TrainingRun.objects.of_policies().filter(project=project)
        return policy_runs_of_project.select_related("project", "snapshot", "policy")

    @extend_schema(
        request=PolicyRunRequestSerializer,
        responses={202: PolicyRunSerializer},
        examples=[
            OpenApiExample(
                "By segments",
                {"config": {"policy": "small", "method": "dpo_2d", "beta": 0.1}, "reason": "more segments"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        project = access.managed_project(access.user_of(request), self.kwargs["slug"])
        data = validated(PolicyRunRequestSerializer(data=request.data))
        content_hash, snapshot = data.get("snapshot"), None
        if content_hash is not None:
            snapshot = project.snapshots.filter(content_hash=content_hash).first()
            if snapshot is None:
                raise serializers.ValidationError({"snapshot": [_("The project has no such snapshot.")]})
        run = policy_runs.request(
            project,
            reason=data["reason"],
            config=data["config"],
            snapshot=snapshot,
            by=access.user_of(request),
        )
        return _accepted(run)


def _accepted(run: TrainingRun) -> Response:
    location = {"Location": reverse("api:policy-run", args=[run.pk])}
    return Response(PolicyRunSerializer(run).data, status=status.HTTP_202_ACCEPTED, headers=location)


class OnePolicyRun(APIView):
    """One policy run: state, progress, losses, metrics, error, and the policy that it has made."""

    @extend_schema(responses=PolicyRunSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(PolicyRunSerializer(managed_policy_run(access.user_of(request), pk)).data)


class CancelPolicyRun(APIView):
    """Ends an active policy run."""

    @extend_schema(request=None, responses=PolicyRunSerializer)
    def post(self, request: Request, pk: int) -> Response:
        run = managed_policy_run(access.user_of(request), pk)
        runs.cancel(run, now=database_now())
        run.refresh_from_db()
        return Response(PolicyRunSerializer(run).data)


class RetryPolicyRun(APIView):
    """A new run like one that failed or was cancelled: the same settings, and the same snapshot if it may be used."""

    @extend_schema(request=None, responses={202: PolicyRunSerializer})
    def post(self, request: Request, pk: int) -> Response:
        run = managed_policy_run(access.user_of(request), pk)
        return _accepted(runs.retry(run, by=access.user_of(request)))


class PolicyFilter(filters.FilterSet):  # type: ignore[misc]
    project = filters.CharFilter("project__slug")

    class Meta:
        model = Policy
        fields = ["state"]


class Policies(generics.ListAPIView[Policy]):
    """The policies of the projects that the caller manages."""

    serializer_class = PolicySerializer
    queryset = Policy.objects.none()
    filterset_class = PolicyFilter

    def get_queryset(self) -> QuerySet[Policy]:
        projects = Project.objects.managed_by(access.user_of(self.request))
        return Policy.objects.filter(project__in=projects).select_related("project", "run__snapshot")


class OnePolicy(APIView):
    """One policy with its lineage and the figures by which it was judged."""

    @extend_schema(responses=PolicySerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(PolicySerializer(managed_policy(access.user_of(request), pk)).data)


class Offer(APIView):
    """Offers a policy by hand. It needs `confirm`: without it the answer is 409 with the reason against it."""

    @extend_schema(request=OfferRequestSerializer, responses=PolicySerializer)
    def post(self, request: Request, pk: int) -> Response:
        policy = managed_policy(access.user_of(request), pk)
        data = validated(OfferRequestSerializer(data=request.data))
        offered = policy_registry.offer(policy, confirmed=data["confirm"], now=database_now())
        return Response(PolicySerializer(offered).data)


class FilesOfPolicy(APIView):
    """The files of a policy with their sizes and hashes."""

    @extend_schema(responses=ModelFileSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        files = downloads.files_of(managed_policy(access.user_of(request), pk))
        return Response(ModelFileSerializer(files, many=True).data)


class FileOfPolicy(APIView):
    """One file, by its path in the list, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, (206, "application/octet-stream"): bytes},
        parameters=RANGE,
    )
    def get(self, request: Request, pk: int, path: str) -> HttpResponseBase:
        return downloads.sent_file(request._request, managed_policy(access.user_of(request), pk), path)


class ArchiveOfPolicy(APIView):
    """All files as one tar file, whole or in parts (`Range`, `If-Range`)."""

    content_negotiation_class = WhateverIsAccepted

    @extend_schema(responses={(200, TAR): OpenApiTypes.BINARY, (206, TAR): bytes}, parameters=RANGE)
    def get(self, request: Request, pk: int) -> HttpResponseBase:
        return downloads.sent_archive(request._request, managed_policy(access.user_of(request), pk))
