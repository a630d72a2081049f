// Samples that a trainer sees once: they go through a sweep in stretches, whose bytes it owns, so
// that one program does for any of them. Predictions are made so, steps on batches that come one by
// one, and evaluations of few samples.
#include "src/base/refuse.hpp"
#include "src/train/timer.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace arenite::train {
namespace {

std::int64_t row_bytes(DType type, const Shape& shape) {
  return shape.elements() / shape[0] * size_of(type);
}

std::int64_t row_bytes(const Column& column) { return row_bytes(column.type, column.shape); }

/// Of a stretch: so many that beginning a sweep costs little beside them, and that they stay in
/// caches.
constexpr std::int64_t enough_bytes = std::int64_t{1} << 20;

}  // namespace

void Predictions::check(DType asked) const {
  if (asked == type) return;
  refuse("predictions read as " + std::string(to_string(asked)), std::string(to_string(type)));
}

const Port& Trainer::Impl::prediction() {
  if (!predicting) {
    if (network.graph.entries.empty()) {
      refuse("predictions of an objective that has none", "one that names them", {},
             "Objective{.loss = …, .predictions = …}");
    }
    predicting.emplace(model.inputs_of(predict_name), model.outputs_of(predict_name).front());
  }
  return predicting->second;
}

const std::vector<const Column*>& Trainer::Impl::columns_of(const Samples& samples,
                                                            const std::vector<Port>& needed) {
  check(samples);
  chosen.clear();
  for (const Port& input : needed) {
    const auto column = std::ranges::find(samples.columns, input.name, &Column::input);
    if (column == samples.columns.end())
      refuse("samples without a column '" + input.name + "'", "one for each input that is read");
    chosen.push_back(&*column);
  }
  return chosen;
}

Trainer::Impl::Stretch& Trainer::Impl::stretch_of(std::string_view entry,
                                                  const std::vector<const Column*>& columns,
                                                  std::int64_t rows) {
  const auto is_like = [](const Column& a, const Column* b) {
    return a.input == b->input && a.type == b->type && a.scale == b->scale &&
           a.shape.with(0, 1) == b->shape.with(0, 1);
  };
  const auto known = std::ranges::find_if(stretches, [&](const Stretch& stretch) {
    return stretch.entry == entry && stretch.asked == rows &&
           std::ranges::equal(stretch.samples.columns, columns, is_like);
  });
  if (known != stretches.end()) {
    stretches.splice(stretches.begin(), stretches, known);
    return *known;
  }

  const bool predicts = entry == predict_name || entry == predict_current_name;
  const std::int64_t asked = rows;
  if (rows == 0) {
    constexpr std::int64_t most_batches = 32;
    std::int64_t one = predicts ? row_bytes(prediction().type, prediction().shape) : 0;
    for (const Column* const column : columns) one += row_bytes(*column);
    rows = options.batch *
           std::clamp<std::int64_t>(enough_bytes / std::max<std::int64_t>(one * options.batch, 1),
                                    1, most_batches);
  }
  Stretch made{.entry = std::string(entry), .asked = asked, .bytes = {}, .samples = {}};
  for (const Column* const column : columns) {
    auto& bytes = made.bytes.emplace_back(static_cast<std::size_t>(rows * row_bytes(*column)));
    Column& own = made.samples.columns.emplace_back(*column);
    own.data = bytes.data();
    own.shape = own.shape.with(0, rows);
  }
  refuse_while_profiled();
  // Those that were used last stay.
  constexpr std::size_t most_stretches = 8;
  while (stretches.size() >= most_stretches) {
    release(stretches.back().samples);
    stretches.pop_back();
  }
  sweeps.prepare({{made.entry, made.samples, true, predicts}});
  restore(saved);
  return stretches.emplace_front(std::move(made));
}

namespace {

/// Rows from `first` on, to row `at` and those behind it.
void copy_rows(const std::vector<const Column*>& columns, std::int64_t first, std::int64_t rows,
               std::int64_t at, std::vector<std::vector<std::byte>>& to) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::int64_t bytes = row_bytes(*columns[i]);
    if (rows * bytes == 0) continue;
    std::memcpy(to[i].data() + at * bytes,
                static_cast<const std::byte*>(columns[i]->data) + first * bytes,
                static_cast<std::size_t>(rows * bytes));
  }
}

}  // namespace

Metrics Trainer::Impl::step(const Samples& batch) {
  const std::vector<const Column*>& columns = columns_of(batch, inputs);
  const std::int64_t rows = batch.count();
  if (rows > options.batch) {
    refuse("a step on " + std::to_string(rows) + " samples",
           "at most " + std::to_string(options.batch) + ", the batch");
  }
  if (running) refuse("a step in the middle of a sweep", "one behind the other");
  Stretch& stretch = stretch_of("train", columns, rows);
  Swept& of = *sweeps.find("train", stretch.samples);
  copy_rows(columns, 0, rows, 0, stretch.bytes);
  for (std::size_t i = 0; i < network.graph.outputs.size(); ++i) std::ranges::fill(sums(i), 0.0);
  const Timer timer;
  std::int64_t done = 0;
  run(of, done, {.steps = 1});
  return metrics(rows, timer.seconds());
}

