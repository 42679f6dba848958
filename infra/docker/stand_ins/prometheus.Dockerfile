# Stands in for prom/prometheus: Debian's package of the same version, the same entry.
FROM ledgermq-stand-in/debian
RUN apt-get update \
    && apt-get install --yes --no-install-recommends prometheus wget \
    && install --directory --owner=nobody --group=nogroup /prometheus
USER nobody
WORKDIR /prometheus
VOLUME ["/prometheus"]
EXPOSE 9090
ENTRYPOINT ["/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
