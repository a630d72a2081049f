#include "tests/reference/operator_cases.hpp"

#include <arenite/operators.hpp>

#include "tests/reference/differences.hpp"

#include <algorithm>
#include <utility>

namespace arenite::reference {
namespace {

using List = std::vector<std::int64_t>;

std::vector<OperatorCase> convolutions() {
  // Every attribute by itself, then together and unequal for rows and columns.
  const CaseOperand x{{2, 7, 6, 3}}, weight{{3, 2, 3, 4}}, bias{{4}}, square{{3, 3, 9, 6}};
  const graph::Attributes stride{{"stride", List{2, 3}}}, padding{{"padding", List{2, 1}}},
      dilation{{"dilation", List{2, 3}}},
      all{{"stride", List{3, 2}}, {"padding", List{1, 2}}, {"dilation", List{2, 1}}};
  return {{"conv2d", {x, weight, bias}, {}},
          {"conv2d", {x, weight}, {}},
          {"conv2d", {x, weight, bias}, stride},
          {"conv2d", {x, weight, bias}, padding},
          {"conv2d", {x, weight, bias}, dilation},
          {"conv2d", {x, weight, bias}, all},
          {"conv2d", {x, {{1, 1, 3, 17}}, {{17}}}, {}},
          {"conv2d", {{{2, 7, 6, 9}}, square, {{6}}}, {}},
          {"conv2d", {{{2, 7, 6, 9}}, square}, padding},
          {"conv2d_relu", {{{3, 6, 6, 9}}, square, {{6}}}, {{"padding", List{1, 1}}}},
          {"conv2d_relu", {x, weight, bias}, all},
          {"conv2d_relu", {x, weight}, padding},
          {"conv2d_grad_input_relu",
           {{{2, 7, 7, 4}}, weight, {.shape = x.shape, .rectified = true}},
           {{"padding", List{1, 1}}, {"size", List{7, 6}}}},
          {"conv2d_grad_input_relu",
           {{{2, 7, 6, 6}}, square, {.shape = {2, 7, 6, 9}, .rectified = true}},
           {{"padding", List{1, 1}}, {"size", List{7, 6}}}}};
}

std::vector<OperatorCase> fused_convolutions() {
  const std::string op = "conv2d_relu_max_pool2d";
  const CaseOperand x{{2, 8, 9, 3}}, weight{{3, 2, 3, 4}}, bias{{4}}, square{{3, 3, 3, 5}};
  return {{op, {x, weight, bias}, {}},
          {op, {x, square, {{5}}}, {}},
          {op, {x, square}, {{"padding", List{1, 1}}}},
          {op, {x, square}, {{"padding", List{2, 0}}}},
          {op, {x, square}, {{"padding", List{1, 2}}}},
          {op, {x, weight}, {{"padding", List{1, 1}}}},
          {op, {x, weight, bias}, {{"pool", List{3, 2}}, {"padding", List{2, 0}}}},
          {op, {x, weight, bias}, {{"stride", List{2, 1}}, {"pool", List{1, 3}}}},
          {op, {x, weight, bias}, {{"dilation", List{2, 3}}, {"padding", List{1, 2}}}},
          {op, {{{2, 6, 6, 1}}, {{3, 3, 1, 16}}, {{16}}}, {{"pool", List{1, 1}}}},
          {op + "_grad_input_relu",
           {{{2, 3, 4, 4}},
            {{2, 3, 4, 4}, false, DType::uint8, 0, 3},
            weight,
            {.shape = x.shape, .rectified = true}},
           {{"size", List{8, 9}}}},
          {op + "_grad_input_relu",
           {{{2, 4, 4, 5}},
            {{2, 4, 4, 5}, false, DType::uint8, 0, 3},
            square,
            {.shape = x.shape, .rectified = true}},
           {{"padding", List{1, 1}}, {"size", List{8, 9}}}}};
}

std::vector<OperatorCase> poolings() {
  const CaseOperand x{{2, 7, 8, 3}};
  // Windows side by side, overlapping, apart; padding at the edges.
  const std::vector<graph::Attributes> windows{
      {},
      {{"kernel", List{3, 2}}, {"stride", List{1, 2}}, {"padding", List{1, 1}}},
      {{"kernel", List{2, 2}}, {"stride", List{3, 4}}},
      {{"kernel", List{3, 3}}, {"padding", List{2, 1}}}};
  std::vector<OperatorCase> all;
  for (const graph::Attributes& window : windows) {
    all.push_back({"max_pool2d", {x}, window});
    for (std::int64_t counted : {0, 1}) {
      graph::Attributes attributes = window;
      attributes.set("count_padding", counted);
      all.push_back({"avg_pool2d", {x}, attributes});
    }
  }
  return all;
}

std::vector<OperatorCase> losses() {
  // Few classes and many, few rows and many: they are dealt out in other ways.
  std::vector<OperatorCase> all;
  for (const auto& [rows, classes] : {std::pair{5, 7}, std::pair{130, 16}, std::pair{1100, 3},
                                      std::pair{3, 17}, std::pair{2, 300}}) {
    const CaseOperand logits{.shape = {rows, classes}, .low = -3, .high = 3},
        labels{.shape = {rows},
               .wanted = false,
               .type = DType::int32,
               .low = 0,
               .high = static_cast<double>(classes - 1)};
    for (std::int64_t divisor : {0, 12}) {
      for (bool is_loss : {false, true})
        all.push_back({"softmax_cross_entropy", {logits, labels}, {{"divisor", divisor}}, is_loss});
    }
    // Differences by each of many logits take long.
    CaseOperand given = logits;
    given.wanted = rows * classes < 100;
    const CaseOperand weights{.shape = {rows}, .low = 0.5, .high = 3};
    all.push_back({"softmax_cross_entropy",
                   {given, labels, weights},
                   {{"divisor", std::int64_t{12}}},
                   given.wanted});
  }
  return all;
}

/// What a step has besides a network.
std::vector<OperatorCase> surroundings() {
  const CaseOperand images{{4, 3, 2, 2}, false, DType::uint8, 0, 255},
      labels{{4}, false, DType::int64, 0, 9}, order{{6}, false, DType::int32, 0, 3},
      cursor{{1}, false, DType::int64, 0, 2}, weight{{3, 5}}, rate{{1}};
  return {{"draw",
           {images, order, cursor},
           {{"count", std::int64_t{3}}, {"begin", std::int64_t{1}}, {"scale", 1.0 / 255}}},
          {"draw",
           {labels, order, cursor},
           {{"count", std::int64_t{4}}, {"type", std::string("int32")}}},
          {"accumulate", {{{3, 7}}, {{3, 7}}}, {}},
          {"accumulate", {{{7}, true, DType::float64}, {{7}, true, DType::float64}}, {}},
          {"average", {{{3, 7}}, {{3, 7}}, {{1}}}, {}},
          {"check_loss", {{{1}}, {{1}}, {{}}}, {}},
          {"assign", {{{3, 7}, false}, {{3, 7}}}, {}},
          {"identity", {{{3, 7}}}, {}},
          {"sgd", {weight, weight, rate}, {{"weight_decay", 0.1}}},
          {"sgd", {weight, weight, rate, weight}, {{"momentum", 0.9}, {"weight_decay", 0.1}}},
          {"multi_sgd", {rate, weight, {{2, 4, 3, 5}}}, {{"weight_decay", 0.1}}},
          {"multi_sgd",
           {rate, weight, weight, weight, {{7}}, {{6, 7}}, {{7}}, {{1}}, {{1}}, {{1}}},
           {{"momentum", 0.9}, {"weight_decay", 0.1}}},
          {"dense_grad_weight_sgd",
           {weight, rate, weight, {{2, 3}}, {{2, 5}}, {{4, 3}}, {{4, 5}}},
           {{"momentum", 0.9}, {"weight_decay", 0.1}}},
          {"dense_grad_weight_sgd",
           {weight, rate, weight, {{2, 9}}, {{2, 5}}},
           {{"momentum", 0.9}, {"rows", List{4, 7}}}}};
}

/// Indices are drawn so that all rows are there.
std::vector<OperatorCase> indexing() {
  const CaseOperand rows{{7, 3}}, images{{4, 3, 2, 5}}, four{{4, 3}}, one{{1, 3, 2, 5}},
      index{{1}, false, DType::int64, 0, 3}, far{{1}, false, DType::int64, -1000, 1000};
  return {{"dynamic_slice", {rows, index}, {{"rows", std::int64_t{4}}}},
          {"dynamic_slice", {images, index}, {{"rows", std::int64_t{1}}}},
          {"replace_slice", {rows, four, index}, {}},
          {"replace_slice",
           {rows, four, {{1}, false, DType::int64, 1, 1}, {{1}, false, DType::int64, 5, 5}},
           {}},
          {"replace_slice", {images, one, index}, {}},
          {"index_sum", {far, far}, {{"scale", std::int64_t{-3}}, {"offset", std::int64_t{7}}}},
          {"index_sum", {far}, {{"offset", std::int64_t{-5}}}}};
}

std::vector<OperatorCase> gather_cases() {
  const CaseOperand image{{2, 3, 3, 4}}, at{{1}, false, DType::int64, 0, 1e6};
  std::vector<OperatorCase> all{
      {"relu_grad", {image, {.shape = image.shape, .wanted = false, .rectified = true}}, {}},
      {"sum", {image, image, image}, {}},
      {"sum", {{{7}}}, {}},
      {"flatten", {image}, {}},
      {"reshape", {image}, {{"shape", List{6, -1, 2}}}},
      {"reshape", {image}, {{"shape", List{2, 9, -1}}}},
      {"reshape", {image}, {{"shape", List{-1, 36}}}},
      {"full", {}, {{"shape", List{3, 5}}, {"value", 1.5}}},
      {"dropout_in_training", {image, at}, {{"rate", 0.3}, {"key", std::int64_t{5}}}},
      {"dropout_in_training",
       {{{6, 7}, true, DType::float64}, at},
       {{"first", std::int64_t{40}}, {"rows", std::int64_t{3}}}},
      {"normalize_channels", {image, {{4}}, {{4}}, {{4}}, {{4}}}, {}},
      {"normalize_channels", {{{5, 3}}, {{3}}, {{3}}, {{3}}}, {}},
      {"normalize_channels",
       {{{5, 3}, true, DType::float64},
        {{3}, true, DType::float64},
        {{3}, true, DType::float64},
        {{3}, true, DType::float64}},
       {}},
      {"slice", {image}, {{"begin", std::int64_t{1}}, {"end", std::int64_t{2}}}},
      {"slice", {{{7, 3}}}, {{"begin", std::int64_t{2}}, {"end", std::int64_t{6}}}},
      {"dense", {{{3, 5}}, {{5, 4}}, {{4}}}, {}},
      {"dense", {{{5, 33}}, {{33, 17}}}, {}},
      {"dense", {{{3, 5}}, {{5, 4}}, {{1, 4}}}, {}},
      {"dense_relu", {{{3, 5}}, {{5, 4}}, {{4}}}, {}},
      {"dense_relu", {{{5, 33}}, {{33, 17}}}, {}},
      {"dense_grad_input", {{{3, 4}}, {{5, 4}}}, {}},
      {"dense_grad_input_relu", {{{3, 4}}, {{5, 4}}, {.shape = {3, 5}, .rectified = true}}, {}},
      // Two lanes' gradients of one weight, summed on the way.
      {"dense_grad_weight", {{{3, 5}}, {{3, 4}}, {{2, 5}}, {{2, 4}}}, {}},
      {"dense_grad_weight", {{{3, 9}}, {{3, 4}}, {{2, 9}}, {{2, 4}}}, {{"rows", List{2, 7}}}}};
  for (auto&& more : {convolutions(), fused_convolutions(), poolings(), losses(), surroundings(),
                      indexing(), elementwise_cases(), product_cases(), axis_cases(),
                      attention_cases(), optimizer_cases(operators())})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

const std::vector<OperatorCase>& operator_cases() {
  static const std::vector<OperatorCase> all = gather_cases();
  return all;
}

std::vector<std::string> uncovered(const graph::OperatorTable& table,
                                   const std::vector<OperatorCase>& cases) {
  // A gradient's own ops are covered by the rule that appends them.
  std::vector<std::string> seen;
  for (const OperatorCase& one : cases) {
    const OperatorGraph built(one, table);
    for (std::size_t i = 0; i < built.graph.op_count(); ++i)
      seen.emplace_back(built.graph[graph::OpId(i)].name());
  }
  std::vector<std::string> missing;
  for (const std::string& name : table.names()) {
    // What holds blocks computes nothing itself.
    if (table.at(name)->control != graph::Control::none) continue;
    if (table.at(name)->in_mode) continue;  // nor what is another operator in each mode
    const bool differentiable = static_cast<bool>(table.at(name)->gradient);
    const bool has_case = std::ranges::find(cases, name, &OperatorCase::op) != cases.end();
    const bool is_seen = std::ranges::find(seen, name) != seen.end();
    if (!(differentiable ? has_case : is_seen)) missing.push_back(name);
  }
  return missing;
}

OperatorGraph::OperatorGraph(const OperatorCase& what, const graph::OperatorTable& table) {
  graph::Builder builder(graph, table);
  std::vector<bool> wanted;
  for (const CaseOperand& operand : what.operands) {
    operands.push_back(builder.declare("operand" + std::to_string(operands.size()), operand.type,
                                       operand.shape, graph::StorageClass::buffer));
    wanted.push_back(operand.wanted);
  }
  const auto results = builder.add(what.op, operands, what.attributes);
  if (!results.empty()) result = results.front();
  const auto rule = table.at(what.op)->gradient;
  if (!rule) return;
  std::vector<graph::ValueId> result_gradients(results.size());
  if (!what.is_loss) {
    weights = builder.declare("weights", graph[result].type, Shape(graph[result].shape),
                              graph::StorageClass::buffer);
    result_gradients.front() = weights;
  }
  graph::GradientContext context(builder, graph[graph::Graph::body].ops.front(), result_gradients,
                                 wanted, what.is_loss ? 0 : graph::GradientContext::no_seed);
  rule(context);
  for (std::size_t i = 0; i < operands.size(); ++i)
    gradients.push_back(context.operand_gradient(i));
}

void fill(const OperatorCase& what, const OperatorGraph& op, Evaluator& evaluator,
          std::mt19937& random) {
  const auto draw = [&](graph::ValueId id, const CaseOperand& from) {
    std::uniform_real_distribution<double> real(from.low, from.high);
    std::uniform_int_distribution<int> integer(static_cast<int>(from.low),
                                               static_cast<int>(from.high));
    const bool is_real = from.type == DType::float32 || from.type == DType::float64;
    for (double& v : evaluator[id].data)
      v = is_real ? static_cast<double>(static_cast<float>(real(random))) : integer(random);
    if (!from.rectified) return;
    for (double& v : evaluator[id].data) v = std::max(v, 0.0);
  };
  for (std::size_t i = 0; i < op.operands.size(); ++i) draw(op.operands[i], what.operands[i]);
  if (op.weights) draw(op.weights, {.shape = op.graph[op.weights].shape});
}

OperatorAgreement check_gradient(const OperatorCase& what, const graph::OperatorTable& table,
                                 std::mt19937& random) {
  const OperatorGraph op(what, table);
  Evaluator evaluator(op.graph);
  fill(what, op, evaluator, random);
  evaluator.run();
  const auto loss = [&] {
    const Tensor& y = evaluator[op.result];
    if (what.is_loss) return y[0];
    double sum = 0;
    for (std::int64_t i = 0; i < y.shape.elements(); ++i) sum += evaluator[op.weights][i] * y[i];
    return sum;
  };
  OperatorAgreement all;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    if (!what.operands[i].wanted) continue;
    evaluator.run();
    const std::vector<double> gradient = evaluator[op.gradients.at(i)].data;
    for (std::int64_t e = 0; e < evaluator[op.operands[i]].shape.elements(); ++e) {
      const Direction one{{e, 1.0}};
      // Each is of order 1 and at most quadratic nearby, but for smooth ones such as the loss: h²
      // and the rounding of f, 1e-15 / h, are both below 1e-9.
      const auto slope = central_difference(evaluator, op.operands[i], one, 1e-5, loss);
      slope ? ++all.compared : ++all.kinks;
      if (slope) all.worst = std::max(all.worst, disagreement(*slope, one, gradient));
    }
  }
  return all;
}

std::string text(const OperatorCase& what) {
  std::string all = what.op;
  for (const CaseOperand& operand : what.operands) all += " " + to_string(operand.shape);
  for (const auto& [name, value] : what.attributes.items())
    all += " " + name + "=" + graph::to_string(value);
  return all + (what.is_loss ? " as the loss" : "");
}

}  // namespace arenite::reference
