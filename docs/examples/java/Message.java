import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A message as dequeue_fast returns it, with the columns that the worker needs. */
record Message(long claim, long id, int attempt, String body) {
    /** Read the message of a leased row. */
    static Message of(ResultSet row) throws SQLException {
        return new Message(row.getLong("claim_id"), row.getLong("message_id"),
                row.getInt("attempt"), row.getString("body"));
    }

    /** Find a number in the JSON body; an application uses a JSON library. */
    double number(String key) {
        Matcher found = Pattern.compile("\"" + key + "\": *([0-9.]+)").matcher(body);
        return found.find() ? Double.parseDouble(found.group(1)) : 0;
    }
}
