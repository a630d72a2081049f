#include <arenite/train/trainer.hpp>

#include "src/base/nearest.hpp"
#include "src/base/refuse.hpp"
#include "src/base/sha256.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

namespace arenite::train {
double Metrics::operator[](std::string_view name) const {
  std::string known;
  for (std::size_t i = 0; names && i < names->size(); ++i) {
    if ((*names)[i] == name) return values[i];
    known += (known.empty() ? "" : ", ") + (*names)[i];
  }
  refuse("no metric '" + std::string(name) + "'", known.empty() ? "none" : known);
}

std::ostream& operator<<(std::ostream& out, const PlanReport& report) {
  return out << report.text_;
}

namespace {

/// Several batches are one in shards.
TrainerOptions accumulated(TrainerOptions options) {
  constexpr std::int64_t most_samples = 1 << 20, most = 64;
  if (options.batch < 1 || options.batch > most_samples)
    refuse("a batch of " + std::to_string(options.batch), "1 to " + std::to_string(most_samples));
  if (options.init.range && !(std::isfinite(*options.init.range) && *options.init.range > 0)) {
    refuse("an initial range of " + std::to_string(*options.init.range), "a finite number above 0");
  }
  if (options.accumulate == 1) return options;
  const std::int64_t shards = options.accumulate * std::max(options.shards, 1);
  if (options.accumulate < 1 || options.accumulate > most || shards > most) {
    refuse("gradients of " + std::to_string(options.accumulate) + " batches in " +
               std::to_string(std::max(options.shards, 1)) + " shards added up",
           "1 to " + std::to_string(most) + " shards in all");
  }
  options.batch *= options.accumulate;
  options.shards = static_cast<int>(shards);
  return options;
}

ModelOptions model_options(const TrainerOptions& options) {
  return {.name = "network",
          .target = options.target,
          .compute = options.compute,
          .shards = options.shards,
          .lanes = options.lanes,
          .shards_at_once = options.shards_at_once,
          .seed = options.init.seed,
          .layout = options.layout,
          .fuse = options.fuse,
          .kernels = options.kernels,
          .cuda_graphs = options.cuda_graphs,
          .resident_data = options.resident_data};
}

/// A batch of samples whose bytes nobody looks at.
Samples samples_like(const graph::Graph& graph) {
  Samples samples;
  for (const graph::ValueId id : graph.declared(graph::StorageClass::input)) {
    const graph::Value& input = graph[id];
    samples.columns.push_back({input.name, nullptr, input.type, input.shape});
  }
  return samples;
}

void refuse_tfloat32_on_cpus(const runtime::Session& session, runtime::Compute compute) {
  if (!uses_cpu(session) || compute != runtime::Compute::tfloat32) return;
  refuse("products in tfloat32 on the CPU", "float32 or bfloat16", {},
         "TF32 is what tensor cores of GPUs multiply");
}

Model opened(runtime::Session& session, const Build& build, const Network& network,
             const TrainerOptions& options) {
  refuse_tfloat32_on_cpus(session, options.compute);
  const auto at = [build, options, metrics = network.metrics](std::string_view entry,
                                                              const graph::SizeValues& sizes) {
    const std::int64_t batch = sizes.empty() ? options.batch : sizes.at(batch_size);
    Network made =
        network_of(build, options.optimizer, network_options(options, batch, entry == "train"));
    expect_same(metrics, made.metrics, batch);
    return std::move(made.graph);
  };
  return Sweeps::opened(session, network.graph, at, model_options(options), batch_size,
                        {"train", samples_like(network.graph)});
}

}  // namespace

bool uses_cpu(const runtime::Session& session) {
  return std::ranges::any_of(session.spaces(),
                             [](const Space& space) { return space.device == DeviceKind::cpu; });
}

Trainer::Impl::Impl(runtime::Session& session, Build b, std::optional<Shape> i, TrainerOptions o)
    : build(std::move(b)),
      image(i),
      options(accumulated(std::move(o))),
      network(network_of(build, options.optimizer, network_options(options, options.batch, true))),
      model(opened(session, build, network, options)),
      sweeps(model),
      rate(static_cast<float>(options.optimizer.learning_rate)) {
  std::vector<std::string> names;
  for (const OutputMetric& metric : network.metrics) names.push_back(metric.name);
  for (const graph::ValueId id : network.graph.outputs)
    kept_sums += static_cast<std::size_t>(network.graph[id].shape.elements());
  inputs = ports_of(network.graph, graph::StorageClass::input);
  metric_names = std::make_shared<const std::vector<std::string>>(std::move(names));
  place.sums.reserve(kept_sums);
  identity = known_facts();
}

Trainer::Impl::Splits::iterator Trainer::Impl::find(const data::Split& split) {
  return std::ranges::find_if(splits, [&](const auto& known) {
    const data::Split& one = known.first;
    return one.images.data() == split.images.data() && one.labels.data() == split.labels.data() &&
           one.images.size() == split.images.size() && one.labels.size() == split.labels.size() &&
           one.count == split.count && one.shape() == split.shape();
  });
}

const Samples& Trainer::Impl::samples_of(const data::Split& split, bool training) {
  const std::string_view kind = training ? "training" : "test";
  auto found = find(split);
  if (found == splits.end()) {
    const std::string images = std::string(kind) + " images";
    if (!image)
      refuse(images, "samples", {}, "data::samples_of makes those of inputs 'images' and 'labels'");
    if (split.shape() != *image) {
      refuse(images + " of shape " + to_string(split.shape()),
             to_string(*image) + ", as the model was built for");
    }
    splits.emplace_back(split, data::samples_of(split, kind));
    found = std::prev(splits.end());
  }
  return found->second;
}

const Samples* Trainer::Impl::samples_to_validate(const Validation& given) {
  return given.split ? &samples_of(*given.split, false) : given.samples;
}

void Trainer::Impl::prepare(const Samples* train, const Samples* test, Weights weights) {
  if (running) {
    refuse("a trainer asked for another sweep in the middle of one", "one behind the other");
  }
  const bool new_train = train && !sweeps.find("train", *train),
             new_test = test && !sweeps.find(evaluation(weights), *test);
  if (!new_train && !new_test) return;  // and allocate nothing: epochs come here
  refuse_while_profiled();
  std::vector<Sweeps::Wanted> wanted;
  if (new_train) wanted.push_back({"train", *train});
  if (new_test) wanted.push_back({evaluation(weights), *test});
  sweeps.prepare(wanted);
  restore(saved);
}

void Trainer::Impl::release(const Samples& samples) {
  const bool goes =
      going && (*going->train == samples || (going->validation && *going->validation == samples));
  if (running || (fitting && goes))
    refuse("samples let go of in the middle of a fit", "calls between them");
  if (goes) {
    end_profile();
    going.reset();
  }
  if (epochs && *epochs->samples == samples) {
    epochs.reset();
    of_epochs.clear();
    place.begin_epoch();
  }
  if (!sweeps.has(samples)) return;
  State kept_now;
  for (const Kept& one : kept()) {
    if (!sweeps.has_state(one.port.cls, one.own)) continue;
    const auto bytes = state_of(one.port.cls, one.own);
    kept_now[{one.port.cls, one.own}].assign(bytes.begin(), bytes.end());
  }
  sweeps.release(samples);
  put(std::move(kept_now));
}

void Trainer::Impl::refuse_while_profiled() const {
  if (going && going->profiles)
    refuse("new samples while a profile is under way", "them before, or behind it");
}

Trainer::Trainer(runtime::Session& session, nn::Layer model, Shape image, TrainerOptions options)
    : impl_(std::make_unique<Impl>(session, classify(std::move(model), image, options.loss), image,
                                   std::move(options))) {}
Trainer::Trainer(runtime::Session& session, Build build, TrainerOptions options)
    : impl_(std::make_unique<Impl>(session, std::move(build), std::nullopt, std::move(options))) {}
Trainer::~Trainer() = default;

void Trainer::prepare(const data::Split* train, const data::Split* test) {
  impl_->prepare(train ? &impl_->samples_of(*train, true) : nullptr,
                 test ? &impl_->samples_of(*test, false) : nullptr);
}

void Trainer::prepare(const Samples* train, const Samples* test) { impl_->prepare(train, test); }

void Trainer::release(const Samples& samples) { impl_->release(samples); }
void Trainer::release(const data::Split& split) {
  const auto known = impl_->find(split);
  if (known == impl_->splits.end()) return;
  impl_->release(known->second);
  impl_->splits.erase(known);
}

void Trainer::begin(const data::Split& train, const FitOptions& options) {
  begin(impl_->samples_of(train, true), options);
}

void Trainer::begin(const Samples& train, const FitOptions& options) {
  impl_->begin(train, impl_->samples_to_validate(options.validation), options);
}

Event Trainer::advance(const Advance& far) {
  if (far.steps < 0 || !(far.seconds >= 0)) {
    refuse("an advance by " + std::to_string(far.steps) + " steps or " +
               std::to_string(far.seconds) + " seconds",
           "numbers of at least 0");
  }
  if (impl_->fitting) refuse("an advance in a callback of a fit", "one behind the other");
  return impl_->advance({.steps = far.steps, .seconds = far.seconds});
}

EpochReport Trainer::fit(const data::Split& train, const FitOptions& options) {
  return fit(impl_->samples_of(train, true), options);
}

EpochReport Trainer::fit(const Samples& train, const FitOptions& options) {
  return impl_->fit(train, impl_->samples_to_validate(options.validation), options);
}

Metrics Trainer::evaluate(const data::Split& test, Weights weights) {
  return impl_->evaluate(impl_->samples_of(test, false), weights);
}
Metrics Trainer::evaluate(const Samples& test, Weights weights) {
  return impl_->evaluate(test, weights);
}

PlanReport Trainer::plan() const {
  std::ostringstream out;
  if (const Swept* const training = impl_->training()) {
    impl_->sweeps.set()->print_table(out, training->name);
  } else {
    runtime::print_plan(out, impl_->sweeps.preview().spec);
  }
  return PlanReport(out.str());
}

std::vector<runtime::BlockUse> Trainer::blocks() const {
  const runtime::ProgramSet* const set = impl_->sweeps.set();
  return set ? set->block_uses() : std::vector<runtime::BlockUse>();
}

void Trainer::explain(std::ostream& out) const {
  out << "passes of a training step:\n" << impl_->sweeps.report(impl_->training());
  if (impl_->sweeps.set()) impl_->sweeps.set()->explain(out);
}

const std::vector<std::string>& Trainer::untrained() const noexcept {
  return impl_->sweeps.preview().untrained;
}
const std::vector<Port>& Trainer::inputs() const noexcept { return impl_->inputs; }
const std::vector<std::string>& Trainer::metrics() const noexcept { return *impl_->metric_names; }
std::int64_t Trainer::batch() const noexcept { return impl_->options.batch; }
const plan::StepPlan& Trainer::step_plan() const { return impl_->spec().plan; }
int Trainer::shards() const noexcept { return impl_->cut().shards; }
int Trainer::lanes() const noexcept { return impl_->cut().lanes; }
int Trainer::shards_at_once() const noexcept {
  return impl_->training() ? impl_->training()->at_once : impl_->sweeps.preview().at_once;
}
const std::string& Trainer::undivided() const noexcept {
  return impl_->training() ? impl_->training()->undivided
                           : impl_->sweeps.preview().report.undivided;
}
std::size_t Trainer::chosen_kernels() const {
  return impl_->options.kernels.taken_by(impl_->spec().graph, impl_->options.compute);
}
long Trainer::steps() const noexcept { return impl_->place.steps; }
StepCosts Trainer::costs() const noexcept { return impl_->meter.costs(); }

std::vector<Trainer::NamedParameter> Trainer::parameters() {
  std::vector<NamedParameter> all;
  const graph::Graph& graph = impl_->network.graph;
  for (const graph::ValueId id : graph.declared(graph::StorageClass::parameter)) {
    const graph::Value& value = graph[id];
    const auto bytes = impl_->state_of(graph::StorageClass::parameter, value.name);
    all.push_back(
        {.name = value.name,
         .shape = value.shape,
         .values = {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)}});
  }
  return all;
}

