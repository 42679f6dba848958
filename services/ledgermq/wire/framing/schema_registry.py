"""A Confluent-compatible schema registry: what writers register there, and the ids they get.

Theory of operation. A schema's subject is its full name, so that all installations and topic
prefixes share one. A schema whose last field may be left out has two versions there, without it and
with it. Whatever is not registered yet is checked against all versions of its subject
(FULL_TRANSITIVE), then registered. A process asks each registry once; from then on it needs none.
"""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote, urlencode, urlsplit, urlunsplit
from urllib.request import Request

from fastavro.schema import SchemaParseException

from ledgermq.errors import (
    SchemaRefusedError,
    SchemaRegistryError,
    SchemaRegistryUnavailableError,
)
from ledgermq.wire.bounded_http import ask
from ledgermq.wire.framing.codec import OPERATION
from ledgermq.wire.framing.confluent import ConfluentFraming
from ledgermq.wire.framing.schemas import (
    ANSWER,
    ASK,
    CHUNK,
    HEARTBEAT,
    KnownSchema,
    fingerprint_of_text,
    forms_of,
    names,
    self_contained,
)
from ledgermq.wire.topics.address import AddressError

COMPATIBILITY: Final = "FULL_TRANSITIVE"
# Records of the log topics. Claims and checkpoints are written without a registry.
REGISTERED_BESIDE_OPERATIONS: Final = (CHUNK, ANSWER, ASK, HEARTBEAT)
ID_MAX: Final = 2**31 - 1
TIMEOUT_SECONDS: Final = 10.0
NOT_FOUND: Final = 404
CONFLICT: Final = 409
# What a registry says in the body of such an answer; anybody's server may have no such page.
NOT_FOUND_CODES: Final = range(40400, 40500)
# What a registry that starts or is asked too often, or a proxy before one that is down, answers.
UNAVAILABLE: Final = (408, 429, *range(500, 600))
FORBIDDEN: Final = (401, 403)

T = TypeVar("T")
_FRAMINGS: Final[dict[str, ConfluentFraming]] = {}
# Of each process its own: one that was held while a process forked nobody would release there.
_LOCKS: Final[dict[int, threading.Lock]] = {}


class SchemaStatus(NamedTuple):
    """How a schema stands in a registry; no id: it is not registered."""

    subject: str
    schema_id: int | None
    compatibility: str | None


def registered_forms() -> list[KnownSchema]:
    """The schemas that are registered, in the order of their subjects' versions."""
    operations = [name for name in names() if name.startswith(OPERATION)]
    return [one for name in (*operations, *REGISTERED_BESIDE_OPERATIONS) for one in forms_of(name)]


