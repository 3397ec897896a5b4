"""The Secrets that apps read: listing them, and making them with kubectl or ExternalSecrets."""
