# Pushes an adapter as an image with one layer, which Kubernetes mounts and KAITO pulls: push_adapter.sh IMAGE MODEL
set -eu
cd "$HOME"
tar -cf adapter.tar --exclude=./.kaigen -C /adapter .
sum=$(sha256sum adapter.tar | cut -d ' ' -f 1)
printf '{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$sum" > config.json
exec oras push --config config.json:application/vnd.oci.image.config.v1+json \
  --annotation "sh.kaito.model.name=$2" "$1" adapter.tar:application/vnd.oci.image.layer.v1.tar
