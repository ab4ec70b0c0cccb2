package example;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;

/** Looks for numbers that are not there, in a list and in a set. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Lookup {
    private final List<Integer> numbers = new ArrayList<>();
    private final Set<Integer> distinct = new HashSet<>();

    @Setup
    public void fill() {
        for (int i = 0; i < 2000; i++) {
            numbers.add(2 * i);
            distinct.add(2 * i);
        }
    }

    @Benchmark
    public int list() {
        return look(numbers);
    }

    @Benchmark
    public int set() {
        return look(distinct);
    }

    private static int look(Collection<Integer> among) {
        int found = 0;
        for (int i = 0; i < 20; i++) {
            found += among.contains(200 * i + 1) ? 1 : 0;
        }
        return found;
    }
}
