package programs;

import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;
import jdk.jfr.SettingDescriptor;

/**
 * Prints what each setting of this JVM's own events is unless it is set: event, setting and value on a line, with tabs between
 * them. The JDK's reader of recordings has that of no recording: it gives the setting's name instead (JDK 25
 * jdk.jfr.internal.MetadataReader.defineTypes).
 */
public final class SettingDefaults {
    private SettingDefaults() {}

    public static void main(String[] args) {
        for (EventType event : FlightRecorder.getFlightRecorder().getEventTypes()) {
            for (SettingDescriptor setting : event.getSettingDescriptors()) {
                System.out.println(event.getName() + "\t" + setting.getName() + "\t" + setting.getDefaultValue());
            }
        }
    }
}
