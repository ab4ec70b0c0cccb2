// Adds up numbers that lie one beside the other, and numbers of which each says where the next one is.
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <list>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

static std::vector<int64_t> Numbers() {
  std::vector<int64_t> numbers(1 << 16);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST_CASE("vector") {
  const std::vector<int64_t> numbers = Numbers();
  BENCHMARK("sum") { return std::accumulate(numbers.begin(), numbers.end(), int64_t{0}); };
}

TEST_CASE("list") {
  // Sorting by a random key leaves the nodes where they are, and the way from one to the next all over the memory.
  std::mt19937_64 random(1);
  std::vector<std::pair<uint64_t, int64_t>> keyed;
  for (int64_t number : Numbers()) keyed.emplace_back(random(), number);
  std::list<std::pair<uint64_t, int64_t>> shuffled(keyed.begin(), keyed.end());
  shuffled.sort();
  BENCHMARK("sum") {
    int64_t sum = 0;
    for (const auto& number : shuffled) sum += number.second;
    return sum;
  };
}
