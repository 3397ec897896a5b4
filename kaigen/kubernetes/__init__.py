"""What kaigen knows about Kubernetes: kinds of objects, their pods, references, quantities, schemas, Pod Security."""
