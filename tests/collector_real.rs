//! Uploads to a real OpenTelemetry collector, and what its file exporter wrote of them.

mod export_support;

use std::time::Duration;

use export_support::collector::Collector;
use export_support::profile::{flatten, json_message, profile, protobuf_message};
use otlpprof::export::stats::{Loss, Tally, UploadStats};
use otlpprof::export::{ContentType, Endpoint, Message, UploadConfig, Uploader};
use otlpprof::sampling::own_threads;

const AMPLE: Duration = Duration::from_secs(60);

fn upload_to(collector: &Collector, change: impl FnOnce(&mut UploadConfig)) -> Uploader {
    let mut config = UploadConfig::new(Endpoint::base(&collector.endpoint()).unwrap());
    config.timeout = AMPLE;
    change(&mut config);
    Uploader::start(config, None, own_threads::spawn).unwrap()
}

fn assert_all_sent(stats: &UploadStats, messages: u64, samples: u64) {
    assert_eq!((stats.sent.messages, stats.sent.samples), (messages, samples), "{stats:?}");
    assert_eq!(stats.sent, stats.submitted);
    assert_eq!(stats.partial_answers, 0);
}

#[test]
fn what_is_uploaded_is_what_the_collector_writes() {
    let Some(collector) = Collector::start() else { return };
    let uploader = upload_to(&collector, |_| {});
    uploader.submit(protobuf_message("compressed"));
    uploader.submit(json_message("compressed json"));
    assert_all_sent(&uploader.shutdown(AMPLE), 2, 4);
    let uploader =
        upload_to(&collector, |config| config.compression = otlpprof::export::upload::Compression::None);
    uploader.submit(protobuf_message("plain"));
    uploader.submit(json_message("plain json"));
    assert_all_sent(&uploader.shutdown(AMPLE), 2, 4);
    let services = ["compressed", "compressed json", "plain", "plain json"];
    let mut expected: Vec<_> = services.iter().flat_map(|service| flatten(&profile(service))).collect();
    expected.sort();
    for received in collector.received() {
        assert_eq!(received, expected);
    }
}

#[test]
fn a_real_collectors_refusals_are_understood() {
    let Some(collector) = Collector::start() else { return };
    // Over its limit of 20 MiB only when it has decompressed it. Its answer to that is a 400.
    let uploader = upload_to(&collector, |config| config.max_request_bytes = usize::MAX);
    let large = Message { body: vec![0; 21 << 20], content_type: ContentType::Protobuf, samples: 1 };
    let bytes = large.body.len() as u64;
    uploader.submit(large);
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.lost(Loss::TooLarge), Tally { messages: 1, samples: 1, bytes }, "{stats:?}");

    let uploader = upload_to(&collector, |_| {});
    uploader.submit(Message { body: vec![0xff; 9], content_type: ContentType::Protobuf, samples: 1 });
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.lost(Loss::Refused), Tally { messages: 1, samples: 1, bytes: 9 }, "{stats:?}");
    assert_eq!(collector.received(), [Vec::new(), Vec::new()]);
}
