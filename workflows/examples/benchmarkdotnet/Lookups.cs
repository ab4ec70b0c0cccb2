using System.Collections.Generic;
using System.Linq;
using BenchmarkDotNet.Attributes;
using BenchmarkDotNet.Running;

namespace Example;

/// <summary>Looks for numbers that are not there, in a list and in a set.</summary>
public class Lookups
{
    private readonly List<int> numbers = Enumerable.Range(0, 2000).Select(i => 2 * i).ToList();
    private readonly HashSet<int> distinct = Enumerable.Range(0, 2000).Select(i => 2 * i).ToHashSet();

    [Benchmark]
    public int List() => Look(numbers);

    [Benchmark]
    public int Set() => Look(distinct);

    private static int Look(ICollection<int> among)
    {
        int found = 0;
        for (int i = 0; i < 20; i++)
        {
            found += among.Contains(200 * i + 1) ? 1 : 0;
        }
        return found;
    }

    public static void Main(string[] arguments) => BenchmarkSwitcher.FromAssembly(typeof(Lookups).Assembly).Run(arguments);
}
