#!/usr/bin/env python3
"""Reads `go test -json` and gives the verdict of the gate.

It prints each package's line and the output of what failed, fails on a failed test, and fails on a
skipped one unless ALLOWED says why it may be skipped here. The last line counts.
"""
import json
import os
import sys

# Skips that are right on a machine without what they need: part of the test's name, reason.
ALLOWED = [
    ("TestAgainstTheRealService", "needs credentials of the real service"),
]
if "emulator" not in os.environ.get("ANKUSA_REQUIRE_PEERS", ""):
    ALLOWED += [
        ("TestEmulatorAndOfficialClientAgreeWithUs", "Google's emulator is not on this machine"),
        ("TestAThousandArriveInTheEmulator", "Google's emulator is not on this machine"),
        ("TestPubSub/emulator", "Google's emulator is not on this machine"),
    ]

output, passed, failed, skipped, refused = {}, 0, [], [], []
broken = False
for line in sys.stdin:
    try:
        event = json.loads(line)
    except ValueError:
        sys.stdout.write(line)
        continue
    key = (event.get("Package") or event.get("ImportPath", ""), event.get("Test"))
    action = event["Action"]
    if action in ("output", "build-output"):
        text = event["Output"]
        output.setdefault(key, []).append(text)
        # A package's own lines, and the ones that say which peers a suite ran against.
        if action == "build-output" or "conformance: " in text or (key[1] is None and text.split("\t")[0].strip() in ("ok", "FAIL", "?", "panic:")):
            sys.stdout.write(text)
    elif action == "fail":
        broken = True
        if key[1]:
            failed.append(key)
        sys.stdout.write("".join(output.get(key, [])))
    elif action == "build-fail":
        broken = True
    elif action == "pass" and key[1]:
        passed += 1
        output.pop(key, None)
    elif action == "skip" and key[1]:
        why = next((why for part, why in ALLOWED if part in key[1]), None)
        (skipped if why else refused).append((key, why))
        if not why:
            sys.stdout.write("".join(output.get(key, [])))
    sys.stdout.flush()
for (package, test), why in skipped:
    print(f"skipped: {package} {test}: {why}")
for (package, test), _ in refused:
    print(f"SKIPPED WITHOUT LEAVE: {package} {test}")
for package, test in failed:
    print(f"FAILED: {package} {test}")
print(f"{passed} passed, {len(failed)} failed, {len(skipped) + len(refused)} skipped")
if passed == 0:
    print("no test ran")
sys.exit(1 if broken or failed or refused or passed == 0 else 0)
