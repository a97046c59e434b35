# The KRM functions as container images, one target each and nothing in them but the program:
#
#   docker build -f docker/functions.Dockerfile --target interface -t orrery/interface .
#
# kpt and Porch start an image without arguments, so each ENTRYPOINT names its function.

FROM rust:1.95 AS build
WORKDIR /src
COPY . .
# With an explicit target the flag concerns the program alone and not the build scripts of its dependencies.
RUN target=$(rustc -vV | sed -n 's/^host: //p') \
 && RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked -p orrery --target "$target" \
 && cp "target/$target/release/orrery" /orrery

FROM scratch AS base
COPY --from=build /orrery /orrery
# nobody: there is no file that could give it a name.
USER 65534:65534

FROM base AS interface
ENTRYPOINT ["/orrery", "fn", "interface"]

FROM base AS ipam
ENTRYPOINT ["/orrery", "fn", "ipam"]

FROM base AS vlan
ENTRYPOINT ["/orrery", "fn", "vlan"]

FROM base AS nad
ENTRYPOINT ["/orrery", "fn", "nad"]
