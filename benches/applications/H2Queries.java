// Maven: com.h2database:h2:2.2.224

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Joins, sorts and aggregates in an H2 database in memory. */
final class H2Queries {
    private H2Queries() {}

    public static void main(String[] arguments) throws SQLException {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:");
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE t AS SELECT x, MOD(x * 7919, 5003) k, 'name ' || x s"
                    + " FROM SYSTEM_RANGE(1, 50000)");
            statement.execute("CREATE INDEX i ON t(k)");
            while (System.nanoTime() < end) {
                count(
                        statement,
                        "SELECT COUNT(*), MAX(a.s || b.s) FROM t a JOIN t b ON a.k = b.k WHERE a.x < 5000");
                count(
                        statement,
                        "SELECT k, COUNT(*), SUM(x), MIN(s) FROM t GROUP BY k ORDER BY 3 DESC LIMIT 5");
                count(
                        statement,
                        "SELECT COUNT(DISTINCT SUBSTRING(s, 3)) FROM (SELECT UPPER(s) s FROM t ORDER BY s)");
                statement.execute("UPDATE t SET s = s || '.' WHERE k < 50");
            }
        }
    }

    private static void count(Statement statement, String query) throws SQLException {
        try (ResultSet rows = statement.executeQuery(query)) {
            while (rows.next()) {
                rows.getObject(1);
            }
        }
    }
}
