// Adds up numbers that lie one beside the other, and numbers of which each says where the next one is.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <numeric>
#include <random>
#include <vector>

static std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

static void BM_Vector(benchmark::State& state) {
  const std::vector<int64_t> numbers = Numbers(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(std::accumulate(numbers.begin(), numbers.end(), int64_t{0}));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Vector)->Arg(1 << 16);

static void BM_List(benchmark::State& state) {
  // Sorting by a random key leaves the nodes where they are, and the way from one to the next all over the memory.
  std::mt19937_64 random(1);
  std::vector<std::pair<uint64_t, int64_t>> keyed;
  for (int64_t number : Numbers(state.range(0))) keyed.emplace_back(random(), number);
  std::list<std::pair<uint64_t, int64_t>> shuffled(keyed.begin(), keyed.end());
  shuffled.sort();
  for (auto _ : state) {
    int64_t sum = 0;
    for (const auto& number : shuffled) sum += number.second;
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_List)->Arg(1 << 16);

BENCHMARK_MAIN();
