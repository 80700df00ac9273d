"""The button of the admin's opening page, beside the admin's own addresses."""

from django.urls import path

from rewards.admin import actions

urlpatterns = [path("test-mail/", actions.send_test_mail, name="send-test-mail")]
