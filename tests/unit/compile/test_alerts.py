"""Alert rules, the dashboard and traces, as the blocks of a spec change them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kaigen.catalog import yaml_files
from kaigen.compile.builders.alerts import alert_table
from kaigen.config.tenant_settings import Tenant
from kaigen.kinds.monitoring import ALERT_NAMES
from tests.unit.compile.specs import Object, app, configured, context, job, model, objects, problem_paths, topology

SERVED: Object = {"model": {"folder": "/weights"}, "engineVersion": "0.32.0", "resources": {"gpus": 1}}


def rules(block: Any, where: Any = None) -> dict[str, Object]:
    """Return the rules of an app by the name of the alert."""
    rule = objects(block, where)["PrometheusRule"]
    return {each["alert"]: each for group in rule["spec"]["groups"] for each in group["rules"]}


def served(**monitoring: Any) -> Any:
    return topology(**SERVED, monitoring=monitoring)


def test_the_table_has_the_names_of_the_schema() -> None:
    assert set(alert_table()) == set(ALERT_NAMES)


@pytest.mark.parametrize("name", ALERT_NAMES)
def test_every_row_reads_metrics_that_an_engine_has(name: str) -> None:
    row = alert_table()[name]
    engines = yaml_files.load("engines")["engines"].values()
    assert any(set(row.get("needs", ())) <= set(engine["metrics"]) for engine in engines)
    assert row["severity"] in ("critical", "warning", "info")


def test_an_alert_has_a_severity_a_runbook_and_the_names_of_the_app() -> None:
    found = rules(served(alerts={"labels": {"tier": "gold"}}))["KaigenQueue"]
    assert found["labels"] == {"tier": "gold", "severity": "warning", "app": "t", "namespace": "default"}
    assert found["expr"] == 'avg(vllm:num_requests_waiting{job="default/t"}) > 10'
    assert found["annotations"]["runbook_url"].endswith("/docs/operate/monitor.md#queue")


def test_a_spec_changes_alerts_by_name() -> None:
    changes = {"queue": {"above": 20, "hold": "1h", "severity": "info"}, "kvCache": {"enabled": False}}
    found = rules(served(alerts={"rules": changes}))
    assert found["KaigenQueue"]["expr"].endswith("> 20")
    assert (found["KaigenQueue"]["for"], found["KaigenQueue"]["labels"]["severity"]) == ("1h", "info")
    assert "KaigenKvCache" not in found


def test_a_tenant_is_the_team_of_its_alerts() -> None:
    where = context()
    where = configured(where, tenants=(Tenant("search", (), ("default",), {}),))
    assert rules(served(alerts={}), where)["KaigenQueue"]["labels"]["team"] == "search"


@pytest.mark.parametrize(
    ("window", "fast", "medium", "slow"), [("30d", "0.144", "0.06", "0.01"), ("28d", "0.1344", "0.056", "0.00933333")]
)
def test_thresholds_of_an_error_budget_follow_its_window(window: str, fast: str, medium: str, slow: str) -> None:
    found = rules(served(alerts={}, slo={"availability": "99%", "window": window}))
    assert f"> {fast} and" in found["KaigenErrorBudgetFast"]["expr"]
    assert f"> {medium})" in found["KaigenErrorBudgetFast"]["expr"]
    assert found["KaigenErrorBudgetSlow"]["expr"].endswith(f"> {slow}")


def test_alerts_on_objectives_need_them() -> None:
    names = set(rules(served(alerts={})))
    assert not names & {"KaigenFirstToken", "KaigenErrorBudgetFast", "KaigenErrorBudgetSlow"}
    found = rules(served(alerts={}, slo={"ttft": {"p95": "1500ms"}}))["KaigenFirstToken"]
    assert found["expr"].startswith("histogram_quantile(0.95,")
    assert found["expr"].endswith("> 1.5")


def test_a_metric_that_the_engine_lacks_leaves_its_alert_out() -> None:
    block = topology(
        engine="transformers", model={"folder": "/weights"}, resources={"gpus": 0}, monitoring={"alerts": {}}
    )
    assert "KaigenPreemptions" not in rules(block)
    assert ("KG0441", "spec.monitoring.alerts") in problem_paths(block)
    off = {"alerts": {"rules": {"preemptions": {"enabled": False}}}}
    block = topology(engine="transformers", model={"folder": "/weights"}, resources={"gpus": 0}, monitoring=off)
    assert not [code for code, _ in problem_paths(block) if code == "KG0441"]


def test_a_metric_that_the_version_lacks_leaves_its_alert_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaigen.compile.topology.monitoring.has_metric", lambda name, _: "preemptions" not in name)
    block = served(alerts={})
    assert "KaigenPreemptions" not in rules(block)
    assert ("KG0441", "spec.monitoring.alerts") in problem_paths(block)


def test_objectives_without_alerts_are_reported() -> None:
    assert ("KG0440", "spec.monitoring.slo") in problem_paths(served(slo={"availability": "99%"}))


def test_runs_have_alerts_on_their_objects() -> None:
    assert set(rules(job(monitoring={"alerts": {}}))) == {"KaigenJobFailed", "KaigenJobStuck", "KaigenGateWaiting"}
    by_time = rules(job(schedule="0 2 * * *", monitoring={"alerts": {}}))
    assert 'cronjob="j"' in by_time["KaigenScheduleMissed"]["expr"]
    download = rules(model(monitoring={"alerts": {"expires": {"hf": "2027-06-30"}}}))
    assert 'job="default/m"' in download["KaigenDownloadStuck"]["expr"]
    assert download["KaigenTokenExpiring"]["expr"] == "vector(1814313600) - time() < 1209600"


def test_a_pod_may_take_its_startup_time_before_the_alert() -> None:
    block = topology(**SERVED, probes={"startup": "2h"}, monitoring={"alerts": {}})
    assert rules(block)["KaigenNotReady"]["for"] == "7200s"


def test_a_dashboard_has_the_metrics_of_the_engine_and_links_to_and_from_alerts() -> None:
    block = served(alerts={}, dashboard={"labels": {"dashboards": "ai"}, "url": "https://grafana.example.com/"})
    (found,) = [each.body for each in app(block).render() if each.body["metadata"]["name"] == "t-dashboard"]
    assert found["metadata"]["labels"]["dashboards"] == "ai"
    shown = json.loads(found["data"]["default-t.json"])
    assert 'sum(vllm:num_requests_waiting{job="default/t"})' in json.dumps(shown).replace('\\"', '"')
    url = rules(block)["KaigenQueue"]["annotations"]["dashboard_url"]
    assert url == f"https://grafana.example.com/d/{shown['uid']}"
    assert [link["title"] for link in shown["links"]] == ["Alerts", "Runbooks"]


def test_vllm_sends_traces() -> None:
    block = served(traces={"endpoint": "http://otel:4318/v1/traces", "protocol": "http/protobuf"})
    (container,) = objects(block)["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert "--otlp-traces-endpoint=http://otel:4318/v1/traces" in container["args"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    assert variables["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] == "http/protobuf"
    assert variables["OTEL_SERVICE_NAME"] == "t"


def test_vllm_sends_traces_by_grpc_without_tls_only() -> None:
    path = "spec.monitoring.traces.endpoint"
    assert ("KG0442", path) in problem_paths(served(traces={"endpoint": "https://otel:4317"}))


@pytest.mark.parametrize(
    ("image", "refused"),
    [
        ("vllm/vllm-openai:v0.16.0", True),
        ("registry.example.com/mirror/vllm/vllm-openai-cpu:v0.10.2", True),
        ("vllm/vllm-openai:v0.17.0", False),
        ("registry.example.com/vllm-traced:v0.16.0", False),
    ],
)
def test_traces_need_an_image_with_the_packages_of_opentelemetry(image: str, refused: bool) -> None:
    engine = {"model": {"folder": "/weights"}, "image": image, "resources": {"gpus": 1}}
    found = problem_paths(topology(**engine, monitoring={"traces": {"endpoint": "http://otel:4317"}}))
    assert (("KG0442", "spec.monitoring.traces") in found) == refused
