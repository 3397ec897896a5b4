"""What an environment pulls from other servers, and where it is after mirroring."""
