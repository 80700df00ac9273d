"""The REST call that answers what stands out in annotators' work."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from annotator.analysis.quality.findings import DescribedFlag, Finding, findings
from annotator.api.filters import RaterQualityFilter
from annotator.api.pagination import CursorPages
from annotator.models import RaterQuality
from annotator.reading import access


class FlagSerializer(serializers.Serializer[DescribedFlag]):
    kind = serializers.CharField()
    title = serializers.CharField()
    sentence = serializers.CharField(help_text="what was seen, with its numbers")
    evidence = serializers.DictField(help_text="the numbers alone")
    tasks = serializers.SerializerMethodField(help_text="to look at")

    def get_tasks(self, flag: DescribedFlag) -> list[str]:
        return [task.external_id for task in flag.tasks]


class AnnotatorQualitySerializer(serializers.Serializer[Finding]):
    """One annotator's flags and measures. A flag asks somebody to look; nothing follows from it by itself."""

    annotator = serializers.SerializerMethodField(help_text="the username for managers, the pseudonym for reviewers")
    annotations = serializers.IntegerField(help_text="current ones of open and complete tasks")
    excluded = serializers.SerializerMethodField()
    flags = FlagSerializer(many=True)
    too_few = serializers.BooleanField(
        source="is_too_few",
        help_text="nothing stands out, but others share too few of the ratings to rule out guessing",
    )
    measures = serializers.DictField(help_text="all that was measured")

    def get_annotator(self, finding: Finding) -> str:
        return str(self.context["naming"](finding.annotator))

    def get_excluded(self, finding: Finding) -> bool:
        return finding.exclusion is not None


class AnnotatorPages(CursorPages):
    """Pages in the order that the filter of this name has checked."""

    def get_ordering(self, request: Request, queryset: Any, view: Any) -> tuple[str, ...]:
        """Returns the fields by which the annotators are ordered, each of which is a whole number."""
        asked = request.query_params.get("ordering", "")
        return (asked.replace("flags", "flag_count"), "pk") if asked else ("pk",)


class AnnotatorQualities(generics.ListAPIView[RaterQuality]):
    """Lists a project's annotators with what stands out in their work, for managers and reviewers to judge."""

    serializer_class = AnnotatorQualitySerializer  # type: ignore[assignment]  # of findings on the rows
    queryset = RaterQuality.objects.none()
    filterset_class = RaterQualityFilter
    pagination_class = AnnotatorPages

    @extend_schema(responses=AnnotatorQualitySerializer(many=True))
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        user = access.user_of(request)
        project = access.reviewed_project(user, self.kwargs["slug"])
        page = self.paginate_queryset(self.filter_queryset(project.rater_qualities.select_related("annotator")))
        context = {"naming": access.naming_for(user, project)}
        rows = [AnnotatorQualitySerializer(finding, context=context).data for finding in findings(project, page or [])]
        return self.get_paginated_response(rows)
