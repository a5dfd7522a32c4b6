import java.io.BufferedWriter;
import java.io.File;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.openjdk.jmc.common.item.IAccessorKey;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.item.IType;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.common.util.LabeledIdentifier;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/**
 * Prints every event of a recording as JDK Mission Control's core reads it, as a line of JSON: {@code
 * PrintByJmc FILE}. Times and spans of time are in nanoseconds, amounts in bytes. Null values are left out.
 */
public final class PrintByJmc {
    private PrintByJmc() {}

    public static void main(String[] args) throws Exception {
        try (Writer out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8))) {
            for (IItemIterable items : JfrLoaderToolkit.loadEvents(List.of(new File(args[0])))) {
                IType<IItem> type = items.getType();
                for (IItem item : items) {
                    List<String> fields = new ArrayList<>();
                    for (IAccessorKey<?> key : type.getAccessorKeys().keySet()) {
                        add(fields, key.getIdentifier(), member(type, key, item));
                    }
                    String name = quoted(type.getIdentifier());
                    out.write("{\"type\":" + name + ",\"values\":" + object(fields) + "}\n");
                }
            }
        }
    }

    private static <M> M member(IType<IItem> type, IAccessorKey<M> key, IItem item) {
        IMemberAccessor<M, IItem> accessor = type.getAccessor(key);
        return accessor.getMember(item);
    }

    private static void add(List<String> fields, String name, Object value)
            throws ReflectiveOperationException {
        if (value != null) {
            fields.add(quoted(name) + ":" + json(value));
        }
    }

    private static String object(List<String> fields) {
        return "{" + String.join(",", fields) + "}";
    }

    private static String json(Object value) throws ReflectiveOperationException {
        // Checked before Number, which quantities are too.
        if (value instanceof IQuantity) {
            return number((IQuantity) value);
        }
        if (value instanceof Boolean || value instanceof Number) {
            return value.toString();
        }
        if (value instanceof String) {
            return quoted((String) value);
        }
        // The subject of a setting: an event type, by its id in the recording.
        if (value instanceof LabeledIdentifier) {
            return quoted(((LabeledIdentifier) value).getInterfaceId());
        }
        List<String> elements = new ArrayList<>();
        if (value instanceof Iterable) {
            for (Object element : (Iterable<?>) value) {
                elements.add(element == null ? "null" : json(element));
            }
            return "[" + String.join(",", elements) + "]";
        }
        if (value.getClass().isArray()) {
            for (int at = 0; at < Array.getLength(value); at++) {
                Object element = Array.get(value, at);
                elements.add(element == null ? "null" : json(element));
            }
            return "[" + String.join(",", elements) + "]";
        }
        // JMC keeps a struct as an object with public fields, in a class that is not public.
        for (Field field : value.getClass().getFields()) {
            if (!Modifier.isStatic(field.getModifiers())) {
                field.setAccessible(true);
                add(elements, field.getName(), field.get(value));
            }
        }
        return object(elements);
    }

    private static String number(IQuantity quantity) {
        switch (quantity.getUnit().getContentType().getIdentifier()) {
            case "timestamp":
                return Long.toString(quantity.clampedLongValueIn(UnitLookup.EPOCH_NS));
            case "timespan":
                return Long.toString(quantity.clampedLongValueIn(UnitLookup.NANOSECOND));
            case "memory":
                return Long.toString(quantity.clampedLongValueIn(UnitLookup.BYTE));
            default:
                return quantity.numberValue().toString();
        }
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (int at = 0; at < text.length(); at++) {
            char unit = text.charAt(at);
            if (unit < ' ' || unit == '"' || unit == '\\') {
                quoted.append(String.format("\\u%04x", (int) unit));
            } else {
                quoted.append(unit);
            }
        }
        return quoted.append('"').toString();
    }
}
