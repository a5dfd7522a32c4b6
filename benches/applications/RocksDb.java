// Maven: org.rocksdb:rocksdbjni:9.7.3

import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Random;
import java.util.stream.Stream;
import org.rocksdb.CompressionType;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/** Writes, reads and scans a RocksDB, whose own C++ threads flush and compact. */
final class RocksDb {
    private RocksDb() {}

    public static void main(String[] arguments) throws Exception {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Path folder = Files.createTempDirectory("rocksdb");
        try (Options options = new Options().setCreateIfMissing(true)
                .setWriteBufferSize(1 << 20)
                .setCompressionType(CompressionType.ZSTD_COMPRESSION);
                RocksDB database = RocksDB.open(options, folder.toString())) {
            Random random = new Random(1);
            while (System.nanoTime() < end) {
                write(database, random);
                read(database, random);
            }
        } finally {
            delete(folder);
        }
    }

    private static void write(RocksDB database, Random random) throws RocksDBException {
        try (WriteBatch batch = new WriteBatch(); WriteOptions options = new WriteOptions()) {
            for (int times = 0; times < 2000; times++) {
                byte[] value = new byte[100];
                random.nextBytes(value);
                batch.put(key(random), value);
            }
            database.write(options, batch);
        }
    }

    private static void read(RocksDB database, Random random) throws RocksDBException {
        for (int times = 0; times < 2000; times++) {
            database.get(key(random));
        }
        try (RocksIterator iterator = database.newIterator()) {
            iterator.seek(key(random));
            for (int times = 0; times < 2000 && iterator.isValid(); times++) {
                iterator.next();
            }
        }
    }

    private static byte[] key(Random random) {
        return ByteBuffer.allocate(8).putLong(random.nextInt(1_000_000)).array();
    }

    private static void delete(Path folder) throws Exception {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : (Iterable<Path>) files.sorted(Comparator.reverseOrder())::iterator) {
                Files.delete(file);
            }
        }
    }
}