def shown_url(url: str) -> str:
    """An address without what is secret in it."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "(an address that is none)"


def framing_of(url: str | None) -> ConfluentFraming | None:
    """The framing by the ids of a registry, which gets what it lacks; None without an address.

    Raises:
        SchemaRegistryUnavailableError: It does not answer.
        SchemaRefusedError: It does not take a schema, because its subject has other versions.
        SchemaRegistryError: What answers is no registry, or forbids it.
        AddressError: The address is none, or packages that it takes are not installed.
    """
    if not url:
        return None
    with _LOCKS.setdefault(os.getpid(), threading.Lock()):
        framing = _FRAMINGS.get(url)
        if framing is None:
            framing = _FRAMINGS[url] = SchemaRegistry(url).register()
        return framing


class SchemaRegistry:
    """A registry by `http[s]://[USER:PASSWORD@]HOST[:PORT][/PATH]`; any other: AddressError."""

    def __init__(self, url: str) -> None:
        self.shown = shown_url(url)
        self._client = self._connect(url)

    def _connect(self, url: str) -> Any:
        try:
            from confluent_kafka.schema_registry import SchemaRegistryClient
        except ImportError as error:
            raise AddressError(
                f"a schema registry needs packages that are not installed ({error.name}): "
                "pip install 'ledgermq[registry]'"
            ) from error
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and "," not in url
        except ValueError:
            usable = None
        if not usable:
            raise AddressError(
                f"{self.shown} is no address of a schema registry; it is "
                "http://[USER:PASSWORD@]HOST:PORT/PATH"
            )
        # The client reads user and password out of the address, and its libraries log that.
        plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        settings = {"url": plain, "timeout": TIMEOUT_SECONDS, "max.retries": 0}
        if parts.username is not None:
            user, password = unquote(parts.username), unquote(parts.password or "")
            settings["basic.auth.user.info"] = f"{user}:{password}"
        client = SchemaRegistryClient(settings)
        # Its own session reads answers without end, and has no place for a limit.
        asking: Any = client._rest_client
        asking.session = _BoundedSession(asking)
        return client

    def register(self) -> ConfluentFraming:
        """Registers what is not registered yet; raises what `framing_of` does."""
        ids = {}
        for form in registered_forms():
            found = self._lookup(form)
            ids[form.fingerprint] = self._add(form) if found is None else found
        if len(set(ids.values())) < len(ids):
            raise SchemaRegistryError(
                f"what answers at {self.shown} gave one id to several schemas: it is no registry"
            )
        return ConfluentFraming(ids)

    def statuses(self) -> Iterator[SchemaStatus]:
        """How each schema stands; changes nothing."""
        for form in registered_forms():
            found = self._lookup(form)
            level = None if found is None else self._compatibility(form.full_name)
            yield SchemaStatus(form.full_name, found, level)

    def is_compatible(self, form: KnownSchema) -> bool:
        """Whether a schema fits all versions of its subject, by the subject's own level."""
        name, schema = form.full_name, _schema(form)
        return self._told(
            name, lambda client: bool(client.test_compatibility_all_versions(name, schema)), True
        )

    def fingerprint_of(self, number: int) -> bytes | None:
        """The fingerprint of the schema that an id stands for; None: of none."""
        text = self.text_of(number)
        if text is None:
            return None
        try:
            return fingerprint_of_text(text)
        except (SchemaParseException, ValueError, TypeError, KeyError):
            return None

    def text_of(self, number: int) -> str | None:
        """The Avro schema that an id stands for, anybody's; None: of none.

        None takes a registry's word: records aside for want of a schema do not come back.
        """
        if number > ID_MAX:
            return None
        with self._asking(f"of id {number}") as client:
            try:
                found = client.get_schema(number)
            except self._error as error:
                if error.error_code not in NOT_FOUND_CODES:
                    raise
                return None
            return str(found.schema_str) if found.schema_type == "AVRO" else None

    def _lookup(self, form: KnownSchema) -> int | None:
        name, schema = form.full_name, _schema(form)
        return self._told(
            name, lambda client: self._checked(client.lookup_schema(name, schema).schema_id), None
        )

    def _add(self, form: KnownSchema) -> int:
        """The id of a schema that is registered now, if it fits all that its subject has."""
        name = form.full_name
        versions: list[int] = self._told(name, lambda client: client.get_versions(name), [])
        with self._asking(name) as client:
            if versions:
                client.set_compatibility(name, COMPATIBILITY)
                if not self.is_compatible(form):
                    raise self._refused(name, f"it has {len(versions)} others")
            found = self._checked(client.register_schema(name, _schema(form)))
            client.set_compatibility(name, COMPATIBILITY)
            return found

    def _compatibility(self, name: str) -> str | None:
        return self._told(name, lambda client: str(client.get_compatibility(name)), None)

    def _told(self, what: str, question: Callable[[Any], T], missing: T) -> T:
        """What the registry answers; `missing` where it has no such thing."""
        with self._asking(what) as client:
            try:
                return question(client)
            except self._error as error:
                if error.http_status_code != NOT_FOUND or error.error_code not in NOT_FOUND_CODES:
                    raise
                return missing

    @property
    def _error(self) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError as Answered

        return Answered

    @contextmanager
    def _asking(self, name: str) -> Iterator[Any]:
        """The client; what goes wrong becomes an error that says where, about which schema."""
        try:
            yield self._client
        except self._error as error:
            raise self._of_answer(name, error) from error
        except SchemaRegistryError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # An answer that is not JSON, or JSON that is no answer to this.
            raise self._no_registry() from error
        except Exception as error:
            # The HTTP library's own errors, of which a program without it knows no class.
            raise SchemaRegistryUnavailableError(
                f"the schema registry at {self.shown} does not answer ({type(error).__name__}): "
                "start it, or check the address"
            ) from error

    def _of_answer(self, name: str, error: Any) -> Exception:
        status = error.http_status_code
        if status == CONFLICT:
            return self._refused(name, "the registry says that they are not compatible")
        if status in UNAVAILABLE:
            return SchemaRegistryUnavailableError(
                f"the schema registry at {self.shown} answers with HTTP status {status}: look at "
                "its log"
            )
        if status in FORBIDDEN:
            return SchemaRegistryError(
                f"the schema registry at {self.shown} forbids it (HTTP status {status}): give user "
                "and password in the address, with the right to read and to register "
                f"{name}; or have somebody register it with `ledgermq schema register`"
            )
        return self._no_registry()

    def _refused(self, name: str, why: str) -> SchemaRefusedError:
        return SchemaRefusedError(
            f"the schema registry at {self.shown} has versions of subject {name} that LedgerMQ's "
            f"schema is not compatible with ({why}): delete them if they are not LedgerMQ's, or "
            "use another registry"
        )

    def _no_registry(self) -> SchemaRegistryError:
        return SchemaRegistryError(
            f"what answers at {self.shown} does not speak the API of Confluent's registry: check "
            "the address (of Apicurio it ends with /apis/ccompat/v7)"
        )

    def _checked(self, number: Any) -> int:
        if type(number) is not int or not 0 <= number <= ID_MAX:
            raise self._no_registry()
        return number


class _BoundedSession:
    """What the client asks by, in place of its HTTP library's session."""

    def __init__(self, given: Any) -> None:
        given.session.close()
        self._context, user = given.verify, given.auth
        token = base64.b64encode(":".join(user).encode()).decode() if user else None
        self._headers = {"Authorization": f"Basic {token}"} if token else {}

    def request(
        self, method: str, *, url: str, headers: Any, content: str | None, params: Any
    ) -> Any:
        from confluent_kafka.schema_registry.common._httpx_compat import Response

        where = f"{url}?{urlencode(params)}" if params else url
        body = None if content is None else content.encode()
        asked = Request(where, body, {**headers, **self._headers}, method=method)
        answer = ask(asked, TIMEOUT_SECONDS, context=self._context)
        return Response(answer.status, content=answer.page)


def _schema(form: KnownSchema) -> Any:
    from confluent_kafka.schema_registry import Schema

    return Schema(self_contained(form), schema_type="AVRO")
