// Maven: org.apache.kafka:kafka-clients:3.7.1

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;

/**
 * Writes and reads batches of Kafka's records, compressed by each of its codecs, as a producer and a consumer
 * do.
 */
final class KafkaRecords {
    private KafkaRecords() {}

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        CompressionType[] codecs = {
            CompressionType.ZSTD,
            CompressionType.ZSTD,
            CompressionType.LZ4,
            CompressionType.SNAPPY,
            CompressionType.GZIP
        };
        Random random = new Random(1);
        long bytes = 0;
        while (System.nanoTime() < end) {
            for (CompressionType codec : codecs) {
                MemoryRecords records = write(codec, random);
                for (int times = 0; times < 4; times++) {
                    for (Record record : records.records()) {
                        bytes += record.valueSize();
                    }
                }
            }
        }
        System.out.println(bytes);
    }

    private static MemoryRecords write(CompressionType codec, Random random) {
        ByteBuffer buffer = ByteBuffer.allocate(1 << 20);
        try (MemoryRecordsBuilder builder =
                MemoryRecords.builder(buffer, codec, TimestampType.CREATE_TIME, 0)) {
            for (int offset = 0; offset < 2000; offset++) {
                String value = String.format(
                        "{\"id\": %d, \"price\": %.3f}", offset, random.nextDouble() * 1000);
                builder.append(offset, ("key " + offset).getBytes(StandardCharsets.UTF_8),
                        value.getBytes(StandardCharsets.UTF_8));
            }
            return builder.build();
        }
    }
}
