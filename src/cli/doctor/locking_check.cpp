// Pages that are locked in memory are never swapped out, and cost no step a fault.
#include "src/cli/doctor/checks.hpp"
#include "src/cli/doctor/surroundings.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>
#include <arenite/nn/nn.hpp>
#include <arenite/train/trainer.hpp>

#include <linux/capability.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace arenite::cli::doctor {
namespace {

/// Whether the limit does not count for this process.
bool may_lock_anything() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  return (data[0].effective & (1u << CAP_IPC_LOCK)) != 0;
}

std::string limit_text(rlim_t limit) {
  return limit == RLIM_INFINITY ? "unlimited" : bytes_text(limit);
}

Json limit_fact(rlim_t limit) { return limit == RLIM_INFINITY ? Json() : Json(limit); }

/// The blocks of the main example: cnn2 on images as Fashion-MNIST's, in batches of 64. Its sets
/// leave 32 and 16 images for the last batch; so do these, which are drawn in a moment.
std::vector<runtime::BlockUse> main_example() {
  runtime::Session session;
  const data::ImageData images = data::synthetic({.train = 64 + 32, .test = 64 + 16});
  train::Trainer trainer(session, nn::model("cnn2").layers, images.shape(), {});
  trainer.prepare(&images.train, &images.test);
  return trainer.blocks();
}

}  // namespace

Finding check_locking() {
  Finding finding;
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const bool privileged = may_lock_anything();
  finding.details.push_back(fmt::format(
      "limit {} (ulimit -l), at most {}{}", limit_text(limit.rlim_cur), limit_text(limit.rlim_max),
      privileged ? ", which does not bind this process (CAP_IPC_LOCK)" : ""));
  finding.facts = {{"limit", limit_fact(limit.rlim_cur)},
                   {"hard_limit", limit_fact(limit.rlim_max)},
                   {"cap_ipc_lock", privileged}};
  std::vector<runtime::BlockUse> blocks;
  try {
    blocks = main_example();
  } catch (const Error& error) {
    finding.says = "the main example could not be built";
    finding.fails(for_a_check(error));
    return finding;
  }
  std::int64_t bytes = 0, locked = 0;
  std::string why;
  for (const runtime::BlockUse& block : blocks) {
    bytes += block.bytes;
    if (block.pinned == "locked") {
      locked += block.bytes;
    } else if (why.empty()) {
      why = fmt::format("block '{}' is not locked: {}", block.name, block.pinned);
    }
  }
  finding.facts["needed"] = bytes;
  finding.facts["locked"] = locked;
  finding.says = fmt::format("{} of the main example's {} can be locked", bytes_text(locked),
                             bytes_text(bytes));
  if (!why.empty()) {
    finding.note(why,
                 "`ulimit -l unlimited`, or a line `* - memlock unlimited` in "
                 "/etc/security/limits.conf; in a container --ulimit memlock=-1. Training works "
                 "without, but may be swapped out");
  }
  return finding;
}

}  // namespace arenite::cli::doctor
