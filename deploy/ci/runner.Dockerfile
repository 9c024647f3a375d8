# An image for CI jobs that run agents, of a cloche that is built already: the context is a folder that it was installed to.
#
#   DESTDIR=/tmp/out meson install -C build         (a build with --prefix=/usr)
#   docker build -f deploy/ci/runner.Dockerfile -t cloche-runner /tmp/out
#
# Jobs run as an ordinary user: what each kind of container allows is in docs/ci.md.
ARG BASE=debian:12
FROM ${BASE}
# what cloche's programs link against, and what jobs use; empty: nothing is installed
ARG PACKAGES="libarchive13 libc-ares2 libcurl4 libgnutls30 libjansson4 libmicrohttpd12 libnghttp2-14 libpcre2-8-0 libsecp256k1-1 libsqlite3-0 libssl3 libyaml-0-2 zlib1g git ca-certificates curl python3"
RUN test -z "$PACKAGES" || { apt-get update && apt-get install -y --no-install-recommends $PACKAGES && rm -rf /var/lib/apt/lists/*; }
COPY . /
RUN cloche version && mkdir -p /home/job/.local/state && chown -R 1000:1000 /home/job
ENV HOME=/home/job
USER 1000:1000
WORKDIR /builds/job
