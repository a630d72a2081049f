// What `arenite plan` plans, whatever it was read from.
#pragma once

#include <arenite/plan/plan.hpp>
#include <arenite/plan/problem.hpp>

#include "src/base/json.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace arenite::cli {

struct PlanArguments;

class PlanSubject {
 public:
  virtual ~PlanSubject() = default;

  virtual const plan::Problem& problem() const = 0;
  /// Called once.
  virtual plan::Plan solve() = 0;

  virtual std::string csv(const plan::Plan& plan) const = 0;
  /// A line above the plan's summary, or none.
  virtual std::string title() const = 0;
  /// "table", "script" or "model".
  virtual std::string_view kind() const noexcept = 0;
  /// Lines below it, or none, and an object whose fields its JSON gets; after solve().
  virtual std::string report() const = 0;
  virtual Json fields() const = 0;
};

/// A table of buffers. These borrow the arguments, and throw Error on what they cannot plan.
std::unique_ptr<PlanSubject> table_subject(std::string text, const PlanArguments& arguments);
/// A graph script, as a model of it is compiled.
std::unique_ptr<PlanSubject> script_subject(const std::string& text,
                                            const PlanArguments& arguments);
/// A step of a named model.
std::unique_ptr<PlanSubject> model_subject(const PlanArguments& arguments);

}  // namespace arenite::cli
