"""Tokens of SASL OAUTHBEARER for aiokafka, fetched as librdkafka does: by OIDC."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlencode

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaConnectionError

from ledgermq.wire.bounded_http import ask
from ledgermq.wire.kafka.certificates import context_of
from ledgermq.wire.topics.address import AddressError

PREFIX: Final = "sasl.oauthbearer."
NEEDED: Final = ("client.id", "client.secret", "token.endpoint.url")
TIMEOUT_SECONDS: Final = 10.0
# What asking somebody may end in who is no issuer, or is not there.
NO_ANSWER: Final = (OSError, HTTPException, OverflowError)
NO_TOKEN: Final = (ValueError, KeyError, TypeError, RecursionError)
# A token is fetched anew when this share of its life is over, as librdkafka does.
RENEWED_AT: Final = 0.8


class OidcTokens(AbstractTokenProvider):  # type: ignore[misc]
    """What a client's id and secret are exchanged for at an issuer's token endpoint.

    Raises:
        AddressError: the options of Kafka ask for another way, or something is missing.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = {
            name.removeprefix(PREFIX): str(value)
            for name, value in given.items()
            if name.startswith(PREFIX)
        }
        if self._given.get("method") != "oidc":
            raise AddressError(
                f"{PREFIX}method must be oidc: a worker exchanges the client's id and secret for "
                "a token, and has no other way"
            )
        missing = next((name for name in NEEDED if not self._given.get(name)), None)
        if missing is not None:
            raise AddressError(f"{PREFIX}{missing} is missing: a worker needs it to get a token")
        endpoint = self._given["token.endpoint.url"]
        if not endpoint.startswith(("https://", "http://")):
            raise AddressError(f"{PREFIX}token.endpoint.url is {endpoint}: give an https address")
        self._context = context_of(cafile=given.get("https.ca.location") or None)
        self._token, self._renew_at = "", 0.0

    async def token(self) -> str:
        """A token that is valid; KafkaConnectionError if the issuer gives none."""
        if time.monotonic() >= self._renew_at:
            await asyncio.get_running_loop().run_in_executor(None, self._fetch)
        return self._token

    def extensions(self) -> dict[str, str]:
        """What goes to Kafka beside the token, such as the cluster at a provider of many."""
        pairs = (one.partition("=") for one in self._given.get("extensions", "").split(",") if one)
        return {name.strip(): value for name, _, value in pairs}

    def _fetch(self) -> None:
        given, endpoint = self._given, self._given["token.endpoint.url"]
        asked = {"grant_type": "client_credentials"}
        if scope := given.get("scope"):
            asked["scope"] = scope
        who = base64.b64encode(f"{given['client.id']}:{given['client.secret']}".encode()).decode()
        request = urllib.request.Request(
            endpoint,
            data=urlencode(asked).encode(),
            headers={"Authorization": f"Basic {who}", "Accept": "application/json"},
        )
        try:
            answered = ask(request, TIMEOUT_SECONDS, context=self._context)
            answered.check()
            answer = json.loads(answered.page)
            token, life_seconds = str(answer["access_token"]), float(answer.get("expires_in", 0))
        except (*NO_ANSWER, *NO_TOKEN) as error:
            raise KafkaConnectionError(f"{endpoint} gave no token: {error}") from None
        self._token = token
        self._renew_at = time.monotonic() + RENEWED_AT * life_seconds
