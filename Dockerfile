# syntax=docker/dockerfile:1
# A small image with nothing in it but the program, authorities and a user without rights.
#   docker build -t tieout --build-arg TIEOUT_GIT_COMMIT=$(git rev-parse HEAD) .
#   docker run --rm -v ./tieout.toml:/etc/tieout/tieout.toml:ro -v tieout:/var/lib/tieout \
#       -e DATABASE_URL -e STRIPE_KEY tieout run
# The volume keeps the reports. A folder in its place must be the user's: chown 65532:65532 first.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential=12.* \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY Cargo.toml Cargo.lock build.rs ./
COPY .cargo .cargo
COPY packaging/functions.order packaging/functions.order
COPY src src
COPY migrations migrations
COPY cron cron
COPY tests/bench tests/bench
COPY tests/it/main.rs tests/it/main.rs
# Reports name it; the repository itself is not in the image.
ARG TIEOUT_GIT_COMMIT
# The image below has no zlib.
ENV LIBZ_SYS_STATIC=1
RUN cargo build --release --locked --bin tieout
# What is shipped has no shell to make a folder with.
RUN mkdir -p /state/reports /state/spool

# glibc, authorities and time zones, no shell. The user `nonroot` is 65532.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="tieout" \
    org.opencontainers.image.description="Decides what happened to stuck payments" \
    org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=build /src/target/release/tieout /usr/bin/tieout
COPY --from=build --chown=65532:65532 /state /var/lib/tieout
USER 65532:65532
WORKDIR /var/lib/tieout
ENV TIEOUT_CONFIG=/etc/tieout/tieout.toml TZ=UTC
# Beside the configuration, where they would go, this user may not write.
ENV TIEOUT_REPORT_DIR=/var/lib/tieout/reports TIEOUT_FILES_SPOOL=/var/lib/tieout/spool
# SIGTERM reaches the program itself, and a stop is clean within 8 s.
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/tieout"]
CMD ["--help"]
