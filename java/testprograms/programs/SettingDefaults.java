package programs;

import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;
import jdk.jfr.SettingDescriptor;

/**
 * Prints the default value of each setting of this JVM's events: event, setting and value on a line,
 * separated by tabs. The JDK's reader of recordings does not return default values: it returns the setting's
 * name instead (JDK 25 jdk.jfr.internal.MetadataReader.defineTypes).
 */
public final class SettingDefaults {
    private SettingDefaults() {}

    public static void main(String[] args) {
        for (EventType event : FlightRecorder.getFlightRecorder().getEventTypes()) {
            for (SettingDescriptor setting : event.getSettingDescriptors()) {
                System.out.println(
                        event.getName() + "\t" + setting.getName() + "\t" + setting.getDefaultValue());
            }
        }
    }
}
