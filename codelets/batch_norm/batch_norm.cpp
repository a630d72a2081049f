// batch_norm(x [N, …, C], running_mean [C], running_variance [C], weight? [C], bias? [C]; momentum,
// eps, per_shard) -> y, running_mean, running_variance: each channel less its mean, over its
// deviation, times weight, plus bias. In training mean and variance are those of the whole batch,
// whatever lanes it is cut in, and the running ones come nearer to them by `momentum`, the variance
// without the bias of a sample's; in an evaluation they are the running ones, which stay. All as
// PyTorch has it. With per_shard=1 they are those of a shard, where the batch is cut in several, as
// PyTorch's are of one process; what the running ones become is the mean of what each shard's would
// make of them, by its samples.
//
// It is made of ops: sums, what they come to, normalize_channels(x, mean, rest, factor, bias?) -> y
// of each element, (x − mean − rest) · factor + bias, and two assignments. So its gradient follows
// from theirs. Those of shards are made when the batch is cut: until then there is
// batch_norm_of_shard(x, …; momentum, eps, rows) -> y, and for mean and variance, in float64, what
// these samples of so many give to the next running ones.
#include <arenite/expr/builder.hpp>
#include <arenite/expr/text.hpp>

#include "codelets/map/map.hpp"
#include "codelets/rules.hpp"

#include <cmath>
#include <numeric>

namespace arenite::codelets {
namespace {

constexpr const char* of_shard_name = "batch_norm_of_shard";

enum Operand : std::size_t { input, running_mean, running_variance, weight, bias };

Results infer_batch_norm(const OpView& op) {
  expect_real(op, input);
  const auto& [type, shape] = std::pair{op.operand(input).type, op.operand(input).shape};
  if (shape.rank() < 2) {
    fail({.found = operand_text(op, input) + " of shape " + to_string(shape),
          .expected = "rank 2 or more, [N, ..., C]"});
  }
  const Shape channels{shape.at(-1)};
  for (std::size_t i = running_mean; i < op.operand_count(); ++i) {
    if (op.has_operand(i)) expect_value(op, i, type, channels, "the channels of 'x'");
  }
  for (const char* name : {"momentum", "eps"}) {
    const double given = op.real(name);
    if (given >= 0 && given <= 1) continue;
    fail({.found = name + ("=" + graph::to_string(given)), .expected = "a number from 0 to 1"});
  }
  if (op.attributes().has("per_shard")) {
    const std::int64_t given = op.integer("per_shard");
    if (given != 0 && given != 1)
      fail({.found = "per_shard=" + std::to_string(given), .expected = "0 or 1"});
  }
  return {{type, shape}, {type, channels}, {type, channels}};
}

Results infer_of_shard(const OpView& op) {
  Results results = infer_batch_norm(op);
  if (const std::int64_t rows = op.integer("rows"); rows < op.operand(input).shape[0]) {
    fail({.found = "rows=" + std::to_string(rows),
          .expected = "at least the " + std::to_string(op.operand(input).shape[0]) + " of 'x'"});
  }
  results[1].type = results[2].type = DType::float64;
  return results;
}

/// The ops that one is made of.
class Parts {
 public:
  /// Of the shard, or whole batch, that x is.
  explicit Parts(graph::ModeContext& context)
      : builder_(context.builder),
        operands_(context.operands),
        shape_(builder_.graph()[operands_[input]].shape),
        type_(type_of(builder_.graph()[operands_[input]].type)),
        momentum_(context.op.attributes.real("momentum")),
        eps_(context.op.attributes.real("eps")),
        keeps_(context.keeps) {
    operands_.resize(bias + 1);
  }

