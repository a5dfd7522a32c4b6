//! Uploads to a real OpenTelemetry collector, compared with the output of its file exporter.

use std::time::Duration;

use otlpprof_export::stats::{Loss, Tally, UploadStats};
use otlpprof_export::{ContentType, Endpoint, OutgoingMessage, UploadConfig, Uploader};
use otlpprof_sampling::own_threads;
use otlpprof_testkit::collector::{Collector, samples_of};
use otlpprof_testkit::recordings::converted::convert_to_bytes;
use otlpprof_testkit::small_profile::{FlatSample, flatten, json_message, profile, protobuf_message};

const AMPLE: Duration = Duration::from_secs(120);

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
fn the_collector_writes_the_uploaded_messages() {
    let Some(collector) = Collector::start() else { return };
    let uploader = upload_to(&collector, |_| {});
    uploader.submit(protobuf_message("compressed"));
    uploader.submit(json_message("compressed json"));
    assert_all_sent(&uploader.shutdown(AMPLE), 2, 4);
    let uploader =
        upload_to(&collector, |config| config.compression = otlpprof_export::upload::Compression::None);
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
    // The request exceeds the collector's limit of 20 MiB only after decompression. The collector answers
    // 400.
    let uploader = upload_to(&collector, |config| config.max_request_bytes = usize::MAX);
    let large = OutgoingMessage { body: vec![0; 21 << 20], content_type: ContentType::Protobuf, samples: 1 };
    let bytes = large.body.len() as u64;
    uploader.submit(large);
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.lost(Loss::TooLarge), Tally { messages: 1, samples: 1, bytes }, "{stats:?}");

    let uploader = upload_to(&collector, |_| {});
    uploader.submit(OutgoingMessage { body: vec![0xff; 9], content_type: ContentType::Protobuf, samples: 1 });
    let stats = uploader.shutdown(AMPLE);
    assert_eq!(stats.lost(Loss::Refused), Tally { messages: 1, samples: 1, bytes: 9 }, "{stats:?}");
    assert_eq!(collector.received(), [Vec::new(), Vec::new()]);
}

/// The collector decodes converted recordings of both formats, and its output has each sample unchanged.
#[test]
fn a_real_collector_takes_converted_recordings_of_every_writer() {
    let writers = |name: &str| {
        name.ends_with("-rich") || ["async-profiler", "async-profiler-both", "datadog"].contains(&name)
    };
    let recordings = otlpprof_testkit::recordings::recordings(writers);
    assert!(recordings.len() > 3, "{}", recordings.len());
    let Some(collector) = Collector::start() else { return };
    let uploader = upload_to(&collector, |_| {});
    let mut expected = Vec::new();
    let mut messages = 0;
    for (name, _) in recordings {
        for (format, content_type) in [("proto", ContentType::Protobuf), ("json", ContentType::Json)] {
            let (body, _) =
                convert_to_bytes(&otlpprof_testkit::recordings::corpus()[name], &["--format", format]);
            let converted = samples_of(&body);
            assert!(converted.len() > 100, "{name}: {}", converted.len());
            uploader.submit(OutgoingMessage { body, content_type, samples: converted.len() as u64 });
            expected.extend(converted);
            messages += 1;
        }
    }
    assert_all_sent(&uploader.shutdown(AMPLE), messages, expected.len() as u64);
    expected.sort();
    for received in collector.received() {
        let sum = |samples: &[FlatSample]| samples.iter().flat_map(|sample| &sample.values).sum::<i64>();
        assert_eq!((received.len(), sum(&received)), (expected.len(), sum(&expected)));
        let differs = received.iter().zip(&expected).find(|(received, expected)| received != expected);
        assert!(differs.is_none(), "{differs:#?}");
    }
}
