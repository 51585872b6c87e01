import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.StreamTokenizer;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Properties;
import java.util.TreeMap;

/**
 * Writes what the JVM makes of the inputs beside this directory, as text:
 * {@code java testdata/java/Goldens.java testdata}. The tests in Go compare with it.
 */
public class Goldens {
    public static void main(String[] args) throws IOException {
        Path root = Paths.get(args[0]);
        try (DirectoryStream<Path> files = Files.newDirectoryStream(root.resolve("properties"), "*.properties")) {
            for (Path file : files) {
                write(file, properties(Files.readAllBytes(file)));
            }
        }
        try (DirectoryStream<Path> files = Files.newDirectoryStream(root.resolve("jaas"), "*.jaas")) {
            for (Path file : files) {
                write(file, tokens(new String(Files.readAllBytes(file), StandardCharsets.UTF_8)));
            }
        }
    }

    static void write(Path input, String text) throws IOException {
        Files.write(input.resolveSibling(input.getFileName() + ".golden"), text.getBytes(StandardCharsets.US_ASCII));
    }

    static String properties(byte[] bytes) throws IOException {
        Properties p = new Properties();
        try {
            p.load(new ByteArrayInputStream(bytes));
        } catch (IllegalArgumentException e) {
            return "error\n";
        }
        StringBuilder out = new StringBuilder();
        TreeMap<String, String> sorted = new TreeMap<>();
        for (String key : p.stringPropertyNames()) {
            sorted.put(quote(key), quote(p.getProperty(key)));
        }
        sorted.forEach((k, v) -> out.append(k).append(" = ").append(v).append('\n'));
        return out.toString();
    }

    /** One token a line, by the tokenizer as it is set up for login modules. */
    static String tokens(String text) throws IOException {
        StreamTokenizer t = new StreamTokenizer(new StringReader(text));
        t.slashSlashComments(true);
        t.slashStarComments(true);
        for (char c : new char[] {'-', '_', '$'}) {
            t.wordChars(c, c);
        }
        StringBuilder out = new StringBuilder();
        while (t.nextToken() != StreamTokenizer.TT_EOF) {
            if (t.sval != null) {
                out.append("text ").append(quote(t.sval)).append('\n');
            } else if (t.ttype == StreamTokenizer.TT_NUMBER) {
                out.append("other\n");
            } else {
                out.append("char ").append(quote(String.valueOf((char) t.ttype))).append('\n');
            }
        }
        return out.toString();
    }

    static String quote(String s) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c >= ' ' && c < 127) {
                out.append(c);
            } else {
                out.append(String.format("\\u%04x", (int) c));
            }
        }
        return out.append('"').toString();
    }
}