  std::vector<ValueId> of_running() {
    expr::Builder s, b;
    const ValueId scale =
        map(s, {operands_[running_variance]}, {rsqrt(s.operand(type_) + eps_)}).front();
    std::vector<ValueId> read{operands_[input], operands_[running_mean], factor(scale)};
    const auto x = b.operand(type_);
    const auto far = x - b.operand(type_);
    auto y = far * b.operand(type_);
    if (operands_[bias]) {
      read.push_back(operands_[bias]);
      y = y + b.operand(type_);
    }
    return {map(b, std::move(read), {y}).front(), operands_[running_mean],
            operands_[running_variance]};
  }

  std::vector<ValueId> of_batch() {
    const std::vector<ValueId> made = normalised_by_own("batch");
    const auto n = static_cast<double>(count());
    const auto next = [&](std::size_t running, ValueId found, double factor) {
      if (!keeps_[running]) return operands_[running];
      expr::Builder b;
      return assigned(running, b, {operands_[running], found}, cast(type_, moved(b, factor)));
    };
    return {made[0], next(running_mean, made[1], 1), next(running_variance, made[2], n / (n - 1))};
  }

  /// Of a batch that is yet to be cut in shards.
  std::vector<ValueId> of_shards() {
    std::vector<ValueId> made =
        builder_.add(of_shard_name, operands_,
                     {{"momentum", momentum_}, {"eps", eps_}, {"rows", std::int64_t{shape_[0]}}});
    for (const std::size_t running : {running_mean, running_variance}) {
      expr::Builder b;
      made[running] = keeps_[running] ? assigned(running, b, {made[running]},
                                                 cast(type_, b.operand(expr::Type::float64)))
                                      : operands_[running];
    }
    return made;
  }

  /// One of them, of a batch of so many samples.
  std::vector<ValueId> of_one_shard(std::int64_t rows) {
    std::vector<ValueId> made = normalised_by_own("shard");
    const auto n = static_cast<double>(count());
    const double share = static_cast<double>(shape_[0]) / static_cast<double>(rows);
    const auto part = [&](std::size_t running, ValueId found, double factor) {
      expr::Builder b;
      const auto next = moved(b, factor);
      return map(b, {operands_[running], found}, {next * share}).front();
    };
    return {made[0], part(running_mean, made[1], 1), part(running_variance, made[2], n / (n - 1))};
  }

 private:
  /// Of each channel.
  std::int64_t count() const {
    return shape_.elements() / std::max<std::int64_t>(shape_.at(-1), 1);
  }

  /// y, and the statistics that it is made with.
  std::vector<ValueId> normalised_by_own(const std::string& what) {
    if (count() < 2) {
      fail({.found = std::to_string(count()) + " of each channel in a " + what + " of training",
            .expected = "2 or more, of which there is a variance",
            .hint =
                what == "shard"
                    ? "fewer shards, or another batch size, so that the last batch has more"
                    : "another batch size, so that the last batch of an epoch has more samples"});
    }
    const auto n = static_cast<double>(count());
    const std::vector<ValueId> all = sums();
    expr::Builder b;
    const auto sum = b.operand(expr::Type::float64), squares = b.operand(expr::Type::float64);
    const auto mean = sum / n, variance = max(squares / n - mean * mean, 0);
    const auto near = cast(type_, mean);
    const auto rest = cast(type_, mean - cast(expr::Type::float64, near));
    const std::vector<ValueId> found =
        map(b, all, {mean, variance, cast(type_, rsqrt(variance + eps_)), near, rest});
    std::vector<ValueId> read{operands_[input], found[3], found[4], factor(found[2])};
    if (operands_[bias]) read.push_back(operands_[bias]);
    return {builder_.add1("normalize_channels", std::move(read)), found[0], found[1]};
  }

  std::vector<ValueId> map(expr::Builder& b, std::vector<ValueId> operands,
                           std::initializer_list<expr::Value> results) {
    return builder_.add("map", std::move(operands),
                        {{map_expression, expr::print(b.finish(results))}});
  }

