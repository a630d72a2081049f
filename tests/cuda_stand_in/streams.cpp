#include "tests/cuda_stand_in/streams.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cuda_stand_in {

void refuse(const char* what) {
  std::fprintf(stderr, "CUDA's stand-in refuses %s\n", what);
  std::abort();
}

void Stream::push(const Deed& deed) {
  static const bool at_once = std::getenv("CUDA_STAND_IN_AT_ONCE") != nullptr;
  if (at_once) {
    deeds.do_at_once(deed);
  } else {
    deeds.push(deed);
  }
}

void perform(const Deed& deed) {
  switch (deed.kind) {
    case Deed::Kind::nothing:
      break;
    case Deed::Kind::function:
      deed.function(deed.data);
      break;
    case Deed::Kind::copy:
      std::memcpy(deed.to, deed.from, deed.bytes);
      break;
    case Deed::Kind::fill:
      std::memset(deed.to, deed.value, deed.bytes);
      break;
    case Deed::Kind::hand_on: {
      const unsigned long long word = *static_cast<const unsigned long long*>(deed.from);
      auto& into = *static_cast<unsigned long long*>(deed.to);
      if (word != 0 && into == 0) into = word;
      if (deed.told != nullptr) *deed.told = word;
      break;
    }
    case Deed::Kind::kernel:
      perform(*deed.launch);
      break;
    case Deed::Kind::mark:
      deed.event->reached.store(deed.mark);
      break;
    case Deed::Kind::graph:
      deed.graph->deeds.perform([](const Deed& one) { perform(one); });
      break;
  }
}

}  // namespace cuda_stand_in
