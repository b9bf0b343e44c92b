import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A message as dequeue_fast returns it, with the columns that the worker needs. */
record Message(long claim, long id, int attempt, String body) {
    /** Find a number in the JSON body; an application uses a JSON library. */
    double number(String key) {
        Matcher found = Pattern.compile("\"" + key + "\": *([0-9.]+)").matcher(body);
        return found.find() ? Double.parseDouble(found.group(1)) : 0;
    }
}
