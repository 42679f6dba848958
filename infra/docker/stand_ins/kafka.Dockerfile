# Stands in for apache/kafka: the jars from Maven Central, Debian's Java, the same entry.
FROM ledgermq-stand-in/debian
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless
RUN useradd --uid 1000 appuser \
    && install --directory --owner=appuser /var/lib/kafka/data /opt/kafka/config /mnt/shared/config
COPY jars /opt/kafka/libs
COPY run /etc/kafka/docker/run
RUN touch /etc/kafka/docker/server.properties /etc/kafka/docker/log4j2.yaml \
    /etc/kafka/docker/tools-log4j2.yaml
VOLUME ["/var/lib/kafka/data"]
USER appuser
EXPOSE 9092
CMD ["/etc/kafka/docker/run"]
