import java.io.File;
import java.util.List;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;

/** Reads every event, and every frame of its stack, by JDK Mission Control's core: {@code ReadByJmc FILE}. */
public final class ReadByJmc {
    private ReadByJmc() {}

    public static void main(String[] args) throws Exception {
        Passes.serve(read -> {
            for (IItemIterable items : JfrLoaderToolkit.loadEvents(List.of(new File(args[0])))) {
                IMemberAccessor<IMCStackTrace, IItem> stackOf =
                        JfrAttributes.EVENT_STACKTRACE.getAccessor(items.getType());
                for (IItem item : items) {
                    read.events++;
                    IMCStackTrace stack = stackOf == null ? null : stackOf.getMember(item);
                    if (stack != null) {
                        read.stacks++;
                        for (IMCFrame frame : stack.getFrames()) {
                            read.frames++;
                            Integer line = frame.getFrameLineNumber();
                            read.check += line == null ? -1 : line;
                        }
                    }
                }
            }
        });
    }
}
