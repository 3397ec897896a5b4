"""Facts of models in the lock, for questions without a spec."""

from __future__ import annotations

from kaigen.catalog.presets import find_preset
from kaigen.config.lock_file import lock_of
from kaigen.config.settings import Config
from kaigen.sizing.config_json import facts_of_config
from kaigen.sizing.constants import GIB
from kaigen.sizing.facts import ModelFacts


def locked_facts(name: str, config: Config) -> ModelFacts | None:
    """Return the facts of a model that the lock has and the catalogue does not; None for any other.

    Args:
        name: `OWNER/NAME`, or a name of the lock.
        config: the settings of the repository.

    Raises:
        InputError: the lock is invalid.
        PlanError: its config.json does not suffice for a plan.
    """
    if find_preset(name, config.catalog) is not None:
        return None
    for key, model in sorted(lock_of(config.root, config.lock).entries.items()):
        repo = key.rpartition("@")[0]
        if (name in (key, repo) or repo.endswith(f"/{name}")) and model.config and model.weights:
            return facts_of_config(model.config, name=name, weights=model.weights / GIB)
    return None
