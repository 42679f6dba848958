"""Tests of options of Kafka's clients: where they come from, and which cannot be."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgermq
from ledgermq.processor.log.aiokafka_options import aiokafka_options
from ledgermq.wire.kafka.settings import (
    OWN,
    KafkaSettings,
    client_options,
    forget_kafka_environment,
    kafka_settings,
)
from ledgermq.wire.topics.address import AddressError
from ledgermq_spark.log.spark_options import spark_options
from support.brokers.secured_broker import Authority

BY_PASSWORD = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "till",
    "sasl.password": "hush",
}
VARIABLES = {f"LEDGERMQ_KAFKA_{k.replace('.', '_').upper()}": v for k, v in BY_PASSWORD.items()}


def test_without_settings_clients_have_their_own_options_alone():
    """Nothing given is nothing changed."""
    settings = kafka_settings(environment={"LEDGERMQ_BOOTSTRAP": "h:1", "LEDGERMQ_KAFKA_X": ""})
    assert settings == KafkaSettings()
    assert client_options("h:1", {"acks": "all"}, settings) == {
        "bootstrap.servers": "h:1",
        "acks": "all",
    }
    assert aiokafka_options(kafka=settings) == {"security_protocol": "PLAINTEXT"}
    assert spark_options(settings) == {}


def test_the_program_wins_over_variables_and_these_over_the_file(tmp_path):
    """Three sources, the nearest counts."""
    path = tmp_path / "client.properties"
    path.write_text("# remark\n! another\n\nclient.id = a=b \nlinger.ms=7\nclient.rack=file\n")
    variables = {
        "LEDGERMQ_KAFKA_CONFIG": str(path),
        "LEDGERMQ_KAFKA_LINGER_MS": "8",
        "LEDGERMQ_KAFKA_CLIENT_RACK": "variable",
    }
    found = kafka_settings({"client.rack": "program"}, variables).librdkafka
    assert found == {"client.id": "a=b", "linger.ms": "8", "client.rack": "program"}


def test_a_value_may_lie_in_a_file_of_its_own(tmp_path):
    """The line's end of such a file is none of the secret; blanks are."""
    path = tmp_path / "password"
    path.write_text(" hush \n")
    variables = {k: v for k, v in VARIABLES.items() if "PASSWORD" not in k}
    variables["LEDGERMQ_KAFKA_SASL_PASSWORD_FILE"] = str(path)
    assert kafka_settings(environment=variables).librdkafka["sasl.password"] == " hush "
    twice = variables | {"LEDGERMQ_KAFKA_SASL_PASSWORD": "x"}
    with pytest.raises(AddressError, match="say the same thing"):
        kafka_settings(environment=twice)
    missing = variables | {"LEDGERMQ_KAFKA_SASL_PASSWORD_FILE": str(tmp_path / "none")}
    with pytest.raises(AddressError, match=r"PASSWORD_FILE names .*none.* cannot be read"):
        kafka_settings(environment=missing)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"no.such.option": "1"}, "No such configuration property"),
        ({"security.protocol": "TLS"}, "security.protocol is 'TLS', must be one of"),
        ({"security.protocol": "PLAINTEXT"}, "which has no users"),
        ({"security.protocol": "SSL"}, "which has no users"),
        ({"sasl.password": ""}, "sasl.password is missing"),
        ({"sasl.username": ""}, "sasl.username is missing"),
        ({"sasl.mechanism": ""}, "sasl.mechanism is missing"),
        ({"sasl.mechanism": "BOGUS"}, "Unsupported SASL mechanism"),
        ({"ssl.ca.location": "/none"}, "ssl.ca.location is given.*no TLS"),
        ({"linger.ms": "soon"}, "linger|queue.buffering"),
        ({"socket.timeout.ms": "15s"}, "socket.timeout.ms is '15s', must be a number of"),
        (
            {"socket.send.buffer.bytes": "9MiB"},
            "socket.send.buffer.bytes is '9MiB', must be a number of bytes",
        ),
        ({"queue.buffering.max.kbytes": "1e6"}, "must be a number of kbytes"),
        ({"sasl.jaas.config": "x password='hush'"}, "JAAS"),
        ({"client.id": ["a"]}, "no option of Kafka"),
        ({"group.id": None}, "no option of Kafka"),
    ],
)
def test_what_cannot_be_is_refused_in_words(change, said):
    """An unknown option, a missing half or a wrong type is an error that never shows a secret."""
    with pytest.raises(AddressError, match=said) as caught:
        kafka_settings(BY_PASSWORD | change, {})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("name", sorted(OWN - {"error_cb", "logger"}))
