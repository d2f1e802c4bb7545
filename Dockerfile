# The build needs a C++ compiler for DuckDB, the result only its runtime.
FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG COMMIT=
RUN make build VERSION="$VERSION" COMMIT="$COMMIT"

FROM debian:trixie-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libstdc++6 tzdata \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --uid 10001 --home-dir /var/lib/varve --create-home varve
COPY --from=build /src/bin/varve /usr/local/bin/varve
USER varve
VOLUME /var/lib/varve
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["varve", "healthcheck"]

# There is no access control yet, and inside of a container 127.0.0.1 reaches
# nobody. So the image serves everyone who can reach its port: publish it to
# trusted networks only, such as -p 127.0.0.1:4000:4000.
# `varve healthcheck` reads the same variables.
ENV VARVE_STANDALONE__HTTP__ADDR=0.0.0.0:4000 \
    VARVE_STANDALONE__HTTP__ALLOW_UNAUTHENTICATED=true \
    VARVE_STANDALONE__DATA_HOME=/var/lib/varve
ENTRYPOINT ["varve"]
CMD ["standalone", "start"]
