# syntax=docker/dockerfile:1
#
# One build of the whole workspace, and an image for each binary:
#
#   docker build --target order-service --tag brew/order-service:dev .
#
# Binaries that are built already (for glibc 2.36 or older) are packaged from their folder:
#
#   docker build --target order-service --tag brew/order-service:dev \
#       --build-arg BINARIES=prebuilt --build-context binaries=target/release .

# Which stage the binaries come from: build or prebuilt.
ARG BINARIES=build

FROM rust:1.95-bookworm AS build
# cmake is for Kafka's C library. Versions are those of the Debian release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake rsync \
    && rm -rf /var/lib/apt/lists/*
ARG PROFILE=release
ARG TARGETARCH
WORKDIR /build
# Sources and target stay in a cache, so that only what has changed is compiled. They are compared by content: a checkout
# has times of its own, and what cargo takes for old it does not compile.
RUN --mount=type=bind,target=/context \
    --mount=type=cache,id=brew-registry,target=/usr/local/cargo/registry \
    --mount=type=cache,id=brew-build-$TARGETARCH,target=/build,sharing=locked \
    rsync --recursive --links --checksum --delete --exclude=/target /context/ ./ \
    && cargo build --profile="$PROFILE" --locked --workspace --bins \
    && for binary in order-service inventory-service payment-service payment-gateway outbox-publisher brew; do \
        install -D --target-directory=/out "target/$PROFILE/$binary" || exit; \
    done

# Empty, unless --build-context binaries=FOLDER takes its place.
FROM scratch AS binaries

FROM scratch AS prebuilt
COPY --from=binaries order-service inventory-service payment-service payment-gateway outbox-publisher brew /out/

# hadolint ignore=DL3006
FROM ${BINARIES} AS built

# The C library, certificates and time zones: no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot AS runtime
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.vendor="Brew" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# By number, so that Kubernetes can tell that it is not root.
USER 10001:10001
WORKDIR /

FROM runtime AS order-service
LABEL org.opencontainers.image.title="order-service" \
      org.opencontainers.image.description="Accepts orders over gRPC"
COPY --from=built /out/order-service /usr/local/bin/
ENTRYPOINT ["order-service"]

FROM runtime AS inventory-service
LABEL org.opencontainers.image.title="inventory-service" \
      org.opencontainers.image.description="Sets stock aside for orders"
COPY --from=built /out/inventory-service /usr/local/bin/
ENTRYPOINT ["inventory-service"]

FROM runtime AS payment-service
LABEL org.opencontainers.image.title="payment-service" \
      org.opencontainers.image.description="Holds, takes and gives back the money of orders"
COPY --from=built /out/payment-service /usr/local/bin/
ENTRYPOINT ["payment-service"]

FROM runtime AS payment-gateway
LABEL org.opencontainers.image.title="payment-gateway" \
      org.opencontainers.image.description="A sandbox of an outside payment provider"
COPY --from=built /out/payment-gateway /usr/local/bin/
ENTRYPOINT ["payment-gateway"]

FROM runtime AS outbox-publisher
LABEL org.opencontainers.image.title="outbox-publisher" \
      org.opencontainers.image.description="Moves outbox rows to Kafka, in order per aggregate"
COPY --from=built /out/outbox-publisher /usr/local/bin/
ENTRYPOINT ["outbox-publisher"]

FROM runtime AS brew
LABEL org.opencontainers.image.title="brew" \
      org.opencontainers.image.description="The command line: topics, orders, demo, load, verify"
COPY --from=built /out/brew /usr/local/bin/
ENTRYPOINT ["brew"]
