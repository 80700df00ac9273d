"""The REST call that answers how far a project's annotators agree."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.analysis.agreement.reports import as_json, report
from annotator.infrastructure.db.clock import database_now
from annotator.reading import access


def measure(text: str) -> serializers.FloatField:
    """Returns the field of a measure, which is null where it is undefined."""
    return serializers.FloatField(allow_null=True, help_text=text)


def by_attribute(text: str) -> serializers.DictField:
    return serializers.DictField(child=serializers.FloatField(allow_null=True), help_text=text)


class AgreementSerializer(serializers.Serializer[Any]):
    """Quadratic-weighted kappa over the responses with two ratings or more; each response weighs the same."""

    kappa = measure("pooled over every two ratings of a response; null where it is undefined")
    interval = serializers.ListField(
        child=serializers.FloatField(),
        min_length=2,
        max_length=2,
        allow_null=True,
        help_text="95 %, by a bootstrap over tasks; null for fewer than five tasks, and where nobody differs",
    )
    samples = serializers.IntegerField(help_text="responses with two ratings or more")
    ratings = serializers.IntegerField(help_text="of those responses")
    undefined_reason = serializers.CharField(allow_blank=True)


class PreferenceAgreementSerializer(AgreementSerializer):
    """Agreement on the strengths of a preference; samples are tasks. `kappa` is ordinal: it has quadratic weights.

    Preferences that say "neither valid" do not count here.
    """

    nominal_kappa = measure("Cohen's kappa without weights: every two different strengths differ alike")
    same_side = measure("share of pairs of annotators who prefer the same response, or none")
    neither = measure('share of preferences that are "neither valid"')


class RankingAgreementSerializer(AgreementSerializer):
    """Agreement on the order of every two ranked responses of a task; each such pair of responses is a sample.

    Without ties kappa is the mean of Kendall's tau over every two annotators of a task.
    """

    same_order = measure("share of pairs of annotators who say the same of two responses: which is better, or a tie")
    ties = measure("share of ties")


class SafetyAgreementSerializer(AgreementSerializer):
    """Agreement on the verdicts safe and unsafe."""

    exact = measure("share of pairs of annotators with the same verdict")
    unsafe = measure("share of verdicts that are unsafe")


class AlphaSerializer(serializers.Serializer[Any]):
    ordinal = measure("Krippendorff's alpha with the ordinal distance")
    interval = measure("Krippendorff's alpha with the interval distance")


class AnnotatorAgreementSerializer(serializers.Serializer[Any]):
    """One annotator against all who rated the same responses."""

    annotator = serializers.CharField(help_text="the username for managers, the pseudonym for reviewers")
    shared = serializers.IntegerField(help_text="responses that others have rated too")
    kappa = by_attribute("quadratic-weighted kappa with the others")
    exact = by_attribute("share of the same rating")
    bias = by_attribute("own rating less the others', on average")


class PairAgreementSerializer(serializers.Serializer[Any]):
    annotators = serializers.ListField(child=serializers.CharField(), min_length=2, max_length=2)
    shared = serializers.IntegerField(help_text="responses that both have rated")
    kappa = by_attribute("quadratic-weighted kappa of the two")


class WeekAgreementSerializer(serializers.Serializer[Any]):
    week = serializers.DateField(help_text="its Monday")
    samples = serializers.IntegerField(help_text="responses whose latest rating came in this week")
    kappa = by_attribute("of those responses")


class ProjectAgreementSerializer(serializers.Serializer[Any]):
    """Agreement by attribute: over the first three annotations of each response, all, and those that make the label.

    The other fields cover all annotations. Keeping the closest annotations raises kappa by construction.
    """

    first_three = serializers.DictField(child=AgreementSerializer())
    all = serializers.DictField(child=AgreementSerializer())
    kept = serializers.DictField(child=AgreementSerializer())
    alpha = serializers.DictField(child=AlphaSerializer())
    spearman = by_attribute("Spearman's correlation over every two ratings of a response")
    exact = by_attribute("share of every two ratings of a response that are the same")
    within_one = by_attribute("share of those that are at most one level apart")
    confusion = serializers.DictField(
        child=serializers.ListField(child=serializers.ListField(child=serializers.IntegerField())),
        help_text="how often which two ratings met on a response, in both orders: row and column are scores from 0",
    )
    preference = PreferenceAgreementSerializer()
    ranking = RankingAgreementSerializer()
    safety = SafetyAgreementSerializer()
    annotators = AnnotatorAgreementSerializer(many=True)
    pairs = PairAgreementSerializer(many=True, help_text="the 50 that share most responses, ten at least")
    weeks = WeekAgreementSerializer(many=True, help_text="the latest 53 with ratings, oldest first")
    as_of = serializers.DateTimeField(allow_null=True, help_text="when the last change was counted; now, if all are")
    pending = serializers.IntegerField(help_text="changes that are not counted yet")


class ProjectAgreement(APIView):
    """Returns quadratic-weighted kappa by attribute, side by side for the first three, all and the kept annotations.

    The answer also holds Krippendorff's alpha, Spearman's correlation, exact agreement, confusion, annotators against
    their peers, pairs of annotators, weeks, preferences, rankings and safety.
    """

    @extend_schema(responses=ProjectAgreementSerializer)
    def get(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.reviewed_project(user, slug)
        computed = report(project, now=database_now())
        naming = access.naming_for(user, project)
        return Response(ProjectAgreementSerializer(as_json(computed, name=naming)).data)
