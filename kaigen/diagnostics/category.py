"""Categories of problems, by which code decides; `codes.yaml` names the category of each code."""

from __future__ import annotations

from enum import Enum


class Category(Enum):
    """The kind of problem that a code reports. Code that reacts to a diagnostic decides by its category."""

    FILE = "file"
    """A file or folder cannot be read."""
    EMPTY = "empty"
    """A file or folder has nothing to read."""
    SYNTAX = "syntax"
    """A text is not valid YAML or JSON."""
    SCALAR = "scalar"
    """A value that YAML parsers or Kubernetes read differently."""
    CREDENTIAL = "credential"
    """A value that looks like a credential."""
    SECRET = "secret"
    """A Secret, or a variable for one, with its value in Git."""
    UNKNOWN_FIELD = "unknown field"
    MISSING_FIELD = "missing field"
    MISSING_CHOICE = "missing choice"
    """None of several alternative fields is given."""
    VALUE = "value"
    """A value of the wrong type, form or range."""
    UNKNOWN_KIND = "unknown kind"
    DOCUMENT = "document"
    """A document that is not a spec."""
    SPEC_REFERENCE = "spec reference"
    """A reference to a spec that does not exist."""
    OBJECT_REFERENCE = "object reference"
    """A reference to an object that does not exist."""
    NAME = "name"
    """A name, label or key that is invalid or taken."""
    CONFLICT = "conflict"
    """Fields or objects that contradict each other."""
    API_VERSION = "API version"
    """A kind that the target version does not serve, or deprecates."""
    UNSUPPORTED = "unsupported"
    """Something that the engine, driver, profile or target cannot do."""
    CAPACITY = "capacity"
    """A model or pod that needs more than the nodes have."""
    POLICY = "policy"
    """Pod Security, resource requests and other rules for what runs."""
    REPRODUCIBILITY = "reproducibility"
    """A moving name, or output that would differ between runs."""
    COMPATIBILITY = "compatibility"
    """A difference between kaigen and the system whose API a spec uses."""
    NO_EFFECT = "no effect"
    """A setting, override, pin or patch that changes nothing."""
    CONFIGURATION = "configuration"
    """kaigen.yaml, pins, overrides or settings."""
    OUTPUT = "output"
    """The output tree."""
    GIT = "git"
    """The repository or its history."""
    PUBLISH = "publish"
    """The destination or source of a publication."""
    EXTENSION = "extension"
    """A kind, template or patch of the user."""
    LIMIT = "limit"
    """A template or patch that needs too much time or memory: the next run may differ."""


UNREADABLE = frozenset({Category.FILE, Category.EMPTY, Category.SYNTAX})
"""Problems that leave a text or a folder unread, with everything that it may contain."""
FIELDS = frozenset(
    {
        Category.UNKNOWN_FIELD,
        Category.MISSING_FIELD,
        Category.MISSING_CHOICE,
        Category.VALUE,
        Category.UNKNOWN_KIND,
        Category.DOCUMENT,
    }
)
"""Problems of a document's fields, which validation reports."""
