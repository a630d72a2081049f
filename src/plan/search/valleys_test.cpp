#include "src/plan/search/valleys.hpp"

#include <gtest/gtest.h>

#include <random>

namespace arenite::plan {
namespace {

using Section = Valleys::Section;

/// By its definition.
std::size_t least(const std::vector<Section>& sections, std::size_t first, std::size_t last) {
  std::size_t best = last;
  for (std::size_t s = first; s < last; ++s) {
    const std::int64_t floor = sections[s].floor;
    std::size_t left = s, right = s;
    while (left > first && sections[left - 1].floor == floor) --left;
    while (right + 1 < last && sections[right + 1].floor == floor) ++right;
    const bool valley = (left == first || sections[left - 1].floor > floor) &&
                        (right + 1 == last || sections[right + 1].floor > floor);
    if (valley && (best == last || sections[s].need < sections[best].need)) best = s;
  }
  return best;
}

class Line {
 public:
  explicit Line(std::size_t count) : sections_(count), valleys_(count) {
    valleys_.change(0, sections_);
  }

  void change(std::size_t first, std::size_t last, std::mt19937& random, unsigned floors) {
    std::vector<Section> changed;
    for (std::size_t s = first; s < last; ++s) {
      sections_[s] = {static_cast<std::int64_t>(random() % floors),
                      static_cast<double>(random() % 8)};
      changed.push_back(sections_[s]);
    }
    valleys_.change(first, changed);
  }
  void raise(std::size_t first, std::size_t last, std::int64_t floor) {
    for (std::size_t s = first; s < last; ++s) sections_[s].floor = floor;
    valleys_.change(first, {sections_.begin() + static_cast<std::ptrdiff_t>(first),
                            sections_.begin() + static_cast<std::ptrdiff_t>(last)});
  }
  void check(std::size_t first, std::size_t last) const {
    ASSERT_EQ(valleys_.least(first, last), least(sections_, first, last))
        << first << " to " << last << " of " << sections_.size();
  }

 private:
  std::vector<Section> sections_;
  Valleys valleys_;
};

TEST(Valleys, AreThoseOfTheDefinition) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t end) { return random() % end; };
  for (const std::size_t count : {1, 2, 3, 63, 64, 65, 200, 1000}) {
    Line line(count);
    line.check(0, count);
    for (int step = 0; step < 300; ++step) {
      const std::size_t first = below(count);
      const std::size_t last = first + 1 + below(std::min<std::size_t>(count - first, 20));
      // Runs of several sections, long ones too, and single sections.
      if (step % 3 == 0) {
        line.change(first, last, random, 3);
      } else {
        line.raise(first, step % 7 == 0 ? count : last, static_cast<std::int64_t>(below(4)));
      }
      line.check(0, count);
      const std::size_t begin = below(count);
      line.check(begin, begin + 1 + below(count - begin));
    }
  }
}

TEST(Valleys, OfEqualNeedAreTakenFromTheLeft) {
  Valleys valleys(4);
  valleys.change(0, {{1, 5}, {0, 5}, {1, 5}, {0, 5}});
  EXPECT_EQ(valleys.least(0, 4), 1U);
  EXPECT_EQ(valleys.least(2, 4), 3U);
  EXPECT_EQ(valleys.least(0, 1), 0U);
  valleys.change(1, {{0, 6}});
  EXPECT_EQ(valleys.least(0, 4), 3U);
}

TEST(Valleys, StayWhereNothingChanges) {
  Valleys valleys(3);
  valleys.change(0, {{2, 1}, {1, 1}, {2, 1}});
  valleys.change(1, {});
  EXPECT_EQ(valleys.least(0, 3), 1U);
}

}  // namespace
}  // namespace arenite::plan
