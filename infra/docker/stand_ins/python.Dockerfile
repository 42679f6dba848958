# Stands in for python:3.11-slim-bookworm: Debian's Python 3.11 under the names that image has.
FROM ledgermq-stand-in/debian
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && ln -s /usr/bin/python3 /usr/local/bin/python3 && ln -s /usr/bin/python3 /usr/local/bin/python
CMD ["python3"]
