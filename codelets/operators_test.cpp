// What must hold for all built-in operators together.
#include <arenite/graph/target.hpp>
#include <arenite/operators.hpp>

#include <gtest/gtest.h>

namespace arenite::codelets::testing {
namespace {

/// Without a rate of its own a kernel's tasks are sized by a guess.
TEST(Operators, KernelsOfOperatorsWithACostHaveARate) {
  const auto& rates = graph::default_target().kernels;
  std::size_t seen = 0;
  for (const std::string& op : operators().names()) {
    if (!operators().at(op)->cost) continue;
    for (const runtime::Kernel& kernel : kernels().find(op)) {
      if (kernel.device != DeviceKind::cpu) continue;
      ++seen;
      EXPECT_TRUE(rates.contains(op + "/" + kernel.name)) << op << "/" << kernel.name;
    }
  }
  EXPECT_GT(seen, 30u);
}

/// And no rate is of a kernel that is gone.
TEST(Operators, RatesAreOfKernels) {
  for (const auto& [name, rate] : graph::default_target().kernels) {
    const std::size_t slash = name.find('/');
    EXPECT_NO_THROW(kernels().at(name.substr(0, slash), name.substr(slash + 1), DeviceKind::cpu));
  }
}

}  // namespace
}  // namespace arenite::codelets::testing