Metrics Trainer::step(const Samples& batch) { return impl_->step(batch); }

bool Trainer::Impl::are_few(const Samples& samples) { return samples.bytes() <= 4 * enough_bytes; }

Metrics Trainer::Impl::evaluate_few(const Samples& test, Weights weights) {
  const std::string entry = evaluation(weights);
  const std::vector<const Column*>& columns = columns_of(test, inputs);
  if (running) refuse("an evaluation in the middle of a sweep", "one behind the other");
  const std::int64_t count = test.count(), rest = count % options.batch;
  bool begun = false;
  const Timer timer;
  const auto evaluate_in = [&](Stretch& through, std::int64_t first, std::int64_t rows) {
    Swept& of = *sweeps.find(entry, through.samples);
    if (!std::exchange(begun, true)) {
      begin_means(of, weights);
      for (std::size_t i = 0; i < network.graph.outputs.size(); ++i)
        std::ranges::fill(sums(i), 0.0);
    }
    copy_rows(columns, first, rows, 0, through.bytes);
    std::int64_t done = 0;
    run(of, done, {.steps = static_cast<long>(rows / of.batch)});
  };
  for (std::int64_t first = 0; first < count - rest;) {
    Stretch& whole = stretch_of(entry, columns, 0);
    const std::int64_t rows = std::min(whole.samples.count(), count - rest - first);
    evaluate_in(whole, first, rows);
    first += rows;
  }
  if (rest > 0) evaluate_in(stretch_of(entry, columns, rest), count - rest, rest);
  return metrics(count, timer.seconds());
}

void Trainer::Impl::predict(const Samples& samples, std::span<std::byte> into, Weights weights) {
  const std::string_view entry =
      options.optimizer.averaging && !averages(weights) ? predict_current_name : predict_name;
  const Port& what = prediction();
  const std::vector<const Column*>& columns = columns_of(samples, predicting->first);
  const std::int64_t count = samples.count();
  const auto one = static_cast<std::size_t>(row_bytes(what.type, what.shape));
  if (into.size() != one * static_cast<std::size_t>(count)) {
    refuse(std::to_string(into.size()) + " bytes for predictions of " + std::to_string(count) +
               " samples",
           std::to_string(one * static_cast<std::size_t>(count)));
  }
  if (running) refuse("predictions in the middle of a sweep", "one behind the other");
  Stretch& stretch = stretch_of(entry, columns, 0);
  Swept& of = *sweeps.find(entry, stretch.samples);
  begin_means(of, weights);
  const auto predict_in = [&](Stretch& through, Swept& by, std::int64_t first, std::int64_t rows) {
    copy_rows(columns, first, rows, 0, through.bytes);
    // The last batch is filled up with the last sample, which nothing can be wrong with.
    const std::int64_t whole = (rows + by.batch - 1) / by.batch * by.batch;
    for (std::int64_t row = rows; row < whole; ++row)
      copy_rows(columns, first + rows - 1, 1, row, through.bytes);
    std::int64_t done = 0;
    run(by, done, {.steps = static_cast<long>(whole / by.batch)});
    std::ranges::copy(sweeps.rows_of(by).first(one * static_cast<std::size_t>(rows)),
                      into.begin() + first * static_cast<std::int64_t>(one));
  };
  const std::int64_t most = stretch.samples.count(),
                     // Samples that meet in a batch are not to meet others that nobody gave.
      alone = of.undivided.empty() ? 0 : count % of.batch;
  for (std::int64_t first = 0; first < count - alone; first += most)
    predict_in(stretch, of, first, std::min(most, count - alone - first));
  if (alone == 0) return;
  Stretch& rest = stretch_of(entry, columns, alone);
  predict_in(rest, *sweeps.find(entry, rest.samples), count - alone, alone);
}

bool Trainer::has_predictions() const noexcept { return !impl_->network.graph.entries.empty(); }
Shape Trainer::shape_of_predictions(std::int64_t count) const {
  return impl_->prediction().shape.with(0, count);
}
DType Trainer::type_of_predictions() const { return impl_->prediction().type; }

void Trainer::predict(const Samples& samples, std::span<std::byte> into, Weights weights) {
  impl_->predict(samples, into, weights);
}

Predictions Trainer::predict(const Samples& samples, Weights weights) {
  Predictions made{.type = type_of_predictions(), .shape = shape_of_predictions(samples.count())};
  made.bytes.resize(static_cast<std::size_t>(made.shape.elements() * size_of(made.type)));
  predict(samples, made.bytes, weights);
  return made;
}

}  // namespace arenite::train
