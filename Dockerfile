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
ENTRYPOINT ["varve"]
CMD ["standalone", "start", "--http-addr", "0.0.0.0:4000", "--data-home", "/var/lib/varve", "--allow-unauthenticated"]
