// What several of the planner's tests need.
#pragma once

#include <arenite/plan/problem.hpp>

#include "src/base/testing.hpp"

#include <random>
#include <string>
#include <vector>

namespace arenite::plan {

using arenite::testing::error_of;
using arenite::testing::fewer_where_slow;

/// Below `end`; the same on every platform, which std::uniform_int_distribution is not.
inline std::int64_t below(std::mt19937& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(end));
}

inline Problem random_intervals(std::mt19937& random, std::int64_t buffers) {
  Problem problem;
  for (std::int64_t i = 0; i < buffers; ++i) {
    const std::int64_t begin = below(random, 6);
    problem.add({.name = "b" + std::to_string(i),
                 .bytes = below(random, 9),
                 .lifetime = {begin, begin + 1 + below(random, 4)},
                 .alignment = std::int64_t{1} << below(random, 3)});
  }
  return problem;
}

/// A random partial order: i before j only for i < j, closed.
inline Precedence random_order(std::mt19937& random, std::size_t size, unsigned percent) {
  Precedence order(size);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t j = i + 1; j < size; ++j) {
      if (random() % 100 < percent) order.set_before(i, j);
    }
  }
  order.close();
  return order;
}

inline Problem random_ordered(std::mt19937& random, std::int64_t buffers) {
  Problem problem;
  for (std::int64_t i = 0; i < buffers; ++i) {
    problem.add({.name = "b" + std::to_string(i),
                 .bytes = below(random, 9),
                 .alignment = std::int64_t{1} << below(random, 3)});
  }
  problem.set_precedence(random_order(random, problem.size(), 10 + random() % 50));
  return problem;
}

/// Intervals of which two thirds have gaps.
inline Problem random_gaps(std::mt19937& random, std::int64_t buffers) {
  Problem problem;
  for (std::int64_t i = 0; i < buffers; ++i) {
    std::int64_t time = below(random, 5);
    Buffer buffer{.name = "b" + std::to_string(i),
                  .bytes = below(random, 9),
                  .lifetime = {time, 0},
                  .alignment = std::int64_t{1} << below(random, 3)};
    time += 1 + below(random, 2);
    for (std::int64_t left = below(random, 3); left > 0; --left) {
      const std::int64_t end = time + 1 + below(random, 2);
      buffer.gaps.push_back({time, end});
      time = end + 1 + below(random, 2);
    }
    buffer.lifetime.end = time;
    problem.add(std::move(buffer));
  }
  return problem;
}

/// The same, where only some of what follows in time follows in order.
inline Problem random_gaps_ordered(std::mt19937& random, std::int64_t buffers) {
  Problem problem = random_gaps(random, buffers);
  std::vector<Lifetime> times;
  for (const Buffer& buffer : problem.buffers()) {
    for (const Lifetime& piece : pieces(buffer)) times.push_back(piece);
  }
  Precedence order(times.size());
  for (std::size_t i = 0; i < problem.size(); ++i) {
    for (std::size_t p = problem.first_piece(i); p <= problem.last_piece(i); ++p) {
      for (std::size_t q = 0; q < times.size(); ++q) {
        const bool same = q >= problem.first_piece(i) && q <= problem.last_piece(i);
        if (times[p].end <= times[q].begin && (same || random() % 3 != 0)) order.set_before(p, q);
      }
    }
  }
  order.close();
  problem.set_precedence(std::move(order));
  return problem;
}

}  // namespace arenite::plan
