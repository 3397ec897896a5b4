"""Write apps as plain manifests and Helm charts."""
