import java.sql.*;
import java.util.Properties;

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

    /** Return an array of one id: for PostgreSQL an array, else JSON. */
    String ids(long id) {
        return (isPostgres ? "{%d}" : "[%d]").formatted(id);
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
