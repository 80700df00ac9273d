"""REST calls on rubrics: those that are offered to new projects, and a project's own with its versions."""

from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, NumberField, WholeNumberField, validated
from annotator.infrastructure.web.query_parameters import flag
from annotator.managing import rubrics
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Attribute, Rubric
from annotator.reading import access


class AttributeTextSerializer(KnownFields):
    key = serializers.CharField(max_length=100, help_text="small letters, digits and underscores")
    name = serializers.CharField(max_length=1000)
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)
    levels = serializers.ListField(
        child=serializers.CharField(max_length=1000), max_length=100, help_text="2 to 7 texts, the lowest level first"
    )
    checks = serializers.ListField(
        child=serializers.ListField(child=serializers.CharField(max_length=1000), min_length=2, max_length=2),
        required=False,
        max_length=100,
        help_text="boxes beside the scale: [[key, text], ...]",
    )
    scope = serializers.ChoiceField(choices=Attribute.Scope.choices, required=False)
    weight = NumberField(required=False, allow_null=True, help_text="in the reward; null everywhere: the trainer's")


class RubricTextSerializer(KnownFields):
    """A rubric as somebody writes it. The stage function checks its texts."""

    key = serializers.CharField(max_length=100)
    name = serializers.CharField(max_length=1000)
    version = WholeNumberField(
        required=False,
        min_value=1,
        help_text="in a PUT: the version that this one changes; 409 if there is a newer one",
    )
    attributes = serializers.ListField(child=AttributeTextSerializer(), max_length=100)


def text_of(data: Any) -> RubricText:
    """Returns the rubric that a JSON value holds; raises ValidationError if it is of another shape."""
    return _text_and_version(data)[0]


def _text_and_version(data: Any) -> tuple[RubricText, int | None]:
    fields = validated(RubricTextSerializer(data=data))
    attributes = (
        AttributeText(
            **one
            | {"levels": tuple(one["levels"]), "checks": tuple((key, text) for key, text in one.get("checks", ()))}
        )
        for one in fields["attributes"]
    )
    return RubricText(fields["key"], fields["name"], tuple(attributes)), fields.get("version")


def answered(rubric: Rubric) -> dict[str, Any]:
    """Returns a rubric as REST answers it; `text_of` reads it back."""
    return {"version": rubric.version, **asdict(RubricText.of(rubric))}


class ChangeSerializer(serializers.Serializer[rubrics.Change]):
    """What publishing the rubric would do; nothing has been changed."""

    version = serializers.IntegerField()
    added = serializers.ListField(child=serializers.CharField(), help_text="keys of attributes")
    removed = serializers.ListField(child=serializers.CharField())
    reworded = serializers.ListField(child=serializers.CharField())
    reordered = serializers.ListField(
        child=serializers.CharField(), help_text="all in their new order, if those that stay change places"
    )
    renamed = serializers.BooleanField(help_text="whether the rubric gets another name or key")
    annotations = serializers.IntegerField(help_text="they keep their version and their scores")
    complete = serializers.IntegerField(help_text="tasks whose labels stay")
    begun = serializers.IntegerField(help_text="tasks whose labels will hold what all of their annotations share")
    spread_attribute = serializers.CharField(help_text="decides on further annotators afterwards")
    scored = serializers.DictField(
        child=serializers.IntegerField(),
        help_text="annotations with scores for each removed attribute, which exports keep, counted up to "
        f"{rubrics.MOST_COUNTED:,}",
    )


class Rubrics(generics.GenericAPIView[Rubric]):
    """The rubrics that new projects can choose: those that come with the product, and the caller's own."""

    serializer_class = RubricTextSerializer
    queryset = Rubric.objects.none()
    filterset_fields = ("key",)

    def get_queryset(self) -> QuerySet[Rubric]:
        return Rubric.objects.offered_to(access.user_of(self.request)).prefetch_related("attributes").order_by("pk")

    @extend_schema(responses=RubricTextSerializer(many=True))
    def get(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response([answered(rubric) for rubric in page or ()])

    @extend_schema(
        responses={201: RubricTextSerializer},
        examples=[
            OpenApiExample(
                "One attribute",
                {
                    "key": "support",
                    "name": "Answers of our help desk",
                    "attributes": [
                        {
                            "key": "tone",
                            "name": "Tone",
                            "description": "How does the answer sound?",
                            "levels": ["Rude", "Plain", "Kind"],
                        }
                    ],
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        user = access.user_of(request)
        if not access.may_create_projects(user):
            raise PermissionDenied("Only staff and managers can make rubrics.")
        made = rubrics.offer(text_of(request.data), by=user)
        return Response(answered(made), status=status.HTTP_201_CREATED)


class ProjectRubric(APIView):
    """The rubric that a project rates by. Managers replace it by its next version; annotations keep theirs."""

    @extend_schema(
        parameters=[OpenApiParameter("version", int, description="an earlier one instead of the one in force")],
        responses=RubricTextSerializer,
    )
    def get(self, request: Request, slug: str) -> Response:
        project = access.visible_project(access.user_of(request), slug)
        wanted = request.query_params.get("version", "")
        found = [rubric for rubric in rubrics.versions(project) if wanted in ("", str(rubric.version))]
        if not found:
            raise serializers.ValidationError({"version": [f"{project.name} has no version {wanted[:20]}."]})
        return Response(answered(found[0]))

    @extend_schema(
        parameters=[OpenApiParameter("dry_run", bool, description="1: say what it would do, and change nothing")],
        request=RubricTextSerializer,
        responses=RubricTextSerializer,
    )
    def put(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project, (text, based_on) = access.managed_project(user, slug), _text_and_version(request.data)
        if flag(request.query_params, "dry_run"):
            return Response(ChangeSerializer(rubrics.change(project, text)).data)
        return Response(answered(rubrics.publish(project, text, by=user, based_on=based_on)))
