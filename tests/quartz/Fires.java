import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.text.ParseException;
import java.util.Date;
import java.util.StringJoiner;
import java.util.TimeZone;
import org.quartz.CronExpression;

/**
 * Asks Quartz when expressions fire. Each line of the input is EXPRESSION, ZONE, SECONDS and COUNT, with tabs between them; its
 * answer is a line of the next times after SECONDS, at most COUNT, in seconds since 1970 with commas between them, or "refused".
 */
public class Fires {
  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder out = new StringBuilder();
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] asked = line.split("\t");
      out.append(fires(asked[0], asked[1], Long.parseLong(asked[2]), Integer.parseInt(asked[3]))).append('\n');
    }
    System.out.print(out);
  }

  private static String fires(String text, String zone, long after, int count) {
    CronExpression expression;
    try {
      expression = new CronExpression(text);
    } catch (ParseException refused) {
      return "refused";
    }
    expression.setTimeZone(TimeZone.getTimeZone(zone));
    StringJoiner times = new StringJoiner(",");
    Date at = new Date(after * 1000);
    for (int i = 0; i < count; i++) {
      at = expression.getTimeAfter(at);
      if (at == null) {
        break;
      }
      times.add(Long.toString(at.getTime() / 1000));
    }
    return times.toString();
  }
}
