"""REST: reward models are listed, promoted and verified."""

from django.db.models import QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import generics
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import validated
from annotator.api.scopes import ForManagers
from annotator.infrastructure.db.clock import database_now
from annotator.reading import access
from rewards.access import managed_model, reviewed_model
from rewards.api.serializers import (
    LicenseSerializer,
    PromotedSerializer,
    PromotionRequestSerializer,
    RewardModelSerializer,
    VerificationSerializer,
)
from rewards.model_downloads.licenses import set_license
from rewards.models import RewardModel
from rewards.promotion import champions
from rewards.registry import registry


class RewardModelFilter(filters.FilterSet):  # type: ignore[misc]
    project = filters.CharFilter("project__slug")

    class Meta:
        model = RewardModel
        fields = {"project__slug": ["exact"], "is_champion": ["exact"]}


class RewardModels(generics.ListAPIView[RewardModel]):
    """The models of the projects that the caller manages or reviews."""

    serializer_class = RewardModelSerializer
    queryset = RewardModel.objects.none()
    filterset_class = RewardModelFilter

    def get_queryset(self) -> QuerySet[RewardModel]:
        projects = access.reviewed_projects(access.user_of(self.request))
        return whole(RewardModel.objects.filter(project__in=projects))


def whole(models: QuerySet[RewardModel]) -> QuerySet[RewardModel]:
    """Returns the models with all that their serializer shows, in as many queries for many models as for one."""
    return models.select_related("project", "run__snapshot", "parent").prefetch_related("evaluations")


class OneRewardModel(APIView):
    """One model. A PATCH states the licence under which it is passed on."""

    @extend_schema(responses=RewardModelSerializer)
    def get(self, request: Request, pk: int) -> Response:
        user = access.user_of(request)
        model = reviewed_model(user, pk, models=whole(RewardModel.objects.all()))
        return Response(RewardModelSerializer(model).data)

    @extend_schema(request=LicenseSerializer, responses=RewardModelSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        model = managed_model(access.user_of(request), pk, models=whole(RewardModel.objects.all()))
        data = validated(LicenseSerializer(data=request.data))
        set_license(model, data["license"], data["license_text"])
        return Response(RewardModelSerializer(model).data)


class Promote(APIView):
    """Makes a model the champion, be it newer or older than the one in use, and has it score every response.

    One that the gate turned down and that was never in use needs `confirm`: without it the answer is 409 with the
    gate's verdict.
    """

    @extend_schema(
        request=PromotionRequestSerializer,
        responses=PromotedSerializer,
        parameters=[OpenApiParameter("confirm", OpenApiTypes.BOOL, description="the same as in the body")],
    )
    def post(self, request: Request, pk: int) -> Response:
        model = managed_model(access.user_of(request), pk, models=whole(RewardModel.objects.all()))
        parameters = {name: value for name, value in request.query_params.items() if name == "confirm"}
        data = validated(PromotionRequestSerializer(data=request.data or parameters))
        promoted = champions.promote(model, confirmed=data["confirm"], now=database_now())
        return Response({**RewardModelSerializer(model).data, "scores_wait": promoted.scores_wait})


class Verification(ForManagers, APIView):
    """Hashes the model's files and its snapshot's anew, which takes a second or more for each gigabyte."""

    @extend_schema(responses=VerificationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        problems = registry.verify(managed_model(access.user_of(request), pk))
        return Response({"intact": not problems, "problems": problems})
