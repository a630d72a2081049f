#include "src/cli/doctor/checks.hpp"
#include "src/cli/doctor/surroundings.hpp"

#include <arenite/error.hpp>
#include <arenite/graph/text.hpp>
#include <arenite/model.hpp>
#include <arenite/operators.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace arenite::cli::doctor {
namespace {

constexpr std::size_t rows = 8, inner = 16, columns = 4;
constexpr const char* script = R"(
  $1 = InputTensor(x, float32, [8, 16]);
  $2 = ConstantTensor(weight, float32, [16, 4]);
  $3 = ConstantTensor(bias, float32, [4]);
  $4 = dense($1, $2, $3);
  $5 = relu($4);
  result = $5;)";

template <std::size_t size>
std::array<float, size> whole_numbers(std::size_t period, float first) {
  std::array<float, size> numbers;
  for (std::size_t i = 0; i < size; ++i) numbers[i] = static_cast<float>(i % period) + first;
  return numbers;
}

NamedBytes named(std::string_view name, std::span<const float> values) {
  return {
      .name = name, .data = values.data(), .bytes = static_cast<std::int64_t>(values.size_bytes())};
}

}  // namespace

std::string run_small_graph(runtime::Session& session) {
  const auto x = whole_numbers<rows * inner>(7, -3);
  const auto weight = whole_numbers<inner * columns>(5, -2);
  const auto bias = whole_numbers<columns>(3, -1);
  std::array<float, rows * columns> got, right;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      float sum = bias[column];
      for (std::size_t k = 0; k < inner; ++k)
        sum += x[row * inner + k] * weight[k * columns + column];
      right[row * columns + column] = std::max(sum, 0.0f);
    }
  }
  const std::array constants{named("weight", weight), named("bias", bias)};
  Model model(session, graph::parse(script, operators()), constants);
  const std::array inputs{named("x", x)};
  void* out = got.data();
  for (int evaluation = 0; evaluation < 3; ++evaluation) {
    got.fill(-1);
    model.evaluate(inputs, {&out, 1});
    if (std::memcmp(got.data(), right.data(), sizeof(right)) == 0) continue;
    const auto at = std::ranges::mismatch(got, right).in1 - got.begin();
    return fmt::format("element {} of the result is {}; expected {}", at,
                       got[static_cast<std::size_t>(at)], right[static_cast<std::size_t>(at)]);
  }
  return {};
}

Finding check_run() {
  Finding finding;
  const auto begin = std::chrono::steady_clock::now();
  try {
    runtime::Session session;
    const std::string wrong = run_small_graph(session);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    finding.says = fmt::format("a graph ran on {}", session.description());
    finding.facts = {
        {"workers", session.workers()}, {"seconds", took.count()}, {"right", wrong.empty()}};
    if (wrong.empty()) {
      finding.says += ": right to the bit";
    } else {
      finding.fails(wrong, "kernels are not right here: see the check cpu, and build again");
    }
  } catch (const Error& error) {
    finding.says = "no graph can run";
    finding.fails(for_a_check(error));
  }
  return finding;
}

}  // namespace arenite::cli::doctor