std::string Trainer::weights_sha256() {
  Sha256 hash;
  for (const NamedParameter& parameter : parameters()) {
    const std::string head = parameter.name + to_string(parameter.shape);
    hash.update(std::as_bytes(std::span(head)));
    hash.update(std::as_bytes(parameter.values));
  }
  return hash.hex();
}

std::vector<StatePort> Trainer::states() const {
  std::vector<StatePort> all;
  for (Kept& kept : impl_->kept()) all.push_back(std::move(kept.port));
  return all;
}

Kept Trainer::Impl::kept(std::string_view name) const {
  Nearest nearest(name);
  for (Kept& one : kept()) {
    if (one.port.name == name) return std::move(one);
    nearest.consider(one.port.name);
  }
  refuse("no state '" + std::string(name) + "'", "one that training keeps", {}, nearest.hint());
}

std::span<const std::byte> Trainer::state(std::string_view name) {
  const Kept kept = impl_->kept(name);
  return impl_->state_of(kept.port.cls, kept.own);
}

void Trainer::set_state(std::string_view name, std::span<const std::byte> bytes) {
  const Kept kept = impl_->kept(name);
  if (std::ssize(bytes) != kept.port.bytes()) {
    refuse(std::to_string(bytes.size()) + " bytes of state '" + std::string(name) + "'",
           std::to_string(kept.port.bytes()));
  }
  if (kept.own == graph::learning_rate_name && kept.port.cls == graph::StorageClass::buffer) {
    float rate = 0;
    std::memcpy(&rate, bytes.data(), sizeof rate);
    graph::check_learning_rate(rate);
  }
  impl_->set(kept.port.cls, kept.own, bytes);
}

void Trainer::Impl::set(graph::StorageClass cls, const std::string& name,
                        std::span<const std::byte> bytes) {
  if (running) refuse("a state set in the middle of a sweep", "calls between them");
  State one;
  one[{cls, name}].assign(bytes.begin(), bytes.end());
  put(std::move(one));
}

float Trainer::learning_rate() { return impl_->rate; }

void Trainer::set_learning_rate(float learning_rate) {
  graph::check_learning_rate(learning_rate);
  impl_->set(graph::StorageClass::buffer, graph::learning_rate_name,
             std::as_bytes(std::span(&learning_rate, 1)));
}

}  // namespace arenite::train
