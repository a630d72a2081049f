#include <arenite/train/saved_run.hpp>
#include <arenite/train/script.hpp>

#include "src/base/json.hpp"
#include "src/base/refuse.hpp"
#include "src/io/safetensors.hpp"
#include "src/plan/json_field.hpp"
#include "src/runtime/compute_names.hpp"
#include "src/train/checkpoint.hpp"
#include "src/train/trainer_impl.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace arenite::train {
namespace {

const std::string& fact(const Facts& facts, const char* name, const std::string& where) {
  const auto found = std::ranges::find(facts, name, &Facts::value_type::first);
  if (found == facts.end()) refuse("a run that does not say its " + std::string(name), "it", where);
  return found->second;
}

std::uint64_t seed_of(const std::string& said, const std::string& where) {
  std::uint64_t seed = 0;
  const auto [end, wrong] = std::from_chars(said.data(), said.data() + said.size(), seed);
  if (wrong != std::errc() || end != said.data() + said.size())
    refuse("a seed '" + said + "'", "a number below 2^64", where);
  return seed;
}

runtime::Compute compute_of(const std::string& said, const std::string& where) {
  if (const auto compute = runtime::compute_named(said)) return *compute;
  refuse("products '" + said + "'", std::string(runtime::compute_names), where);
}

}  // namespace

TrainerOptions options_on(const SavedRun& run, const runtime::Session& session) {
  TrainerOptions options = run.options;
  if (uses_cpu(session) && options.compute == runtime::Compute::tfloat32)
    options.compute = runtime::Compute::float32;
  return options;
}

SavedRun saved_run(const std::filesystem::path& path) {
  const std::string where = path.string();
  const io::TensorFile file(path);
  const Checkpoint checkpoint = checkpoint_of(file, where);
  const std::string* const text = file.said(script_name);
  if (text == nullptr) {
    refuse("a run without its network", "one whose batches are all built alike", where,
           "the program that trained it can go on with it");
  }
  Script script = read_script(*text, where);
  const std::string* const asked = file.said(asked_name);
  const Json json =
      plan::parse_document(asked ? *asked : "{}", where, 1, "what was asked of the compiler");
  const plan::Field said(json, asked_name, where);
  std::optional<float> range;
  if (const Json& given = said["range"].value(); given.is_number())
    range = static_cast<float>(given.number());
  constexpr std::int64_t most_lanes = 64;
  const std::string seed = fact(checkpoint.identity, "seed", where),
                    products = fact(checkpoint.numerics, "products", where);
  SavedRun run{.build = std::move(script.build),
               .options = {.batch = script.most,
                           .optimizer = std::move(script.optimizer),
                           .init = {.seed = seed_of(seed, where), .range = range},
                           .shards = static_cast<int>(said["shards"].integer(0, most_lanes)),
                           .lanes = static_cast<int>(said["lanes"].integer(0, most_lanes)),
                           .fuse = said["fuse"].boolean(),
                           .compute = compute_of(products, where)},
               .epochs = checkpoint.place.epochs,
               .steps = checkpoint.place.steps,
               .said = {}};
  for (const auto& [name, text_of] : file.metadata()) {
    if (!name.starts_with("arenite.")) run.said.emplace_back(name, text_of);
  }
  return run;
}

}  // namespace arenite::train
