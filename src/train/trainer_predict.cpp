// A trainer's predictions: samples go through a sweep in stretches of whole batches, whose bytes it
// owns, so that one program does for any samples.
#include "src/base/refuse.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace arenite::train {
namespace {

constexpr const char* entry = "predict";

std::int64_t row_bytes(DType type, const Shape& shape) {
  return shape.elements() / shape[0] * size_of(type);
}

std::int64_t row_bytes(const Column& column) { return row_bytes(column.type, column.shape); }

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
    predicting.emplace(model.inputs_of(entry), model.outputs_of(entry).front());
  }
  return predicting->second;
}

const std::vector<const Column*>& Trainer::Impl::predicted_from(const Samples& samples) {
  static_cast<void>(prediction());
  check(samples);
  chosen.clear();
  for (const Port& input : predicting->first) {
    const auto column = std::ranges::find(samples.columns, input.name, &Column::input);
    if (column == samples.columns.end()) {
      refuse("samples without a column '" + input.name + "'",
             "one for each input that predictions depend on");
    }
    chosen.push_back(&*column);
  }
  return chosen;
}

Trainer::Impl::Stretch& Trainer::Impl::stretch_of(const std::vector<const Column*>& columns) {
  const auto is_like = [](const Column& a, const Column* b) {
    return a.input == b->input && a.type == b->type && a.scale == b->scale &&
           a.shape.with(0, 1) == b->shape.with(0, 1);
  };
  const auto known = std::ranges::find_if(stretches, [&](const Stretch& stretch) {
    return std::ranges::equal(stretch.samples.columns, columns, is_like);
  });
  if (known != stretches.end()) return *known;

  // So many batches that beginning a sweep costs little beside them, and that they stay in caches.
  constexpr std::int64_t enough_bytes = std::int64_t{1} << 20, most_batches = 32;
  std::int64_t one = row_bytes(prediction().type, prediction().shape);
  for (const Column* const column : columns) one += row_bytes(*column);
  const std::int64_t batches = std::clamp<std::int64_t>(
                         enough_bytes / std::max<std::int64_t>(one * options.batch, 1), 1,
                         most_batches),
                     rows = batches * options.batch;
  Stretch made;
  for (const Column* const column : columns) {
    auto& bytes = made.bytes.emplace_back(static_cast<std::size_t>(rows * row_bytes(*column)));
    Column& own = made.samples.columns.emplace_back(*column);
    own.data = bytes.data();
    own.shape = own.shape.with(0, rows);
  }
  sweeps.prepare({{entry, made.samples, true}});
  restore(saved);
  return stretches.emplace_back(std::move(made));
}

void Trainer::Impl::predict(const Samples& samples, std::span<std::byte> into) {
  const std::vector<const Column*>& columns = predicted_from(samples);
  const Port& what = prediction();
  const std::int64_t count = samples.count();
  const auto one = static_cast<std::size_t>(row_bytes(what.type, what.shape));
  if (into.size() != one * static_cast<std::size_t>(count)) {
    refuse(std::to_string(into.size()) + " bytes for predictions of " + std::to_string(count) +
               " samples",
           std::to_string(one * static_cast<std::size_t>(count)));
  }
  if (running) refuse("predictions in the middle of a sweep", "one behind the other");
  Stretch& stretch = stretch_of(columns);
  Swept& of = *sweeps.find(entry, stretch.samples);
  if (options.optimizer.averaging && has_no_means())
    compile::begin_averages(*sweeps.set(), of.whole->spec().graph);
  const std::int64_t most = stretch.samples.count();
  for (std::int64_t first = 0; first < count; first += most) {
    const std::int64_t rows = std::min(most, count - first);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::int64_t bytes = row_bytes(*columns[i]);
      std::memcpy(stretch.bytes[i].data(),
                  static_cast<const std::byte*>(columns[i]->data) + first * bytes,
                  static_cast<std::size_t>(rows * bytes));
    }
    // What is left of the last batch are rows of a stretch before, or zeros.
    std::int64_t done = 0;
    run(of, done, {.steps = static_cast<long>((rows + of.batch - 1) / of.batch)});
    std::ranges::copy(sweeps.rows_of(of).first(one * static_cast<std::size_t>(rows)),
                      into.begin() + first * static_cast<std::int64_t>(one));
  }
}

bool Trainer::has_predictions() const noexcept { return !impl_->network.graph.entries.empty(); }
Shape Trainer::shape_of_predictions(std::int64_t count) const {
  return impl_->prediction().shape.with(0, count);
}
DType Trainer::type_of_predictions() const { return impl_->prediction().type; }

void Trainer::predict(const Samples& samples, std::span<std::byte> into) {
  impl_->predict(samples, into);
}

Predictions Trainer::predict(const Samples& samples) {
  Predictions made{.type = type_of_predictions(), .shape = shape_of_predictions(samples.count())};
  made.bytes.resize(static_cast<std::size_t>(made.shape.elements() * size_of(made.type)));
  predict(samples, made.bytes);
  return made;
}

}  // namespace arenite::train
