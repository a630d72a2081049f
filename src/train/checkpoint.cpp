#include "src/train/checkpoint.hpp"

#include <spdlog/fmt/fmt.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <span>

#include "src/base/refuse.hpp"
#include "src/plan/json_field.hpp"

namespace arenite::train {
namespace {

constexpr const char* identity_name = "arenite.identity";
constexpr const char* numerics_name = "arenite.numerics";
constexpr const char* place_name = "arenite.place";

constexpr const char* steps_name = "steps";
constexpr const char* drawn_name = "position";
constexpr const char* epochs_name = "epochs";
constexpr const char* done_name = "done";
constexpr const char* seconds_name = "seconds";
constexpr const char* sums_name = "sums";
constexpr const char* best_name = "best_loss";
constexpr const char* validations_name = "validations";
constexpr const char* since_name = "since_best";

std::uint32_t sum_of(std::span<const std::uint8_t> bytes, std::uint32_t before) {
  if (bytes.empty()) return before;
  return static_cast<std::uint32_t>(crc32_z(before, bytes.data(), bytes.size()));
}

Json json_of(const RunPlace& place) {
  return {{steps_name, place.steps},     {drawn_name, place.drawn},
          {epochs_name, place.epochs},   {done_name, place.done},
          {seconds_name, place.seconds}, {sums_name, place.sums},
          {best_name, place.best_loss},  {validations_name, place.validations},
          {since_name, place.since}};
}

class Said {
 public:
  Said(const io::TensorFile& file, const char* name, const std::string& where)
      : where_(where + ", " + name), json_(parsed(file, name, where)) {}

  plan::Field field() const { return {json_, "", where_}; }
  Facts facts() const {
    Facts facts;
    for (const auto& [name, value] : json_.members())
      facts.emplace_back(name, plan::Field(value, name, where_).text());
    return facts;
  }

 private:
  Json parsed(const io::TensorFile& file, const char* name, const std::string& where) const {
    const std::string* const text = file.said(name);
    if (text == nullptr) {
      refuse("a file that says nothing of a run ('" + std::string(name) + "')",
             "one that training has saved", where, "weights alone: --resume-weights");
    }
    Json json = plan::parse_document(*text, where_, 2, "what a run says of itself");
    if (json.get<std::vector<Json::Member>>() == nullptr)
      plan::Field(json, "", where_).wrong("no object", "one");
    return json;
  }

  std::string where_;
  Json json_;
};

/// One that is none was written as null.
double number_of(const plan::Field& field) {
  const Json& value = field.value();
  if (value.get<std::nullptr_t>() != nullptr) return std::numeric_limits<double>::quiet_NaN();
  if (!value.is_number()) field.wrong(value.described(), "a number");
  return value.number();
}

const std::string* find(const Facts& facts, std::string_view name) {
  const auto found = std::ranges::find(facts, name, &Facts::value_type::first);
  return found == facts.end() ? nullptr : &found->second;
}

}  // namespace

Facts facts_of(const Epochs& epochs) {
  std::uint32_t sum = 0;
  std::string text = std::to_string(epochs.samples->count()) + " samples";
  const char* before = ": ";
  for (const Column& column : epochs.samples->columns) {
    sum = sum_of(
        {static_cast<const std::uint8_t*>(column.data), static_cast<std::size_t>(column.bytes())},
        sum);
    text += fmt::format("{}{} {} {}", std::exchange(before, ", "), column.input,
                        to_string(column.type), to_string(Shape(column.shape.dims().subspan(1))));
    if (column.scale != 1) text += fmt::format(" times {:.9g}", column.scale);
  }
  return {{"data", text + fmt::format(", CRC-32 {:08x}", sum)},
          {"order", epochs.shuffle ? "shuffled with seed " + std::to_string(epochs.seed)
                                   : std::string("as they are")}};
}

Json json_of(const Facts& facts) {
  Json object = Json::object();
  for (const auto& [name, text] : facts) object[name] = text;
  return object;
}

io::Metadata metadata_of(const Checkpoint& checkpoint) {
  return {{identity_name, json_of(checkpoint.identity).dump()},
          {numerics_name, json_of(checkpoint.numerics).dump()},
          {place_name, json_of(checkpoint.place).dump()}};
}

bool is_checkpoint(const io::TensorFile& file) { return file.said(place_name) != nullptr; }

Checkpoint checkpoint_of(const io::TensorFile& file, const std::string& where) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  constexpr std::int64_t most_epochs = std::numeric_limits<int>::max() - 1;
  const Said place(file, place_name, where);
  const plan::Field said = place.field();
  const plan::Field sums = said[sums_name];
  std::vector<double> numbers;
  for (std::size_t i = 0; i < sums.size(); ++i) numbers.push_back(number_of(sums[i]));
  return {.identity = Said(file, identity_name, where).facts(),
          .numerics = Said(file, numerics_name, where).facts(),
          .place = {.steps = static_cast<long>(said[steps_name].integer(0, most)),
                    .drawn = said[drawn_name].integer(0, most),
                    .epochs = static_cast<int>(said[epochs_name].integer(0, most_epochs)),
                    .done = said[done_name].integer(0, most),
                    .seconds = said[seconds_name].duration(),
                    .sums = std::move(numbers),
                    .best_loss = number_of(said[best_name]),
                    .validations = static_cast<int>(said[validations_name].integer(0, most_epochs)),
                    .since = static_cast<int>(said[since_name].integer(0, most_epochs))}};
}

void expect_same(const Facts& ours, const Facts& theirs, const std::string& where) {
  for (const auto& [name, text] : ours) {
    const std::string* const other = find(theirs, name);
    if (other != nullptr && *other == text) continue;
    refuse(name + ": " + text,
           (other == nullptr ? "nothing" : *other) + ", as in the run to go on with", where,
           "other numbers: a new run, from these weights alone: --resume-weights, take_weights, "
           "load_weights");
  }
}

std::string differences(const Facts& ours, const Facts& theirs) {
  std::string text;
  for (const auto& [name, now] : ours) {
    const std::string* const then = find(theirs, name);
    if (then != nullptr && *then == now) continue;
    text += (text.empty() ? "" : ", ") + name + " " + now + " for " +
            (then == nullptr ? "nothing" : *then);
  }
  return text;
}

}  // namespace arenite::train