  /// In double, so that lanes' add up to the batch's and a large mean leaves digits of the
  /// variance.
  std::vector<ValueId> sums() {
    expr::Builder b;
    const auto x = cast(expr::Type::float64, b.operand(type_));
    std::vector<std::int64_t> axes(static_cast<std::size_t>(shape_.rank() - 1));
    std::iota(axes.begin(), axes.end(), 0);
    return builder_.add(reduce_name, {operands_[input]},
                        {{"axes", std::move(axes)},
                         {"keep", std::int64_t{0}},
                         {map_expression, expr::print(b.finish({sum(x), sum(x * x)}))}});
  }

  /// Made for each channel first, so that there is one gradient less to be summed over all samples.
  ValueId factor(ValueId scale) {
    if (!operands_[weight]) return scale;
    expr::Builder b;
    return map(b, {scale, operands_[weight]}, {b.operand(type_) * b.operand(type_)}).front();
  }

  /// A running statistic, the first operand, nearer to that of the samples, unless that is not
  /// finite: nothing would mend it again.
  expr::Value moved(expr::Builder& b, double factor) const {
    const auto before = cast(expr::Type::float64, b.operand(type_));
    const auto now = b.operand(expr::Type::float64) * factor;
    const auto mixed = before * (1 - momentum_) + now * momentum_;
    return select(mixed - mixed == 0, mixed, before);
  }

  ValueId assigned(std::size_t running, expr::Builder& b, std::vector<ValueId> operands,
                   const expr::Value& next) {
    return builder_.add1("assign",
                         {operands_[running], map(b, std::move(operands), {next}).front()});
  }

  graph::Builder& builder_;
  std::vector<ValueId> operands_;
  const Shape shape_;
  const expr::Type type_;
  const double momentum_, eps_;
  const std::vector<bool> keeps_;  // by result: a statistic's number is that of its operand
};

std::vector<ValueId> in_mode(graph::ModeContext& context) {
  Parts parts(context);
  if (context.mode != graph::Mode::train) return parts.of_running();
  if (context.shards > 1 && context.op.attributes.integer("per_shard") != 0)
    return parts.of_shards();
  context.needs_whole_batch = true;
  return parts.of_batch();
}

std::vector<ValueId> one_shard(graph::ModeContext& context) {
  return Parts(context).of_one_shard(context.op.attributes.integer("rows"));
}

/// Of the samples alone, which have to be a shard: split_batch sees to that.
std::optional<graph::OfShare> rows_and_parts(const OpView& op, const graph::Share& share) {
  using Result = graph::OfShare::Result;
  if (!share.has_rows(input)) return std::nullopt;
  for (std::size_t i = running_mean; i < op.operand_count(); ++i) {
    if (op.has_operand(i) && !share.is_whole(i)) return std::nullopt;
  }
  return graph::OfShare{.results = {Result::rows, Result::sum, Result::sum},
                        .attributes = op.attributes()};
}

}  // namespace

void register_batch_norm(Registry& registry) {
  using graph::AttributeType;
  using graph::Renews;
  registry.add({.name = "batch_norm",
                .operands = {{"x"},
                             {.name = "running_mean", .renews = Renews::buffers},
                             {.name = "running_variance", .renews = Renews::buffers},
                             {"weight", true},
                             {"bias", true}},
                .results = {"y", "running_mean", "running_variance"},
                .attributes = {{"momentum", AttributeType::real, 0.1},
                               {"eps", AttributeType::real, 1e-5},
                               {"per_shard", AttributeType::integer, std::int64_t{0}}},
                .infer = infer_batch_norm,
                .in_mode = in_mode},
               {});
  registry.add(
      {.name = of_shard_name,
       .operands =
           {{"x"}, {"running_mean"}, {"running_variance"}, {"weight", true}, {"bias", true}},
       .results = {"y", "mean", "variance"},
       .attributes = {{"momentum", AttributeType::real, 0.1},
                      {"eps", AttributeType::real, 1e-5},
                      {"rows", AttributeType::integer}},
       .infer = infer_of_shard,
       .in_mode = one_shard,
       .of_share = rows_and_parts},
      {});
}

}  // namespace arenite::codelets
