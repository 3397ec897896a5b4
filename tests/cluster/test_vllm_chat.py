"""KAITO's routes `POST /chat` and `POST /generate` in front of the real vLLM, as presets of several GPUs have them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from kaigen.compile.topology import compile as topology_compiler
from kaigen.dialects.kaito.compat import CHAT_MIDDLEWARE
from kaigen.kinds.compat import ServingNaming
from runtimes.downloader.tests.hub import Hub
from tests.cluster.apps import compiled, find
from tests.cluster.node import Node
from tests.cluster.test_node import run_client
from tests.cluster.test_vllm import CLIENT, KEY, wait_until_ready
from tests.cluster.tiny_llama import base_files
from tests.cluster.vllm_app import model, start_hub, topology
from tests.cluster.vllm_image import vllm_image

pytestmark = pytest.mark.engine

NAMESPACE = "vllm-chat"
QUESTIONS = """
GREEDY = {"do_sample": False, "max_new_tokens": 12}
USER = {"role": "user", "content": "Hello"}
DIALOGS = [[USER], [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?"}]]
def post(path, body, key=KEY):
    answer = ask(path, body, key)
    return [answer.status, json.load(answer)]
def text(prompt, tokens):
    body = {"model": "tiny", "prompt": prompt, "max_tokens": tokens, "temperature": 0}
    return post("/v1/completions", body)[1]["choices"][0]["text"]
def reply(messages, tokens):
    body = {"model": "tiny", "messages": messages, "max_tokens": tokens, "temperature": 0}
    return post("/v1/chat/completions", body)[1]["choices"][0]["message"]["content"]
few = {"max_gen_len": 9, "temperature": 0}
refused = [
    ["/chat", {}],
    ["/chat", {"prompt": "A", "num_beams": 4}],
    ["/chat", {"input_data": {}}],
    ["/chat", {"prompt": "word " * 3000}],
    ["/generate", {"prompts": ["A"], "parameters": {"top_p": 7}}],
]
print(json.dumps({
    "prompt": post("/chat", {"prompt": "Git says", "generate_kwargs": GREEDY}),
    "expected prompt": "Git says" + text("Git says", 12),
    "messages": post("/chat", {"messages": [USER], "generate_kwargs": GREEDY}),
    "expected messages": reply([USER], 12),
    "sequences": post("/chat", {"prompt": "Git", "num_return_sequences": 3, "max_length": 30}),
    "dialogs": post("/chat", {"input_data": {"input_string": DIALOGS}, "parameters": few}),
    "expected dialogs": [reply(dialog, 9) for dialog in DIALOGS],
    "texts": post("/generate", {"prompts": ["The dog", "Git says"], "parameters": few}),
    "expected texts": [text(prompt, 9) for prompt in ("The dog", "Git says")],
    "refused": [[status, answer["error"]["param"]] for status, answer in (post(*each) for each in refused)],
    "without a key": [ask(path, {"prompt": "Git"}).status for path in ("/chat", "/generate", "/v1/completions")],
    "a wrong key": [ask(path, {"prompt": "Git"}, "other").status for path in ("/chat", "/generate")],
}))
"""


@pytest.fixture(scope="module")
def hub(node: Node) -> Iterator[Hub]:
    """A Hub with the model."""
    serving = start_hub(node, base_files(context=8192))
    yield serving
    serving.__exit__()


@pytest.fixture(scope="module")
def answers(node: Node, hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What an app with the middleware answers."""
    node.import_image(vllm_image())
    node.make_namespace(NAMESPACE)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "stringData": {"api-key": KEY}}
    node.client.create(secret, NAMESPACE)
    specs = [topology("chat", "tiny", servedNames=["tiny"], auth={"secret": "key"}), model("tiny", hub)]
    with pytest.MonkeyPatch.context() as patch:
        # Only a Workspace of a preset that needs several GPUs has it.
        names = ServingNaming(middleware=CHAT_MIDDLEWARE)
        own = structs.replace(topology_compiler.compile_topology, default_naming=names)
        patch.setattr(topology_compiler, "compile_topology", own)
        apps = compiled(tmp_path_factory.mktemp("chat"), specs, NAMESPACE, "generic")
    for app in apps.values():
        for rendered in app.objects:
            node.client.apply(rendered.body)
    wait_until_ready(node, NAMESPACE, find(apps["chat"], "Deployment"))
    yield json.loads(run_client(node, NAMESPACE, "\n".join([CLIENT, f"KEY = {KEY!r}", QUESTIONS])))
    node.client.delete("v1/Namespace", NAMESPACE)


@pytest.mark.promise("KAITO", "`/chat` of presets that need several GPUs")
def test_a_prompt_and_messages_are_answered_as_on_the_routes_of_openai(answers: dict[str, Any]) -> None:
    assert answers["prompt"] == [200, {"Result": answers["expected prompt"]}]
    assert answers["messages"] == [200, {"Result": answers["expected messages"]}]
    status, found = answers["sequences"]
    assert (status, found["Result"].count("Git") >= 3) == (200, True)


def test_conversations_and_texts_of_llama_are_answered(answers: dict[str, Any]) -> None:
    status, found = answers["dialogs"]
    assert status == 200
    assert [dialog[-1] for dialog in found["results"]] == [
        {"role": "Assistant", "content": text} for text in answers["expected dialogs"]
    ]
    assert answers["texts"][0] == 200
    assert [each["response"] for each in answers["texts"][1]["results"]] == answers["expected texts"]


def test_what_cannot_be_honoured_is_refused_by_its_name(answers: dict[str, Any]) -> None:
    params = [None, "num_beams", "input_data.input_string", "prompt", "parameters.top_p"]
    assert answers["refused"] == [[400, param] for param in params]


def test_a_key_is_required_as_on_other_routes(answers: dict[str, Any]) -> None:
    assert answers["without a key"] == [401] * 3
    assert answers["a wrong key"] == [401] * 2
