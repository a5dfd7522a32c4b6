//! The reader, compared with OpenTelemetry's Python package through `scripts/python-oracle.sh`.

use otlpprof_testkit::otlp_fixture::{framed, valid};
use otlpprof_testkit::python::{oracle, ours};
use prost::Message as _;
use serde_json::json;

#[test]
fn both_implementations_count_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, several) = (folder.path().join("plain"), folder.path().join("several"));
    std::fs::write(&plain, valid().encode_to_vec()).unwrap();
    std::fs::write(&several, [framed(&valid()), framed(&valid()), vec![0; 4]].concat()).unwrap();
    let Some(counts) = oracle(&[&plain, &several]) else { return };
    assert_eq!(counts[0], json!({ "messages": 1, "profiles": 2, "samples": 4, "total": 45 }));
    assert_eq!(counts[0], ours(&std::fs::read(plain).unwrap()));
    assert_eq!(counts[1], ours(&std::fs::read(several).unwrap()));
    assert_eq!(counts[1]["messages"], 3);
}
