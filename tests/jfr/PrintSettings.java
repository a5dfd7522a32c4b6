import java.lang.reflect.Array;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import jdk.jfr.AnnotationElement;
import jdk.jfr.EventType;
import jdk.jfr.SettingDescriptor;
import jdk.jfr.ValueDescriptor;
import jdk.jfr.consumer.RecordingFile;

/**
 * Prints the settings of each event of a recording, which {@code jfr metadata} leaves out, a setting on each
 * line: {@code PrintSettings FILE}. Leaves out default values, since the JDK returns the setting's name in
 * place of its default.
 */
public final class PrintSettings {
    private PrintSettings() {}

    public static void main(String[] args) throws Exception {
        try (RecordingFile recording = new RecordingFile(Path.of(args[0]))) {
            for (EventType event : recording.readEventTypes()) {
                for (SettingDescriptor setting : event.getSettingDescriptors()) {
                    List<String> printed = new ArrayList<>();
                    printed.add(event.getName());
                    printed.add(setting.getName());
                    printed.add(setting.getTypeName());
                    for (AnnotationElement annotation : setting.getAnnotationElements()) {
                        printed.add("@" + annotation.getTypeName());
                        for (ValueDescriptor value : annotation.getValueDescriptors()) {
                            printed.add(value.getName() + "=" + text(annotation.getValue(value.getName())));
                        }
                    }
                    System.out.println(String.join("\t", printed));
                }
            }
        }
    }

    private static String text(Object value) {
        if (!value.getClass().isArray()) {
            return value.toString();
        }
        List<String> elements = new ArrayList<>();
        for (int at = 0; at < Array.getLength(value); at++) {
            elements.add(Array.get(value, at).toString());
        }
        return elements.size() == 1 ? elements.get(0) : elements.toString();
    }
}
