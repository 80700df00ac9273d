"""REST calls on a project's guidelines: all members read the versions, managers publish the next one."""

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.api.fields import KnownFields, WholeNumberField, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.managing.guidelines import LONGEST_GUIDELINES, publish
from annotator.models import Guideline
from annotator.reading import access


class GuidelineSerializer(ModelSerializer[Guideline]):
    class Meta:
        model = Guideline
        fields = ["version", "text", "created_at"]


class NewGuidelineSerializer(KnownFields):
    """A text in markdown. `based_on` is the version that it changes; it is refused if there is a newer one."""

    text = serializers.CharField(max_length=LONGEST_GUIDELINES, trim_whitespace=False)
    based_on = WholeNumberField(required=False, min_value=0, help_text="0: no version; absent: whichever there is")


class Guidelines(generics.ListAPIView[Guideline]):
    """Lists the versions of a project's guidelines, the oldest first, for its members."""

    serializer_class = GuidelineSerializer
    queryset = Guideline.objects.none()
    filterset_fields = ("version",)

    def get_queryset(self) -> QuerySet[Guideline]:
        return access.visible_project(access.user_of(self.request), self.kwargs["slug"]).guidelines.order_by("pk")

    @extend_schema(
        description="Publishes the next version, which annotators have to read before their next task: 201, or 200 "
        "where the text is the one in force.",
        request=NewGuidelineSerializer,
        responses={200: GuidelineSerializer, 201: GuidelineSerializer},
    )
    def post(self, request: Request, slug: str) -> Response:
        project = access.managed_project(access.user_of(request), slug)
        data = validated(NewGuidelineSerializer(data=request.data))
        guideline, is_new = publish(project, data["text"], based_on=data.get("based_on"))
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(GuidelineSerializer(guideline).data, status=code)
