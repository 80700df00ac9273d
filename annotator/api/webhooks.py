"""REST calls on webhooks, for a project's managers: make, change and test them, and look at what was sent."""

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from annotator.api.fields import KnownFields, validated
from annotator.api.model_serializers import ModelSerializer
from annotator.api.pagination import CursorPages
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.webhooks.events import EVENTS
from annotator.managing import webhooks as endpoints
from annotator.managing.webhooks import WebhookInput
from annotator.models import LONGEST_URL, Webhook, WebhookDelivery
from annotator.reading import access


class WebhookSerializer(ModelSerializer[Webhook]):
    """A webhook, without its secret, which only the answers to making it and to a new secret hold."""

    made_by = serializers.CharField(source="made_by.username", default=None, read_only=True)

    class Meta:
        model = Webhook
        fields = ["id", "url", "events", "active", "end_reason", "failing_since", "made_by", "created_at"]


class NewWebhookSerializer(WebhookSerializer):
    """A new webhook with its secret, which is not shown again."""

    secret = serializers.CharField(help_text="whsec_...: receivers verify the signatures with it")

    class Meta(WebhookSerializer.Meta):
        fields = [*WebhookSerializer.Meta.fields, "secret"]


class WebhookInputSerializer(KnownFields):
    """What a webhook is to be. Without `events` it gets all."""

    url = serializers.CharField(max_length=LONGEST_URL)
    events = serializers.ListField(
        child=serializers.CharField(max_length=40), max_length=len(EVENTS), default=list, help_text=", ".join(EVENTS)
    )
    active = serializers.BooleanField(default=True)


class SecretSerializer(serializers.Serializer[Any]):
    """The new secret. The old one signs as well for a day."""

    secret = serializers.CharField()


class DeliverySerializer(ModelSerializer[WebhookDelivery]):
    """One event for the webhook, and what the last attempt to send it came to."""

    message_id = serializers.CharField(help_text="webhook-id, the same in every attempt")
    payload = serializers.JSONField(help_text="what is sent")

    class Meta:
        model = WebhookDelivery
        fields = [
            "id",
            "message_id",
            "event",
            "state",
            "payload",
            "attempts",
            "created_at",
            "attempted_at",
            "next_attempt_at",
            "status",
            "seconds",
            "error",
        ]


class NewestDeliveriesFirst(CursorPages):
    """Pages from the newest row on."""

    ordering = "-pk"


def _webhooks(request: Request, slug: str) -> QuerySet[Webhook]:
    return endpoints.webhooks_of(access.managed_project(access.user_of(request), slug))


def _webhook(request: Request, slug: str, pk: int) -> Webhook:
    return get_object_or_404(_webhooks(request, slug), pk=pk)


class Webhooks(generics.ListAPIView[Webhook]):
    """Lists the project's webhooks. A POST makes one, whose secret is answered only this once."""

    serializer_class = WebhookSerializer
    queryset = Webhook.objects.none()
    filterset_fields = ("active",)

    def get_queryset(self) -> QuerySet[Webhook]:
        return _webhooks(self.request, self.kwargs["slug"])

    @extend_schema(
        request=WebhookInputSerializer,
        responses={201: NewWebhookSerializer},
        examples=[
            OpenApiExample(
                "One event",
                {"url": "https://example.org/hooks/rewardloop", "events": ["task.completed"]},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request, slug: str) -> Response:
        user = access.user_of(request)
        project = access.managed_project(user, slug)
        data = validated(WebhookInputSerializer(data=request.data))
        made, _secret = endpoints.make(project, WebhookInput(**data), by=user, now=database_now())
        return Response(NewWebhookSerializer(made).data, status=status.HTTP_201_CREATED)


class OneWebhook(APIView):
    """One webhook: a PATCH changes what it sends, where to and whether; a DELETE removes it with its log."""

    @extend_schema(responses=WebhookSerializer)
    def get(self, request: Request, slug: str, pk: int) -> Response:
        return Response(WebhookSerializer(_webhook(request, slug, pk)).data)

    @extend_schema(request=WebhookInputSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, slug: str, pk: int) -> Response:
        webhook = _webhook(request, slug, pk)
        data = validated(WebhookInputSerializer(data=request.data, partial=True))
        now = {"url": webhook.url, "events": webhook.events, "active": webhook.active}
        changed = endpoints.change(webhook, WebhookInput(**(now | data)))
        return Response(WebhookSerializer(changed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, pk: int) -> Response:
        endpoints.delete(_webhook(request, slug, pk))
        return Response(status=status.HTTP_204_NO_CONTENT)


class TestWebhook(APIView):
    """Sends the event `webhook.test` once; the delivery says what came of it."""

    @extend_schema(request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, slug: str, pk: int) -> Response:
        delivery = endpoints.send_test(_webhook(request, slug, pk))
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)


class RotateWebhookSecret(APIView):
    """Gives the webhook a new secret, which is answered only this once."""

    @extend_schema(request=None, responses=SecretSerializer)
    def post(self, request: Request, slug: str, pk: int) -> Response:
        return Response({"secret": endpoints.rotate(_webhook(request, slug, pk), now=database_now())})


class Deliveries(generics.ListAPIView[WebhookDelivery]):
    """Lists what was sent to the webhook and what is to be sent, the newest first."""

    serializer_class = DeliverySerializer
    queryset = WebhookDelivery.objects.none()
    filterset_fields = ("event", "state")
    pagination_class = NewestDeliveriesFirst

    def get_queryset(self) -> QuerySet[WebhookDelivery]:
        return endpoints.deliveries_of(_webhook(self.request, self.kwargs["slug"], self.kwargs["pk"]))


class RetryDelivery(APIView):
    """Sends a delivery again that has failed, or one now that waits for its next attempt."""

    @extend_schema(request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, slug: str, pk: int, delivery_id: int) -> Response:
        deliveries = endpoints.deliveries_of(_webhook(request, slug, pk))
        delivery = endpoints.send_again(get_object_or_404(deliveries, pk=delivery_id))
        return Response(DeliverySerializer(delivery).data, status=status.HTTP_202_ACCEPTED)