def test_what_the_log_rests_on_cannot_be_set(name):
    """An option that would break order, durability or addressing is not the user's."""
    with pytest.raises(AddressError, match=f"{re.escape(name)} is not for you to give"):
        kafka_settings({name: "1"}, {})


def test_who_gives_the_brokers_as_an_option_is_told_where_they_are_said():
    """A program has no option --bootstrap, and does not read its variable."""
    with pytest.raises(AddressError, match=r"in the address of connect, or to commands by --boot"):
        kafka_settings({"bootstrap.servers": "localhost:9092"}, {})


def test_a_file_may_begin_with_the_mark_of_windows_editors(tmp_path):
    """It is part of no option's name, and of no password."""
    options, password = tmp_path / "options", tmp_path / "password"
    options.write_text("security.protocol=SASL_PLAINTEXT\r\n", encoding="utf-8-sig")
    password.write_text("hush\r\n", encoding="utf-8-sig")
    variables = {name: value for name, value in VARIABLES.items() if "SASL_PASSWORD" not in name}
    del variables["LEDGERMQ_KAFKA_SECURITY_PROTOCOL"]
    variables |= {
        "LEDGERMQ_KAFKA_CONFIG": str(options),
        "LEDGERMQ_KAFKA_SASL_PASSWORD_FILE": str(password),
    }
    assert kafka_settings(environment=variables).librdkafka == BY_PASSWORD


def test_files_that_cannot_be_read_are_named():
    """A certificate authority that is not there is said before anything is tried."""
    tls = BY_PASSWORD | {"security.protocol": "SASL_SSL", "ssl.ca.location": "/none/ca.pem"}
    with pytest.raises(AddressError, match=r"ssl.ca.location is '/none/ca.pem', which cannot be"):
        kafka_settings(tls, {})
    with pytest.raises(AddressError, match="LEDGERMQ_KAFKA_CONFIG names '/none/x'"):
        kafka_settings(environment={"LEDGERMQ_KAFKA_CONFIG": "/none/x"})


def test_a_line_that_is_none_is_told_by_its_number_alone(tmp_path):
    """What stands there may be a secret."""
    path = tmp_path / "client.properties"
    path.write_text("linger.ms=1\nsasl.password hush\n")
    with pytest.raises(AddressError, match="line 2 of") as caught:
        kafka_settings(environment={"LEDGERMQ_KAFKA_CONFIG": str(path)})
    assert "hush" not in str(caught.value)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_a_password_may_be_any_text_and_never_shows(password):
    """Settings and what is made of them keep a password whole, and show it nowhere."""
    settings = kafka_settings(BY_PASSWORD | {"sasl.password": f"hush{password}"}, {})
    assert f"hush{password}" == settings.librdkafka["sasl.password"]
    options = client_options("h:1", {}, settings)
    assert aiokafka_options(kafka=settings)["sasl_plain_password"] == f"hush{password}"
    for shown in (repr(settings), str(settings), repr(options), repr(dict(settings.librdkafka))):
        assert "hush" not in shown


