"""Writes golden/*.json from hooks.json, with Python's encoder and by the rules of
docs/message-format.md: a second opinion, which shares nothing with the Go encoder.

Run it in this folder: python3 golden.py
"""

import base64
import hashlib
import json
import pathlib


def body_of(spec):
    if "text" in spec:
        return spec["text"].encode("utf-8")
    if "hex" in spec:
        return bytes.fromhex(spec["hex"])
    return bytes(i % 251 for i in range(spec["pattern"]))


def message(case):
    hook, body = case["hook"], body_of(case["body"])
    dedupe = hook.get("dedupe_key")
    out = {
        "v": 1,
        "id": hook["id"],
        "source_id": hook["source_id"],
        "tenant_id": hook.get("tenant_id"),
        "received_at": hook["received_at"],
        "content_type": hook.get("content_type"),
        "size": len(body),
        "dedupe_key": dedupe,
        "replay_id": hook.get("replay_id"),
        "idempotency_key": ":".join([hook.get("tenant_id") or "default", hook["source_id"], dedupe])
        if dedupe
        else hook["id"],
        "headers": dict(sorted(hook.get("headers", {}).items())),
    }
    digest = hashlib.sha256(body).hexdigest()
    if "claim" in case:
        out |= {"claim": case["claim"]["ref"], "sha256": digest}
    else:
        out |= {"sha256": digest, "body_base64": base64.b64encode(body).decode("ascii")}
    text = json.dumps(out, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff").encode("utf-8")


for case in json.loads(pathlib.Path("hooks.json").read_text("utf-8")):
    pathlib.Path("golden", case["name"] + ".json").write_bytes(message(case))
