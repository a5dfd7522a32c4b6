//! The fields that are written, each with its protobuf number and its JSON name. Source: opentelemetry-proto
//! v1.11 (`profiles/v1development/profiles.proto`, `common/v1/common.proto`, `resource/v1/resource.proto`).
//! v1.10 has the same numbers.

/// A field of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// The protobuf number. It is below 16, so the tag takes one byte.
    pub(super) number: u8,
    /// The JSON name.
    pub(super) name: &'static str,
}

macro_rules! messages {
    ($($message:ident { $($constant:ident = $number:literal $name:literal,)* })*) => {
        $(pub(super) mod $message {
            use super::Field;
            $(pub(crate) const $constant: Field = Field { number: $number, name: $name };)*
        })*
    };
}

messages! {
    profiles_data {
        RESOURCE_PROFILES = 1 "resourceProfiles",
        DICTIONARY = 2 "dictionary",
    }
    dictionary {
        MAPPING_TABLE = 1 "mappingTable",
        LOCATION_TABLE = 2 "locationTable",
        FUNCTION_TABLE = 3 "functionTable",
        LINK_TABLE = 4 "linkTable",
        STRING_TABLE = 5 "stringTable",
        ATTRIBUTE_TABLE = 6 "attributeTable",
        STACK_TABLE = 7 "stackTable",
    }
    resource_profiles {
        RESOURCE = 1 "resource",
        SCOPE_PROFILES = 2 "scopeProfiles",
    }
    scope_profiles {
        SCOPE = 1 "scope",
        PROFILES = 2 "profiles",
    }
    profile {
        SAMPLE_TYPE = 1 "sampleType",
        SAMPLES = 2 "samples",
        TIME_UNIX_NANO = 3 "timeUnixNano",
        DURATION_NANO = 4 "durationNano",
        PERIOD_TYPE = 5 "periodType",
        PERIOD = 6 "period",
        PROFILE_ID = 7 "profileId",
        ORIGINAL_PAYLOAD_FORMAT = 9 "originalPayloadFormat",
        ORIGINAL_PAYLOAD = 10 "originalPayload",
        ATTRIBUTE_INDICES = 11 "attributeIndices",
    }
    sample {
        STACK_INDEX = 1 "stackIndex",
        ATTRIBUTE_INDICES = 2 "attributeIndices",
        LINK_INDEX = 3 "linkIndex",
        VALUES = 4 "values",
        TIMESTAMPS_UNIX_NANO = 5 "timestampsUnixNano",
    }
    mapping {
        MEMORY_START = 1 "memoryStart",
        MEMORY_LIMIT = 2 "memoryLimit",
        FILE_OFFSET = 3 "fileOffset",
        FILENAME_STRINDEX = 4 "filenameStrindex",
        ATTRIBUTE_INDICES = 5 "attributeIndices",
    }
    stack {
        LOCATION_INDICES = 1 "locationIndices",
    }
    location {
        MAPPING_INDEX = 1 "mappingIndex",
        ADDRESS = 2 "address",
        LINES = 3 "lines",
        ATTRIBUTE_INDICES = 4 "attributeIndices",
    }
    line {
        FUNCTION_INDEX = 1 "functionIndex",
        LINE = 2 "line",
    }
    function {
        NAME_STRINDEX = 1 "nameStrindex",
        SYSTEM_NAME_STRINDEX = 2 "systemNameStrindex",
        FILENAME_STRINDEX = 3 "filenameStrindex",
        START_LINE = 4 "startLine",
    }
    link {
        TRACE_ID = 1 "traceId",
        SPAN_ID = 2 "spanId",
    }
    value_type {
        TYPE_STRINDEX = 1 "typeStrindex",
        UNIT_STRINDEX = 2 "unitStrindex",
    }
    key_value_and_unit {
        KEY_STRINDEX = 1 "keyStrindex",
        VALUE = 2 "value",
        UNIT_STRINDEX = 3 "unitStrindex",
    }
    resource {
        ATTRIBUTES = 1 "attributes",
    }
    scope {
        NAME = 1 "name",
        VERSION = 2 "version",
        ATTRIBUTES = 3 "attributes",
    }
    key_value {
        KEY = 1 "key",
        VALUE = 2 "value",
    }
    any_value {
        STRING_VALUE = 1 "stringValue",
        BOOL_VALUE = 2 "boolValue",
        INT_VALUE = 3 "intValue",
        DOUBLE_VALUE = 4 "doubleValue",
    }
}
