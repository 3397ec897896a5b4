"""LoRA adapters are added to the weights, each times its strength."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from served import tiny
from served.server import Server
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")

PROMPT = "The quick brown fox"
TOKENS = 24
STRENGTHS = {"north": 1.0, "south": 0.5}


@pytest.fixture(scope="module")
def adapters(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Two adapters that PEFT saved."""
    found = {}
    for seed, name in enumerate(STRENGTHS, 2):
        torch.manual_seed(seed)
        base = AutoModelForCausalLM.from_pretrained(model)
        config = LoraConfig(r=4, lora_alpha=16, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        found[name] = tmp_path_factory.mktemp("adapters") / name
        get_peft_model(base, config).save_pretrained(found[name])
    return found


@pytest.fixture(scope="module")
def adapted(model: Path, adapters: Mapping[str, Path]) -> Iterator[Server]:
    """A server of the model with both adapters."""
    given = ",".join(f"{folder}={STRENGTHS[name]}" for name, folder in adapters.items())
    with Server(model, "--threads", "1", "--merge-adapters", given) as running:
        yield running


def answer(server: Server) -> str:
    with server.client() as client:
        made = client.completions.create(
            model="tiny", prompt=PROMPT, max_tokens=TOKENS, temperature=0, extra_body={"ignore_eos": True}
        )
    text: str = made.choices[0].text
    return text


def by_peft(model: Path, adapters: Mapping[str, Path]) -> str:
    """Return the answer of PEFT's own sum of the adapters, as KAITO's server makes it."""
    (first, folder), *others = adapters.items()
    found = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(model), str(folder), adapter_name=first)
    for name, folder in others:
        found.load_adapter(str(folder), adapter_name=name)
    # With all ranks kept, the sum loses nothing.
    found.add_weighted_adapter(list(adapters), list(STRENGTHS.values()), "sum", combination_type="cat")
    found.set_adapter("sum")
    tokenizer = AutoTokenizer.from_pretrained(model)
    given = tokenizer(PROMPT, return_tensors="pt")
    made = found.generate(**given, max_new_tokens=TOKENS, min_new_tokens=TOKENS, do_sample=False)
    text: str = tokenizer.decode(made[0, given["input_ids"].shape[1] :], skip_special_tokens=True)
    return text


def test_the_answer_is_that_of_the_weighted_sum(
    server: Server, adapted: Server, model: Path, adapters: Mapping[str, Path]
) -> None:
    assert answer(adapted) == by_peft(model, adapters)
    assert answer(adapted) != answer(server)


def test_strength_0_changes_nothing(server: Server, model: Path, adapters: Mapping[str, Path]) -> None:
    with Server(model, "--threads", "1", "--merge-adapters", f"{adapters['north']}=0") as unchanged:
        assert answer(unchanged) == answer(server)


def test_an_adapter_of_another_model_is_one_line(model: Path, adapters: Mapping[str, Path], tmp_path: Path) -> None:
    other = tiny.make(tmp_path / "other", hidden=32)
    weights = load_file(adapters["north"] / "adapter_model.safetensors")
    partial = tmp_path / "partial"
    partial.mkdir()
    save_file(dict(list(weights.items())[1:]), partial / "adapter_model.safetensors")
    config = json.loads((adapters["north"] / "adapter_config.json").read_text())
    (partial / "adapter_config.json").write_text(json.dumps(config))
    for folder, given, message in (
        (other, adapters["north"], "cannot load adapter"),
        (model, partial, "it was made for another model: "),
    ):
        with pytest.raises(AssertionError) as caught:
            Server(folder, "--threads", "1", "--merge-adapters", str(given))
        assert message in str(caught.value)
        assert "Traceback" not in str(caught.value)
