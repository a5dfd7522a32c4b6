"""Cuts a software bill of materials down to what is linked into the artifacts.

usage: cargo tree ... | linked_sbom.py SBOM RUST_VERSION

SBOM is the file of cargo-cyclonedx (CycloneDX, JSON), which has procedural macros and the crates that these
need as well. Standard input has the crates to keep, one a line, as `cargo tree` prints them. Prints the bill
without the others, with Rust's standard library, and without the path of this checkout.
"""

import json
import sys


def main(sbom, rust_version):
    linked = set()
    for line in sys.stdin:
        name, version = line.split()[:2]
        linked.add((name, version.removeprefix("v")))
    with open(sbom, encoding="utf-8") as file:
        bill = json.load(file)
    own = bill["metadata"]["component"]
    checkout, purl = own["bom-ref"], own["purl"].split("?")[0]

    kept = [part for part in bill["components"] if (part["name"], part["version"]) in linked]
    missing = linked - {(part["name"], part["version"]) for part in kept} - {(own["name"], own["version"])}
    if missing:
        sys.exit(f"linked_sbom: linked, but not in {sbom}: {sorted(missing)}")
    refs = {part["bom-ref"] for part in kept} | {checkout}
    names = {checkout: purl}
    # Crates of the workspace, whose references and addresses contain their folders.
    for part in kept:
        if part["bom-ref"].startswith("path+"):
            part["purl"] = part["purl"].split("?")[0]
            names[part["bom-ref"]] = part["purl"]
    bill["components"] = kept
    bill["dependencies"] = [
        {"ref": entry["ref"], "dependsOn": [ref for ref in entry.get("dependsOn", []) if ref in refs]}
        for entry in bill["dependencies"]
        if entry["ref"] in refs
    ]

    std = {
        "type": "library",
        "bom-ref": f"rust-std@{rust_version}",
        "name": "rust-std",
        "version": rust_version,
        "description": "The Rust Standard Library.",
        "scope": "required",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }
    bill["components"].append(std)
    for entry in bill["dependencies"]:
        if entry["ref"] == checkout:
            entry["dependsOn"].append(std["bom-ref"])
    # The crate's targets: the agent and the command.
    own["purl"] = purl
    for target in own["components"]:
        target["purl"] = purl + "#" + target["purl"].rpartition("#")[2]
    text = json.dumps(bill, indent=2, ensure_ascii=False)
    for ref, name in names.items():
        text = text.replace(ref, name)
    print(text)


main(*sys.argv[1:])
