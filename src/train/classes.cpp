#include <arenite/train/classes.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "src/base/element.hpp"
#include "src/base/refuse.hpp"

namespace arenite::train {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? none : static_cast<double>(part) / static_cast<double>(whole);
}

std::int64_t classes_of(const Predictions& scores) {
  if (!is_real(scores.type) || scores.shape.rank() != 2 || scores.shape[1] < 1) {
    refuse("predictions " + std::string(to_string(scores.type)) + " " + to_string(scores.shape),
           "scores of classes, real numbers [M, classes]");
  }
  if (std::ssize(scores.bytes) != scores.shape.elements() * size_of(scores.type)) {
    refuse(std::to_string(scores.bytes.size()) + " bytes of predictions " + to_string(scores.shape),
           std::to_string(scores.shape.elements() * size_of(scores.type)));
  }
  return scores.shape[1];
}

/// All of them, as doubles.
std::vector<double> scores_of(const Predictions& scores) {
  std::vector<double> all;
  const auto take = [&](auto values) { all.assign(values.begin(), values.end()); };
  scores.type == DType::float32 ? take(scores.values<float>()) : take(scores.values<double>());
  return all;
}

std::vector<std::int64_t> labels_of(const Column& labels, const Predictions& scores) {
  std::vector<std::int64_t> all;
  const auto take = [&]<class T>(T) {
    const auto* first = static_cast<const T*>(labels.data);
    all.assign(first, first + labels.shape.elements());
  };
  const std::int64_t count = scores.shape[0], classes = scores.shape[1];
  check(Samples{{labels}});
  if (labels.shape != Shape{count}) {
    refuse("labels " + to_string(labels.shape), "[" + std::to_string(count) + "], one a sample");
  }
  if (labels.type == DType::uint8) {
    take(std::uint8_t{});
  } else if (labels.type == DType::int32) {
    take(std::int32_t{});
  } else if (labels.type == DType::int64) {
    take(std::int64_t{});
  } else {
    refuse("labels of type " + std::string(to_string(labels.type)), "integers");
  }
  for (const std::int64_t label : all) {
    if (label >= 0 && label < classes) continue;
    refuse("label " + std::to_string(label), "0 to " + std::to_string(classes - 1));
  }
  return all;
}

/// Numbers of the classes, the highest score first; those that are no numbers last.
void sort_classes(std::span<const double> scores, std::vector<std::int64_t>& order,
                  std::int64_t first) {
  order.resize(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto above = [&](std::int64_t a, std::int64_t b) {
    const double x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    if (std::isnan(x) || std::isnan(y))
      return std::isnan(x) == std::isnan(y) ? a < b : std::isnan(y);
    return x > y || (x == y && a < b);
  };
  std::ranges::partial_sort(order, order.begin() + first, above);
}

/// Calls f(sample, its scores).
template <class F>
void for_each_sample(const Predictions& scores, const F& f) {
  const std::vector<double> all = scores_of(scores);
  const auto classes = static_cast<std::size_t>(scores.shape[1]);
  for (std::size_t i = 0; i * classes < all.size(); ++i)
    f(i, std::span(all).subspan(i * classes, classes));
}

void check_k(std::int64_t k, std::int64_t classes) {
  if (k < 1 || k > classes)
    refuse(std::to_string(k) + " of the classes", "1 to " + std::to_string(classes));
}

/// Whether a softmax of them is: as where a loss counts right answers.
bool stand_for_a_class(std::span<const double> scores) {
  return std::isfinite(std::ranges::max(scores)) &&
         std::ranges::none_of(scores, [](double score) { return std::isnan(score); });
}

bool are_shares(std::span<const double> scores) {
  constexpr double near = 1e-3;
  return std::ranges::all_of(scores, [](double s) { return s >= 0 && s <= 1; }) &&
         std::abs(std::accumulate(scores.begin(), scores.end(), 0.0) - 1) <= near;
}

}  // namespace

std::int64_t Confusion::of_class(std::int64_t label) const {
  std::int64_t sum = unanswered.at(static_cast<std::size_t>(label));
  for (std::int64_t i = 0; i < classes; ++i) sum += count(label, i);
  return sum;
}

std::int64_t Confusion::taken_for(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) sum += count(i, label);
  return sum;
}

double Confusion::accuracy() const {
  std::int64_t right = 0, all = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    right += count(i, i);
    all += of_class(i);
  }
  return ratio(right, all);
}

double Confusion::recall(std::int64_t label) const {
  return ratio(count(label, label), of_class(label));
}

double Confusion::precision(std::int64_t label) const {
  return ratio(count(label, label), taken_for(label));
}

Confusion confusion(const Predictions& scores, const Column& labels) {
  Confusion found{.classes = classes_of(scores), .counts = {}, .unanswered = {}};
  found.counts.resize(static_cast<std::size_t>(found.classes * found.classes));
  found.unanswered.resize(static_cast<std::size_t>(found.classes));
  const std::vector<std::int64_t> right = labels_of(labels, scores);
  std::vector<std::int64_t> order;
  for_each_sample(scores, [&](std::size_t i, std::span<const double> of_sample) {
    if (!stand_for_a_class(of_sample)) {
      ++found.unanswered[static_cast<std::size_t>(right[i])];
      return;
    }
    sort_classes(of_sample, order, 1);
    ++found.counts[static_cast<std::size_t>(right[i] * found.classes + order[0])];
  });
  return found;
}

double top_k(const Predictions& scores, const Column& labels, std::int64_t k) {
  check_k(k, classes_of(scores));
  const std::vector<std::int64_t> right = labels_of(labels, scores);
  std::int64_t hits = 0;
  std::vector<std::int64_t> order;
  for_each_sample(scores, [&](std::size_t i, std::span<const double> of_sample) {
    if (!stand_for_a_class(of_sample)) return;
    sort_classes(of_sample, order, k);
    const auto end = order.begin() + k;
    hits += std::find(order.begin(), end, right[i]) != end ? 1 : 0;
  });
  return ratio(hits, scores.shape[0]);
}

std::vector<Guess> guesses(const Predictions& scores, std::int64_t k) {
  check_k(k, classes_of(scores));
  std::vector<Guess> all;
  std::vector<std::int64_t> order;
  for_each_sample(scores, [&](std::size_t, std::span<const double> of_sample) {
    sort_classes(of_sample, order, k);
    const bool shares = are_shares(of_sample);
    const double most = of_sample[static_cast<std::size_t>(order[0])];
    // Those that are as infinite as the highest share it all.
    const auto part = [&](double score) { return score == most ? 1.0 : std::exp(score - most); };
    double sum = 0;
    for (const double score : of_sample) sum += std::isnan(score) ? 0 : part(score);
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t label = order[static_cast<std::size_t>(i)];
      const double score = of_sample[static_cast<std::size_t>(label)];
      all.push_back({label, shares ? score : part(score) / sum});
    }
  });
  return all;
}

}  // namespace arenite::train