def test_the_file_may_speak_to_one_library_alone(tmp_path):
    """Options of aiokafka and Spark pass through under their own names, and are checked."""
    path = tmp_path / "client.properties"
    path.write_text(
        "aiokafka.request_timeout_ms=50000\nspark.kafkaConsumer.pollTimeoutMs=9\n"
        "spark.kafka.ssl.truststore.location=/x.jks\n"
    )
    settings = kafka_settings(environment={"LEDGERMQ_KAFKA_CONFIG": str(path)})
    assert settings.librdkafka == {}
    assert aiokafka_options(kafka=settings)["request_timeout_ms"] == 50000
    assert spark_options(settings) == {
        "kafkaConsumer.pollTimeoutMs": "9",
        "kafka.ssl.truststore.location": "/x.jks",
    }
    for name in ("group_id", "nothing_of_it"):
        wrong = KafkaSettings(aiokafka={name: "1"})
        with pytest.raises(AddressError, match=f"aiokafka.{name} is no option"):
            aiokafka_options(kafka=wrong)


@pytest.mark.parametrize(
    ("name", "text", "like"),
    [("request_timeout_ms", "60s", 40000), ("exclude_internal_topics", "yes", True)],
)
def test_a_value_that_aiokafka_does_not_take_is_refused_by_its_name(name, text, like):
    """A worker ended with the traceback of a thread, or took what it did not know for no."""
    with pytest.raises(AddressError, match=f"aiokafka.{name} is '{text}', must be like {like}"):
        aiokafka_options(kafka=KafkaSettings(aiokafka={name: text}))


def test_certificates_travel_to_spark_as_texts(tmp_path):
    """Executors need no files; a key that Java cannot read is refused with what to do."""
    authority = Authority(tmp_path)
    certificate, key = authority.sign("till")
    options = {
        "security.protocol": "ssl",
        "ssl.ca.location": authority.certificate,
        "ssl.certificate.location": certificate,
        "ssl.key.location": key,
    }
    settings = kafka_settings(options, {})
    found = spark_options(settings)
    assert found["kafka.security.protocol"] == "SSL"
    assert found["kafka.ssl.truststore.certificates"] == authority.certificate.read_text()
    assert found["kafka.ssl.keystore.key"] == key.read_text()
    context = aiokafka_options(kafka=settings)["ssl_context"]
    assert len(context.get_ca_certs()) == 1
    assert context.check_hostname
    key.write_text(key.read_text().replace("PRIVATE KEY", "RSA PRIVATE KEY"))
    with pytest.raises(AddressError, match="openssl pkcs8"):
        spark_options(settings)
    with pytest.raises(AddressError, match=r"ssl.key.location is missing"):
        kafka_settings({k: v for k, v in options.items() if "key" not in k}, {})


def test_a_login_for_java_keeps_quotes_and_backslashes():
    """What Java reads between quotes is what was given."""
    odd = 'a"b\\c'
    settings = kafka_settings(BY_PASSWORD | {"sasl.password": odd}, {})
    login = spark_options(settings)["kafka.sasl.jaas.config"]
    assert 'password="a\\"b\\\\c";' in login


def test_a_broker_of_ones_own_is_spoken_to_plainly(monkeypatch):
    """What the environment says is for another cluster than the one of `ledgermq up`."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    assert forget_kafka_environment()
    assert kafka_settings() == KafkaSettings()
    assert not forget_kafka_environment()


def test_connect_refuses_options_before_it_tries_anything():
    """A wrong option is the caller's mistake, and is said at once."""
    with pytest.raises(AddressError, match=r"sasl.password is missing"):
        ledgermq.connect("kafka://h:1", kafka=BY_PASSWORD | {"sasl.password": ""})
    with pytest.raises(ledgermq.LedgerMQError, match="kafka"):
        ledgermq.connect("kafka://h:1", kafka="security.protocol=SSL")


def test_the_file_of_options_may_be_a_path():
    """Locations are texts or paths."""
    with pytest.raises(AddressError, match="cannot be read"):
        kafka_settings({"security.protocol": "SSL", "ssl.ca.location": Path("/none")}, {})
