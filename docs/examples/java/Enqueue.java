// Enqueues a message with its order: java Enqueue QUEUE_NAME ORDER_NUMBER
import java.math.BigDecimal;
import java.sql.*;

public class Enqueue {
    public static void main(String[] arguments) throws SQLException {
        int number = Integer.parseInt(arguments[1]);
        try (Database database = new Database(System.getenv("DATABASE_URL"));
                Statement create = database.connection.createStatement()) {
            create.execute("create table if not exists orders"
                    + " (order_number integer primary key, total decimal(12, 2))");
            place(database, arguments[0], number, new BigDecimal("11.77"));
            place(database, arguments[0], number + 1, new BigDecimal("-1"));
        } catch (IllegalArgumentException error) {
            System.out.println(error.getMessage() + ": it was rolled back, and its message with it");
        }
    }

    /** Store an order and enqueue its message in one transaction. */
    static void place(Database database, String queue, int number, BigDecimal total)
            throws SQLException {
        Connection connection = database.connection;
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("insert into orders values (?, ?)");
                PreparedStatement enqueue = connection.prepareStatement(enqueueCall(database))) {
            insert.setInt(1, number);
            insert.setBigDecimal(2, total);
            insert.executeUpdate();

            enqueue.setString(1, queue);
            enqueue.setString(2, "{\"order\": %d, \"fail\": 0}".formatted(number));
            ResultSet sent = enqueue.executeQuery();
            sent.next();
            System.out.printf("order %d: %s as message %d%n",
                    number, sent.getString("outcome"), sent.getLong("message_id"));

            if (total.signum() < 0) {
                throw new IllegalArgumentException("order %d has a total of %s".formatted(number, total));
            }
            connection.commit();
        } finally {
            connection.rollback(); // Has no effect after the commit.
        }
    }

    /** PostgreSQL allows named arguments; MariaDB requires all by position. */
    static String enqueueCall(Database database) {
        return database.isPostgres
                ? "select * from rowq.enqueue(p_queue_name => ?, p_body => ?::text)"
                : "call rowq.enqueue(?, ?" + ", null".repeat(13) + ")";
    }
}
