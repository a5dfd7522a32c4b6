// Maven: org.apache.lucene:lucene-core:9.11.1
// Maven: org.apache.lucene:lucene-analysis-common:9.11.1

import java.io.IOException;
import java.util.Random;
import org.apache.lucene.analysis.en.EnglishAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PrefixQuery;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Indexes texts of random words, and searches them. */
final class LuceneIndex {
    private LuceneIndex() {}

    public static void main(String[] arguments) throws IOException {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Random random = new Random(1);
        while (System.nanoTime() < end) {
            try (Directory directory = new ByteBuffersDirectory()) {
                index(directory, random);
                search(directory, random);
            }
        }
    }

    private static void index(Directory directory, Random random) throws IOException {
        try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new EnglishAnalyzer()))) {
            for (int number = 0; number < 2000; number++) {
                StringBuilder text = new StringBuilder();
                for (int words = 0; words < 50; words++) {
                    text.append(word(random)).append(' ');
                }
                Document document = new Document();
                document.add(new TextField("text", text.toString(), Field.Store.YES));
                writer.addDocument(document);
            }
        }
    }

    private static void search(Directory directory, Random random) throws IOException {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            for (int times = 0; times < 500; times++) {
                BooleanQuery.Builder query = new BooleanQuery.Builder();
                query.add(new TermQuery(new Term("text", word(random))), BooleanClause.Occur.SHOULD);
                query.add(
                        new PrefixQuery(new Term("text", word(random).substring(0, 2))),
                        BooleanClause.Occur.SHOULD);
                searcher.search(query.build(), 10);
            }
        }
    }

    /** Returns a random word. Few words are frequent, most are rare. */
    private static String word(Random random) {
        return "w" + Integer.toString((int) Math.abs(random.nextGaussian() * 3000), 36) + "ing";
    }
}
