#!/usr/bin/env bash
# Builds the program as the images have it and runs a function in a folder that holds nothing else. Needs user namespaces.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --locked -p orrery --target "$target"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp "${CARGO_TARGET_DIR:-target}/$target/release/orrery" "$root/orrery"

input='apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata:
    name: empty  # kept
'
for function in interface ipam vlan nad; do
  output=$(printf '%s' "$input" | unshare --map-root-user chroot "$root" /orrery fn "$function")
  grep -q 'name: empty  # kept' <<<"$output" || { echo "fn $function gave: $output" >&2; exit 1; }
  echo "fn $function runs with nothing beside it"
done
ls -l "$root/orrery"
