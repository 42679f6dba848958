# Stands in for apicurio/apicurio-registry-mem: the server from Maven Central, on Debian's Java.
FROM ledgermq-stand-in/debian
RUN apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless
COPY server /deployments
USER nobody
WORKDIR /tmp
EXPOSE 8080
CMD exec java $JAVA_OPTIONS -jar /deployments/*-runner.jar
