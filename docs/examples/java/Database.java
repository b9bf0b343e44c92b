import java.sql.*;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Properties;
import java.util.Queue;
import java.util.stream.Collectors;

/** A connection to PostgreSQL or MariaDB, and its calls of rowq. */
final class Database implements AutoCloseable {
    final Connection connection;
    final boolean isPostgres;

    Database(String url) throws SQLException {
        Properties options = new Properties();
        options.setProperty("stringtype", "unspecified"); // On PostgreSQL "{1}" can then be an array.
        connection = DriverManager.getConnection(url, options);
        isPostgres = url.startsWith("jdbc:postgresql:");
    }

    /** Call a routine by position, with null for defaults. Closing the result closes the call. */
    ResultSet call(String routine, Object... arguments) throws SQLException {
        String marks = "?, ".repeat(arguments.length - 1) + "?";
        PreparedStatement statement = connection.prepareStatement(
                (isPostgres ? "select * from rowq." : "call rowq.") + routine + "(" + marks + ")");
        statement.closeOnCompletion();
        for (int place = 0; place < arguments.length; place++) {
            statement.setObject(place + 1, arguments[place]);
        }
        return statement.executeQuery();
    }

    /** Lease messages. */
    Queue<Message> dequeue(String queue, Object[] batch) throws SQLException {
        Queue<Message> messages = new ArrayDeque<>();
        try (ResultSet row = call("dequeue_fast", queue, batch[0], batch[1], batch[2])) {
            while (row.next()) messages.add(Message.of(row));
        }
        return messages;
    }

    /**
     * Complete messages of a claim, remove the stale ones from the list, and return the next ones;
     * without a batch, or on an error, only complete.
     */
    Queue<Message> complete(String queue, long claim, List<Message> done, Object[] batch) throws SQLException {
        Queue<Message> next = new ArrayDeque<>();
        try (ResultSet row = finish(queue, claim, ids(done), batch)) {
            while (row.next()) {
                long id = row.getLong("message_id");
                switch (row.getString("outcome")) {
                    case "leased" -> next.add(Message.of(row));
                    case "stale" -> done.removeIf(message -> message.id() == id);
                    default -> { }
                }
            }
        }
        return next;
    }

    private ResultSet finish(String queue, long claim, String ids, Object[] batch) throws SQLException {
        if (batch != null) {
            try {
                return call("complete_and_dequeue", queue, claim, ids, null, batch[0], batch[1], batch[2]);
            } catch (SQLException error) {
                System.err.printf("%s; completing only%n", error.getMessage());
            }
        }
        return call("complete", queue, claim, ids, null);
    }

    /** Return the ids of messages: for PostgreSQL an array, else JSON. */
    String ids(List<Message> messages) {
        String ids = messages.stream().map(one -> "" + one.id()).collect(Collectors.joining(","));
        return (isPostgres ? "{%s}" : "[%s]").formatted(ids);
    }

    /** Return whether rowq refused a call with a number: "721" is RQ721, on MariaDB 45721. */
    static boolean isRefused(SQLException error, String number) {
        return error.getSQLState() != null && error.getSQLState().matches("(RQ|45)" + number);
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
