"""Whether an event is one of the Open Cybersecurity Schema Framework, version 1.5.0.

ocsf_1_5_0.json says of the classes and objects that cloche uses which attributes they have, of what type, which of them
must be there, and which numbers an enumeration knows; made from the schema that schema.ocsf.io publishes.
"""
import json
from pathlib import Path

SCHEMA = json.loads((Path(__file__).parent / "ocsf_1_5_0.json").read_text(encoding="utf-8"))
TYPES = {"integer": int, "string": str, "number": float, "boolean": bool, "object": dict, "any": object}


def check_value(what, value, attribute):
    if attribute.get("array"):
        assert isinstance(value, list), f"{what} is no list"
        for one in value:
            check_value(what, one, {**attribute, "array": False})
        return
    kind = attribute["type"]
    if kind in TYPES:
        assert isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)), f"{what}: {value!r}"
    else:
        check_object(what, value, SCHEMA["objects"][kind])
    assert "enum" not in attribute or str(value) in attribute["enum"], f"{what}: {value} is not in the schema"


def check_object(what, value, form):
    assert isinstance(value, dict), f"{what} is no object"
    for name, attribute in form["attributes"].items():
        assert not attribute.get("required") or name in value, f"{what}: {name} is required"
    assert not form["at_least_one"] or set(form["at_least_one"]) & set(value), f"{what}: needs one of {form['at_least_one']}"
    for name, one in value.items():
        assert name in form["attributes"], f"{what} has no attribute {name}"
        check_value(f"{what}.{name}", one, form["attributes"][name])


def check(event):
    """AssertionError unless @event is valid."""
    assert str(event.get("class_uid")) in SCHEMA["classes"], event.get("class_uid")
    form = SCHEMA["classes"][str(event["class_uid"])]
    check_object(form["name"], event, form)
    assert event["class_name"] == form["name"]
    assert event["category_uid"] == form["category"][0] and event["category_name"] == form["category"][1]
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["activity_name"] == form["attributes"]["activity_id"]["enum"][str(event["activity_id"])]
    assert event["severity"] == form["attributes"]["severity_id"]["enum"][str(event["severity_id"])]
    assert event["metadata"]["version"] == SCHEMA["version"]
