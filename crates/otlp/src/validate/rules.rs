//! The rules that a file is checked against, each with its name, its severity, its reason and its source.
//!
//! *Unreadable*: reading stops. *Error*: the specification says MUST, or OpenTelemetry's own checker refuses
//! the file, or a reader misreads it. *Warning*: the specification says SHOULD, or a widely used backend
//! refuses or loses the data.

/// The severity of a breach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Some backends refuse or lose the data.
    Warning,
    /// The data is wrong.
    Error,
    /// The data cannot be read.
    Unreadable,
}

impl Severity {
    /// The severity in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Unreadable => "unreadable",
        }
    }
}

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// The stable name.
    pub name: &'static str,
    /// The severity of a breach.
    pub severity: Severity,
    /// The requirement, in one line.
    pub reason: &'static str,
    /// The source of the requirement.
    pub source: &'static str,
}

macro_rules! rules {
    ($($severity:ident $id:ident $name:literal $reason:literal $source:literal;)*) => {
        /// The id of a rule: its index in [`RULES`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(usize)]
        pub enum RuleId {
            $(#[doc = $reason] $id,)*
        }

        /// All rules.
        pub static RULES: &[Rule] = &[
            $(Rule { name: $name, severity: Severity::$severity, reason: $reason, source: $source },)*
        ];

        impl RuleId {
            /// Every rule, in the order of [`RULES`].
            pub const ALL: &[Self] = &[$(Self::$id,)*];
        }
    };
}

rules! {
    // Reading.
    Unreadable UnknownFormat "unknown-format"
        "a file is OTLP protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not"
        "OTLP; collector file exporter";
    Unreadable GzipCorrupt "gzip-corrupt"
        "a gzip stream is whole"
        "RFC 1952";
    Unreadable TooLarge "input-too-large"
        "a file, a message and its parts are no larger than the reader's limits"
        "otlpprof";
    Unreadable FrameTruncated "frame-truncated"
        "a length prefix is no larger than the bytes that follow"
        "collector file exporter";
    Unreadable WireMalformed "wire-malformed"
        "every byte belongs to a well-formed protobuf field"
        "protobuf encoding";
    Unreadable WireType "wire-type"
        "a field has the wire type of its declaration"
        "profiles.proto v1.10";
    Unreadable WireUtf8 "wire-utf8"
        "text is UTF-8"
        "protobuf encoding; Pyroscope answers 400";
    Unreadable TooDeep "too-deep"
        "messages nest no deeper than decoders go"
        "protobuf decoders";
    Unreadable OldSampleLayout "old-sample-layout"
        "samples and profiles have the field numbers of v1.10, not those of v1.9 and older"
        "profiles.proto v1.10";
    Unreadable JsonMalformed "json-malformed"
        "a document is JSON"
        "RFC 8259";
    Unreadable JsonValue "json-value"
        "a JSON value is one that its field can hold"
        "proto3 JSON mapping; OTLP/JSON";

    Unreadable FileEmpty "file-empty"
        "a file holds a message"
        "otlpprof: a failed write leaves an empty file";

    // Encoding.
    Warning UnknownField "unknown-field"
        "a message has declared fields only"
        "profiles.proto v1.10";
    Error IntegerOverflow "integer-overflow"
        "a 32-bit field's number fits 32 bits"
        "protobuf encoding";
    Error RepeatedSingular "repeated-singular-field"
        "a singular field occurs once; concatenated messages share one dictionary"
        "protobuf encoding";
    Warning JsonUnknownKey "json-unknown-key"
        "an object has declared keys only"
        "OTLP/JSON; Pyroscope answers 400";
    Error JsonSnakeCase "json-snake-case"
        "keys are lowerCamelCase"
        "OTLP/JSON";
    Error JsonDuplicateKey "json-duplicate-key"
        "an object has each key once"
        "RFC 8259, 4";
    Warning JsonInt64Number "json-int64-number"
        "a 64-bit integer is a decimal string"
        "OTLP/JSON";
    Error JsonBase64Id "json-base64-id"
        "traceId, spanId and profileId are hexadecimal"
        "OTLP/JSON";
    Warning JsonBase64Form "json-base64-form"
        "bytes are in padded base64 of the standard alphabet"
        "proto3 JSON mapping; pdata reads no other";
    Warning MessageTooLarge "message-too-large"
        "a message has at most 20 MiB"
        "collector: HTTP body limit, 400";
    Warning NoProfiles "no-profiles"
        "a message has a profile"
        "OTLP: nothing to export";

    // Dictionary.
    Error DictionaryMissing "dictionary-missing"
        "a message has a dictionary"
        "profiles.proto: MUST; profcheck panics";
    Error TableEmpty "table-empty"
        "every table has an element 0"
        "profiles.proto: MUST; Pyroscope stores nothing";
    Error TableZeroValue "table-zero-value"
        "element 0 of every table is the zero value"
        "profiles.proto: MUST; profcheck, Parca";
    Warning LinkZeroBytes "link-zero-bytes"
        "the first entry of link_table is an empty Link, not one of zero bytes"
        "profcheck, Parca refuse it; v1.11 has it as SHOULD";
    Error IndexOutOfRange "index-out-of-range"
        "an index lies within its table"
        "profiles.proto; Pyroscope answers 500";
    Warning DictionaryDuplicate "dictionary-duplicate"
        "no two elements of a table are equal"
        "profiles.proto: SHOULD NOT";
    Warning DictionaryOrphan "dictionary-orphan"
        "every element of a table is referred to"
        "profiles.proto: SHOULD NOT; the collector's file exporter leaves some";
    Warning ZeroReference "zero-reference"
        "a stack's locations and a referrer's attributes are not element 0, which stands for none"
        "profiles.proto: zero values";
    Error FunctionNameless "function-nameless"
        "a function has a name, a system name or a file name"
        "profiles.proto";
    Warning AddressOutsideMapping "address-outside-mapping"
        "an address lies within its mapping"
        "profiles.proto: should";
    Error LinkIdLength "link-id-length"
        "a trace id has 16 bytes, a span id 8"
        "profiles.proto; pdata refuses others";
    Error LinkIdZero "link-id-zero"
        "an id is not all zeros"
        "W3C Trace Context";

    // Attributes.
    Error AttributeKeyEmpty "attribute-key-empty"
        "an attribute has a key"
        "OTLP; Parca refuses it";
    Error AttributeKeyConflict "attribute-key-conflict"
        "an attribute has a key or a key_strindex, not both"
        "common.proto v1.10";
    Error AttributeKeyDuplicate "attribute-key-duplicate"
        "an attribute key occurs once in its referrer, and once in a list of keys and values"
        "profiles.proto, common.proto: MUST; profcheck, Parca";
    Warning AttributeNotInline "attribute-not-inline"
        "resource and scope attributes, and what they hold, are written out, not as strindex"
        "Pyroscope, Parca and collectors 0.148-0.160 do not resolve them";
    Warning AttributeStrindex "attribute-strindex"
        "an attribute_table value, and what it holds, is string_value, not string_value_strindex"
        "pdata does not resolve it";
    Error AttributeType "attribute-type"
        "thread.name is text; thread.id and cpu.logical_number are integers"
        "semantic conventions";
    Error CodeAttribute "code-attribute"
        "code.* is not used on profiles, nor on their resource and scope"
        "semantic conventions: MUST NOT";
    Warning FrameTypeMissing "frame-type-missing"
        "every location has profile.frame.type"
        "semantic conventions";
    Warning FrameTypeUnknown "frame-type-unknown"
        "profile.frame.type is one of the known types"
        "semantic conventions";
    Error BuildIdMissing "build-id-missing"
        "a mapping has a process.executable.build_id.gnu, .go or .htlhash"
        "semantic conventions: MUST";
    Warning HtlhashMissing "htlhash-missing"
        "a mapping has process.executable.build_id.htlhash"
        "semantic conventions: recommended";
    Error BuildIdMalformed "build-id-malformed"
        "a gnu build-id is hexadecimal, an htlhash 32 hexadecimal digits"
        "semantic conventions";
    Error RemoteFrameMismatch "remote-frame-mismatch"
        "otlpprof.frame.remote agrees with mapping and address"
        "otlpprof";
    Error RemoteFrameLines "remote-frame-lines"
        "a location with otlpprof.frame.remote has no lines, unless they have the names of functions"
        "Pyroscope and Elastic treat one with lines as symbolized";

    // Resource and scope.
    Warning ResourceMissing "resource-missing"
        "profiles have a resource"
        "Parca's server dies without";
    Warning ScopeMissing "scope-missing"
        "profiles have a scope"
        "Parca's server dies without";

    // Profiles.
    Error SampleTypeMissing "sample-type-missing"
        "a profile has a sample_type with a name"
        "Pyroscope answers 500, Parca's server dies";
    Warning TypeUnitMissing "type-unit-missing"
        "sample_type and period_type have a unit"
        "Pyroscope names a profile by type and unit of both";
    Warning PeriodMissing "period-missing"
        "a profile's period is above 0"
        "Pyroscope answers 400";
    Warning PeriodTypeMissing "period-type-missing"
        "a profile has a period_type with a name"
        "Pyroscope answers 400, Parca refuses it";
    Warning TimeMissing "time-missing"
        "a profile's time is set"
        "Pyroscope answers 400 when it is an hour old";
    Error ProfileIdLength "profile-id-length"
        "a profile_id has 16 bytes or none"
        "profiles.proto; pdata refuses others";
    Error ProfileIdZero "profile-id-zero"
        "a profile_id is not all zeros"
        "profiles.proto";
    Error ProfileIdDuplicate "profile-id-duplicate"
        "a profile_id is globally unique"
        "profiles.proto";
    Warning ProfileEmpty "profile-empty"
        "a profile has samples"
        "Parca loses the whole request";
    Warning ProfileDuplicate "profile-duplicate"
        "a resource and scope have one profile per sample type, period type and window"
        "profiles.proto";
    Error PayloadFormat "payload-format"
        "original_payload and its format are set together"
        "profiles.proto: must";
    Warning PayloadFormatUnknown "payload-format-unknown"
        "original_payload_format is jfr, pprof or linux_perf"
        "semantic conventions";

    // Samples.
    Error SampleEmpty "sample-empty"
        "a sample has values or timestamps"
        "profiles.proto: MUST";
    Error SampleLengths "sample-lengths"
        "values and timestamps have equal length where both are present"
        "profiles.proto: MUST";
    Error SampleSeveralValues "sample-several-values"
        "values without timestamps are one"
        "profiles.proto; Pyroscope answers 500";
    Error SampleShapes "sample-shapes"
        "all samples of a profile have one shape"
        "profiles.proto: SHOULD; profcheck";
    Warning SampleNegative "sample-negative"
        "a value is not negative"
        "otlpprof: totals of counts and bytes";
    Warning SampleDuplicate "sample-duplicate"
        "samples of one stack, attributes and link are one"
        "profiles.proto: SHOULD";
    Error TimestampOutside "timestamp-outside-window"
        "a timestamp lies in [time, time + duration)"
        "profiles.proto: should; profcheck";
    Warning ValuesBesideTimestamps "values-beside-timestamps"
        "a sample has values or timestamps, not both"
        "Pyroscope answers 500 to several values";
    Warning TooManyLabels "too-many-labels"
        "resource, scope and sample have at most 30 attributes together"
        "Pyroscope answers 400";
    Warning LabelTooLong "label-too-long"
        "an attribute's value has at most 2,048 bytes"
        "Pyroscope answers 400";
}

impl RuleId {
    /// The rule.
    pub fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }

    /// The rule with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|id| id.rule().name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_kebab_case() {
        for (position, &id) in RuleId::ALL.iter().enumerate() {
            let rule = id.rule();
            assert_eq!(RuleId::by_name(rule.name), Some(RuleId::ALL[position]), "{}", rule.name);
            assert!(rule.name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')));
            assert!(!rule.reason.is_empty() && !rule.source.is_empty());
        }
    }
}
