import java.sql.*;
import java.util.Properties;

/** A connection to PostgreSQL or MariaDB, and how rowq is called there. */
final class Database implements AutoCloseable {
    final Connection connection;
    final boolean isPostgres;

    Database(String url) throws SQLException {
        Properties options = new Properties();
        options.setProperty("stringtype", "unspecified"); // PostgreSQL's, so that "{1}" can be an array.
        connection = DriverManager.getConnection(url, options);
        isPostgres = url.startsWith("jdbc:postgresql:");
    }

    /** Call a routine by place, with null for a default. Close the result, which closes the call. */
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

    /** Write an array of one id: as an array of PostgreSQL, elsewhere as one of JSON. */
    String ids(long id) {
        return (isPostgres ? "{%d}" : "[%d]").formatted(id);
    }

    /** Tell whether rowq has refused a call, with such a number: "721" is RQ721, on MariaDB 45721. */
    static boolean isRefused(SQLException error, String number) {
        return error.getSQLState() != null && error.getSQLState().matches("(RQ|45)" + number);
    }

    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
