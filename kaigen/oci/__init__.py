"""The client of OCI registries: references, credentials, manifests and blobs, attachments and signatures."""
