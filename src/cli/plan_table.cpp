// Tables of buffers, as `arenite plan` reads them.
#include <arenite/error.hpp>
#include <arenite/plan/csv.hpp>
#include <arenite/plan/in_flight.hpp>
#include <arenite/plan/solve.hpp>

#include "src/cli/plan_arguments.hpp"
#include "src/cli/plan_subject.hpp"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace arenite::cli {
namespace {

/// Of a table, whose times are those of one task after another unless something else is asked for.
std::int64_t tasks_in_flight(const PlanArguments& arguments) {
  const plan::InFlight given = arguments.in_flight.value_or(plan::InFlight(1));
  if (given.is_lanes() || given.is_unlimited()) {
    fail({.found = "--in-flight " + plan::to_string(given) + " for a table",
          .expected = "a whole number of at least 1",
          .where = "'" + arguments.input + "'",
          .hint = given.is_lanes() ? "a table has one line of times and no lanes"
                                   : "with no order in time no two buffers could share bytes"});
  }
  return static_cast<std::int64_t>(given.tasks());
}

class TableSubject : public PlanSubject {
 public:
  TableSubject(std::string text, const PlanArguments& arguments)
      : text_(std::move(text)), arguments_(arguments), in_flight_(tasks_in_flight(arguments)) {
    problem_ = plan::with_tasks_in_flight(
        plan::read_csv(text_, arguments.input, arguments.alignment.value_or(1)), in_flight_);
  }

  const plan::Problem& problem() const override { return problem_; }
  plan::Plan solve() override {
    return plan::solve(problem_, {.strategy = arguments_.strategy, .effort = arguments_.effort});
  }

  /// The lifetimes are the table's own.
  std::string csv(const plan::Plan& plan) const override {
    return plan::write_csv(text_, arguments_.input, plan);
  }
  std::string title() const override { return {}; }
  std::string_view kind() const noexcept override { return "table"; }
  std::string report() const override {
    if (in_flight_ == 1) return {};
    return fmt::format("{} tasks in flight: lifetimes end {} later\n", in_flight_, in_flight_ - 1);
  }
  Json fields() const override { return {{"in_flight", in_flight_}}; }

 private:
  const std::string text_;
  const PlanArguments& arguments_;
  const std::int64_t in_flight_;
  plan::Problem problem_;
};

}  // namespace

std::unique_ptr<PlanSubject> table_subject(std::string text, const PlanArguments& arguments) {
  return std::make_unique<TableSubject>(std::move(text), arguments);
}

}  // namespace arenite::cli
